"""The engines by the kind of state that they are (`planner.sharing` says which kinds a query needs).

Each decides for itself which events are late for its windows.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from windrow.engine.aligned import Aligned
from windrow.engine.keys import Keys
from windrow.engine.ordered.engine import Ordered
from windrow.engine.runs.engine import Sessions
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.prorated import Prorated
from windrow.options import OperatorOptions
from windrow.planner.sharing import shared
from windrow.spec import QuerySpec

AnyEngine: TypeAlias = Aligned | Sessions | Ordered

KINDS: dict[str, type[Aligned] | type[Sessions] | type[Ordered]] = {
    "aligned": Aligned,
    "ordered": Ordered,
    "spanning": Spanning,
    "prorated": Prorated,
    "sessions": Sessions,
}


def engines_for(
    query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, keys: Keys | None = None
) -> list[AnyEngine]:
    """Empty engines that answer the windows of a query together, and number these keys alike."""
    engines: list[AnyEngine] = []
    for kind, part in shared(query):
        engines.append(KINDS[kind](part, settings, schema, keys))
        keys = engines[0].keys
        engines[-1].make_room_for_keys()
    return engines


def kind_name(engine: AnyEngine) -> str:
    """The kind of state that an engine is."""
    return next(name for name, kind in KINDS.items() if kind is type(engine))
