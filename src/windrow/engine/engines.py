"""The engines by the kind of state that they are (`planner.plan` says which kinds a query needs).

Each decides for itself which events are late for its windows. An engine is imported when a query needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from windrow.engine.intake.keys import Keys
from windrow.planner.plan import Part, Plan

if TYPE_CHECKING:
    from windrow.engine.aligned.engine import Aligned
    from windrow.engine.ordered.engine import Ordered
    from windrow.engine.sessions.engine import Sessions

    AnyEngine: TypeAlias = Aligned | Sessions | Ordered


def engine_of(part: Part, keys: Keys | None = None) -> AnyEngine:
    """An empty engine for a part of a plan."""
    if part.kind == "ordered":
        from windrow.engine.ordered.engine import Ordered

        return Ordered(part, keys)
    if part.kind == "sessions":
        from windrow.engine.sessions.engine import Sessions

        return Sessions(part, keys)
    from windrow.engine.aligned.engine import Aligned

    engine = Aligned(part, keys)
    if part.has_spans:
        from windrow.engine.spanning.spans import Spans

        engine.spans = Spans(engine)
    return engine


def engines_for(plan: Plan, keys: Keys | None = None) -> list[AnyEngine]:
    """Empty engines that answer the windows of a plan together, and number these keys alike."""
    engines: list[AnyEngine] = []
    for part in plan.parts:
        engines.append(engine_of(part, keys))
        keys = engines[0].keys
        engines[-1].make_room_for_keys()
    return engines
