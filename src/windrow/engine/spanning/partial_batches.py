"""Slices of span events, made before they meet their operator.

    slices        |  0  |  1  |  2  |
    event            |---------|            BEGINS in slice 0, ENDS in slice 2
    another             |-|                 INSIDE of slice 0

The carry-over of a slice is what has entered before it, less what has left (see `carry_over`). So where
partials can be taken out again exactly, an event is two rows that know nothing of each other, and all events that
begin in a slice and go on are one row, however long they last; so are those that end in it, and those inside.

Rows must come in order of time. Whether something goes on between two of them, and so needs slices there, is
told by their sizes alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Scalars
from windrow.engine.aligned.edges import neighbours
from windrow.engine.functions.store_compatibility import has_exact_inverse
from windrow.engine.intake.batches import BEGINS, ENDS, INSIDE
from windrow.engine.intake.slice_batches import ROLE
from windrow.planner.window_set import WindowSet
from windrow.span import Span

if TYPE_CHECKING:
    from windrow.engine.binding import Binding
    from windrow.spec import QuerySpec


def obstacle_to_slices(span: Span, query: QuerySpec, binding: Binding) -> str | None:
    """Why events of this span cannot become slices; None if they can. All windows are windows of time."""
    if span.id is not None:
        return f"a row of {span} may open or close an event"
    if span.contributes != "whole":
        return f"an event of {span} does not contribute as a whole"
    if WindowSet.of(query.windows, binding.measure).may_leave_gaps:
        return f"there are gaps between its windows, and an event of {span} may end in one"
    for name, answer in binding.answers.items():
        what = f"aggregate {name!r} ({query.aggregates[name]})"
        if not has_exact_inverse(answer.bound):
            return f"{what} cannot take events of {span} out again"
        if isinstance(answer.bound.partial, Scalars) and answer.bound.partial.own:
            return (
                f"{what} is made by functions of your own, which may fail at either end of an event of {span}"
            )
    return None


def of_instants(query: QuerySpec) -> QuerySpec:
    """The query of instants whose slices are those of the halves of events; the role is part of the key."""
    return replace(query, time=query.time_columns[0], key=(*query.key, ROLE))


def in_halves(
    batch: pa.RecordBatch, windows: WindowSet, starts: np.ndarray, lasts: np.ndarray
) -> tuple[pa.RecordBatch, np.ndarray]:
    """A row for each event and one more for each that goes on, with their roles; and their instants."""
    on = lasts >= neighbours(windows, starts)[1]
    behind = np.flatnonzero(on)
    rows = batch.take(pa.array(np.concatenate([np.arange(len(starts)), behind])))
    role = np.concatenate([np.where(on, BEGINS, INSIDE), np.full(len(behind), ENDS)])
    return rows.append_column(ROLE, pa.array(role, pa.int64())), np.concatenate([starts, lasts[behind]])
