"""The engines by the kind of state that they are (`planner.plan` says which kinds a query needs).

Each decides for itself which events are late for its windows. An engine is imported when a query needs it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from windrow.engine.keys import Keys
from windrow.planner.plan import Plan

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


def engines_for(plan: Plan, keys: Keys | None = None) -> list[AnyEngine]:
    """Empty engines that answer the windows of a plan together, and number these keys alike."""
    engines: list[AnyEngine] = []
    for part in plan.parts:
        engines.append(engine_type(part.kind)(part, keys))
        keys = engines[0].keys
        engines[-1].make_room_for_keys()
    return engines
