"""What slices keep for an aggregate, in columns: one class per shape of partial.

All of them answer to the same few calls. A *slot* holds one slice, a *cell* is one slot of one key:

    repack(slots, capacity, stride, keys)    move to an arena of another size
    reset(slots)                             these slots begin empty
    fold(segments, inputs, time)             take in the events of a batch
    absorb(into, taken, keys)                coalesce slots
    copy(into, source)                       let slots hold what others do, in an arena of one key
    recode(position, moved)                  the codes of a string column have changed
    save(slots, keys), load(...)             for snapshots

`Numbers` merges windows with `merge`; `Multisets` and `Log` make output columns with `answer`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from windrow.aggregates.base import Bound, Multiset, Scalars, Sketch
from windrow.engine.partials.logs import Log
from windrow.engine.partials.multisets import Multisets
from windrow.engine.partials.scalars import Numbers
from windrow.engine.partials.span_log import SpanLog
from windrow.planner.plan import can_carry_over, keeps_events

Store: TypeAlias = "Numbers | Multisets | Log"


def store_for(bound: Bound, tick: np.dtype[Any], *, carried_over: bool = False) -> Store:
    """An empty store for the partial of a bound aggregate; of span events, if there is a carry-over."""
    partial = bound.partial
    if carried_over and not can_carry_over(partial):
        return SpanLog(bound.kinds, tick)
    if isinstance(partial, Multiset):
        return Multisets(floating=bound.kinds[0] == "f")
    if keeps_events(partial):
        return Log(bound.kinds, tick)
    assert isinstance(partial, (Scalars, Sketch))
    return Numbers(partial, len(bound.kinds), tick)


__all__ = ["Log", "Multisets", "Numbers", "SpanLog", "Store", "store_for"]
