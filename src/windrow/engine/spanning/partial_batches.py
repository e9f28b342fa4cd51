"""Slices of events that last, made before they meet their operator.

    slices        |  0  |  1  |  2  |
    event            |---------|            BEGINS in slice 0, ENDS in slice 2
    another             |-|                 INSIDE of slice 0

What goes on at the start of a slice is what has entered before it, less what has left (see `across`). So where
partials can be taken out again exactly, an event is two rows that know nothing of each other, and all events that
begin in a slice and go on are one row, however long they last; so are those that end in it, and those inside.

Rows must come in order of time. Whether something goes on between two of them, and so needs slices there, is
told by their sizes alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Scalars
from windrow.engine.edges import neighbours
from windrow.engine.input_batches import BEGINS, ENDS, INSIDE, ROLE, PartialBatch
from windrow.engine.partials import Numbers
from windrow.engine.spanning.across import Balance
from windrow.engine.spanning.placing import positions
from windrow.engine.staging import Staged
from windrow.engine.store_compatibility import has_exact_inverse
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet
from windrow.span import Span

if TYPE_CHECKING:
    from windrow.engine.binding import Binding
    from windrow.engine.spanning.engine import Spanning
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


def prepare(engine: Spanning, parcel: PartialBatch, staged: Staged) -> None:
    """Join such slices to those that are here."""
    assert parcel.roles is not None
    if parcel.times.min() < engine.threshold:
        raise QueryError("slices of events that last must come in order of time")
    key = np.zeros(len(parcel), np.int64) if parcel.numbers is None else parcel.numbers
    order = np.argsort(parcel.times, kind="stable")
    times, role = parcel.times[order], parcel.roles[order]
    change = np.where(role == BEGINS, 1, np.where(role == ENDS, -1, 0)) * parcel.sizes[order]
    going = _going_on(engine) + np.cumsum(change)
    apart = np.flatnonzero(going[:-1] == 0) + 1
    begin = times[np.concatenate([[0], apart])]
    end = times[np.concatenate([apart - 1, [len(times) - 1]])]
    if going[-1]:
        # It first goes on at the start of the next slice.
        end[-1] = neighbours(engine.windows, times[-1:])[1][0]
    edges, base = _cells(engine, begin, end, staged)
    place = positions(parcel.times, edges)
    here = base[place] + key
    begun = np.where(parcel.roles != ENDS, here, -1)
    entered = np.where(parcel.roles == BEGINS, base[place + 1] + key, -1)
    left = np.where(parcel.roles == ENDS, here, -1)
    nothing: list[np.ndarray] = []
    partials = [(parcel.sizes, nothing), *parcel.partials]
    for store, (n, fields) in zip(engine.binding.in_order, partials, strict=True):
        assert isinstance(store, Numbers)
        across = engine.presence_across if store is engine.presence else engine.across[id(store)]
        assert isinstance(across, Balance)
        for target, cells in ((store, begun), (across.entered, entered), (across.left, left)):
            staged.on_commit(partial(target.join, cells, fields, n))
        staged.on_commit(across.forget)
    staged.on_commit(partial(engine.note_time, parcel.high))


def go_on(engine: Spanning, until: Tick) -> None:
    """Make the slices up to an instant, if something goes on: no row tells how long it will."""
    if _going_on(engine):
        begin = engine.slices.starts[-1:]
        _cells(engine, begin, np.maximum(begin, np.asarray(until, begin.dtype)), Staged())


def _going_on(engine: Spanning) -> int:
    """How many events have begun, and not ended."""
    across, slots = engine.presence_across, engine.slices.slots
    entered, left = (s.n.reshape(-1, max(s.stride, 1))[slots].sum() for s in (across.entered, across.left))
    return int(across.carry.n.sum() + entered - left)


def _cells(
    engine: Spanning, begin: np.ndarray, end: np.ndarray, staged: Staged
) -> tuple[np.ndarray, np.ndarray]:
    """Edges, and the first cell of each slice between them; slices from each `begin` to its `end` are made."""
    low, high = begin.min().item(), end.max().item()
    edges = engine.slices.reconcile(engine.edges_for(begin, end, low, high))
    marks = np.zeros(len(edges) + 1, np.int64)
    np.add.at(marks, positions(begin, edges), 1)
    np.add.at(marks, positions(end, edges) + 1, -1)
    met = np.flatnonzero(np.cumsum(marks) > 0)
    slots = engine.slots_of(edges[met], edges[met + 1], staged)
    base = np.full(len(edges) + 1, -1)
    base[met] = slots * engine.stride
    return edges, base
