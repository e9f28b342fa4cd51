"""Which engines answer a query.

    Aligned     windows of time alone                       Spanning    the same, of events that last
    Keyed       all others, and these beside them           Sessions    sessions of events that last
                                                            Prorated    events that contribute by shares

A query has one of the first two. Events that last may need several: one for windows of time, and one for each
session window, because an event may reach over sessions that are final for one gap and not for another. Which events are
late, sessions judge together (`sessions.judged_together`).
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from windrow.engine.aligned import Aligned
from windrow.engine.keyed.engine import Keyed
from windrow.engine.settings import Settings
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.prorated import Prorated
from windrow.engine.spanning.sessions import Sessions
from windrow.query import Query
from windrow.span import Span
from windrow.windows.layout import is_aligned

KINDS: dict[str, type[Aligned] | type[Keyed]] = {
    "aligned": Aligned,
    "keyed": Keyed,
    "spanning": Spanning,
    "prorated": Prorated,
    "sessions": Sessions,
}


def kind_of(query: Query) -> str:
    """The kind of engine that answers all windows of a query; "" if several are needed."""
    of_time = [is_aligned(window) for window in query.windows.values()]
    if not isinstance(query.time, Span) or query.time.is_point:
        return "aligned" if all(of_time) else "keyed"
    if all(of_time):
        return "prorated" if query.time.contributes == "prorated" else "spanning"
    return "" if len(of_time) > 1 else "sessions"


def engines_for(query: Query, settings: Settings, schema: pa.Schema) -> list[Aligned | Keyed]:
    """Empty engines that answer the windows of a query together."""
    kind = kind_of(query)
    if kind:
        return [KINDS[kind](query, settings, schema)]
    groups = [{name: w for name, w in query.windows.items() if is_aligned(w)}]
    groups += [{name: w} for name, w in query.windows.items() if not is_aligned(w)]
    parts = [replace(query, windows=MappingProxyType(windows)) for windows in groups if windows]
    return [KINDS[kind_of(part)](part, settings, schema) for part in parts]
