"""Which windows of a query share slices, and in what kind of state these are kept.

    aligned     windows of time alone                       spanning    the same, of events that last
    ordered     windows that depend on the order of events  sessions    sessions of events that last
    keyed       all others, and these beside them           prorated    events that contribute by shares

Windows over points share one set of slices. Events that last may need several: one for windows of time, and one for
each session window, because an event may reach over sessions that are final for one gap and not for another. A window
of another kind that is added to a running operator gets a set of its own, too.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from windrow.span import Span
from windrow.spec import QuerySpec


def kind_of(query: QuerySpec) -> str:
    """The kind of state that serves all windows of a query; "" if several are needed."""
    layouts = {window.layout for window in query.windows.values()}
    of_time = [window.layout == "aligned" for window in query.windows.values()]
    if not isinstance(query.time, Span) or query.time.is_point:
        return next(iter(layouts)) if len(layouts) == 1 else "keyed"
    if all(of_time):
        return "prorated" if query.time.contributes == "prorated" else "spanning"
    return "" if len(of_time) > 1 else "sessions"


def shared(query: QuerySpec) -> list[tuple[str, QuerySpec]]:
    """The kinds of state that serve a query, each with the windows that share its slices."""
    kind = kind_of(query)
    if kind:
        return [(kind, query)]
    groups = [{name: w for name, w in query.windows.items() if w.layout == "aligned"}]
    groups += [{name: w} for name, w in query.windows.items() if w.layout != "aligned"]
    parts = [replace(query, windows=MappingProxyType(windows)) for windows in groups if windows]
    return [(kind_of(part), part) for part in parts]
