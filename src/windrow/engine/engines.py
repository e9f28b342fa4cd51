"""The engines by the kind of state that they are (`planner.sharing` says which kinds a query needs).

Each decides for itself which events are late for its windows. An engine is imported when a query needs it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from windrow.engine.keys import Keys
from windrow.options import OperatorOptions
from windrow.planner.sharing import shared
from windrow.spec import QuerySpec

if TYPE_CHECKING:
    from windrow.engine.aligned import Aligned
    from windrow.engine.ordered.engine import Ordered
    from windrow.engine.runs.engine import Sessions

    AnyEngine: TypeAlias = Aligned | Sessions | Ordered

KINDS = ("aligned", "ordered", "sessions", "spanning", "prorated")


@cache
def engine_type(kind: str) -> Any:
    """The class of the engines of a kind."""
    if kind == "aligned":
        from windrow.engine.aligned import Aligned

        return Aligned
    if kind == "ordered":
        from windrow.engine.ordered.engine import Ordered

        return Ordered
    if kind == "sessions":
        from windrow.engine.runs.engine import Sessions

        return Sessions
    if kind == "spanning":
        from windrow.engine.spanning.engine import Spanning

        return Spanning
    from windrow.engine.spanning.prorated import Prorated

    return Prorated


def engines_for(
    query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, keys: Keys | None = None
) -> list[AnyEngine]:
    """Empty engines that answer the windows of a query together, and number these keys alike."""
    engines: list[AnyEngine] = []
    for kind, part in shared(query):
        engines.append(engine_type(kind)(part, settings, schema, keys))
        keys = engines[0].keys
        engines[-1].make_room_for_keys()
    return engines


def kind_name(engine: AnyEngine) -> str:
    """The kind of state that an engine is."""
    return next(kind for kind in KINDS if engine_type(kind) is type(engine))
