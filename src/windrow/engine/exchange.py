"""Slices before the operator: many events become few rows where they are, and only those travel.

    machine 1    events -> slices_of -> slice batch --.
                                                      |--> Operator.take_slices -> windows
    machine 2    events -> slices_of -> slice batch --'

This is the combiner of MapReduce, at the grain of slices instead of windows: a slice is shared by all
windows that overlap it, so the rows that travel do not grow with their number. It needs partials that
may be joined in any order, and windows whose slices can be told from the times of a batch alone:
`obstacle` says which queries have them. What a slice batch looks like is written in `slice_batches`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Scalars, is_text
from windrow.engine.aligned.cutting import Cells, find_extents, scan_times
from windrow.engine.aligned.engine import Aligned
from windrow.engine.binding import Answer, Binding
from windrow.engine.engine import Foldable
from windrow.engine.intake import slice_batches
from windrow.engine.intake.bad_rows import Bounds, Intake
from windrow.engine.intake.batches import EventBatch
from windrow.engine.intake.columns import ticks_of
from windrow.engine.intake.keys import Words
from windrow.engine.intake.slice_batches import ROLE, packed
from windrow.engine.partials import Numbers
from windrow.engine.sessions.engine import Sessions
from windrow.engine.spanning.lifespans import Lifespans
from windrow.engine.spanning.partial_batches import in_halves, obstacle_to_slices, of_instants
from windrow.engine.staging import Staged
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.options import OperatorOptions
from windrow.planner.plan import Part
from windrow.span import ZERO, Span
from windrow.spec import QuerySpec
from windrow.windows.tumbling import Tumbling

# Events have been looked at before they come here; how many slices they make is for the receiver to judge.
SETTINGS = OperatorOptions(max_slices=2**62)


def obstacle(query: QuerySpec, schema: pa.Schema) -> str | None:
    """Why events of this query cannot become slices before they meet their operator; None if they can."""
    return obstacle_of(query, Binding(Part("aligned", query, schema, SETTINGS)))


def obstacle_of(query: QuerySpec, binding: Binding) -> str | None:
    """As `obstacle`, of a query that is bound to its types."""
    for name, window in query.windows.items():
        if (window.layout != "aligned" or window.since is not None) and window.gap is None:
            return (
                f"window {name!r} ({window}) does not cut all keys alike, and is no session of a static gap"
            )
    for name, answer in binding.answers.items():
        why = _why_not(answer, binding)
        if why is not None:
            return f"aggregate {name!r} ({query.aggregates[name]}) {why}"
    if isinstance(query.time, Span):
        why = obstacle_to_slices(query.time, query, binding)
        if why is not None:
            return why
    for name in query.key:
        if name.startswith("#"):
            return f"key column {name!r} begins with '#', as the columns of slices do"
    return None


def _why_not(answer: Answer, binding: Binding) -> str | None:
    """Why the partial of an aggregate cannot travel."""
    if not isinstance(answer.store, Numbers):
        return "keeps single values"
    spec = answer.store.spec
    if not isinstance(spec, Scalars):
        return "keeps a sketch"
    if spec.timed:
        return "depends on the order of events"
    held = {answer.columns[field.code] for field in spec.fields if field.code is not None}
    for column in sorted(held):
        if is_text(binding.schema.field(column).type):
            return f"keeps values of the text column {column!r}"
    return None


def slice_schema(query: QuerySpec, schema: pa.Schema) -> pa.Schema:
    """The schema of the slice batches that events of this schema become."""
    return slice_batches.slice_schema(_engine(query, schema))


def _engine(query: QuerySpec, schema: pa.Schema) -> Aligned | Sessions:
    """An empty engine that cuts events for the query; an error if they cannot become slices."""
    why = obstacle(query, schema)
    if why is not None:
        raise QueryError(f"events cannot become slices before they meet their operator: {why}")
    if isinstance(query.time, Span):
        query, schema = of_instants(query), schema.append(pa.field(ROLE, pa.int64()))
    measure = Measure(query.time_columns[0], schema.field(query.time_columns[0]).type)
    gaps = {w: measure.ticks(w.gap, what="gap") for w in query.windows.values() if w.gap is not None}
    part = Part("aligned", query, schema, SETTINGS)
    if not gaps:
        return Aligned(part)
    # Sessions of larger gaps are made of those of the smallest one.
    least = min(gaps, key=lambda window: gaps[window])
    others = {f"window {name}": w for name, w in query.windows.items() if w.gap is None}
    if not others:
        return Sessions(replace(part, kind="sessions").with_windows({"session": least}))
    # Two events in a cell that is no longer than the gap are always in one session.
    longest = (measure.highest - measure.lowest) / 16
    cell = min(gaps[least] / 2, longest) if measure.floating else min(gaps[least], int(longest))
    others["cell"] = Tumbling(measure.duration(cell), ZERO)
    return Aligned(part.with_windows(others))


def slices_of(query: QuerySpec, batch: pa.RecordBatch, *, along: str | None = None) -> pa.RecordBatch:
    """Events as a slice batch; all of them must be good, and none late.

    Events that lie in no window leave no trace. The column `along`, which must be the same in all events of a key, goes along with
    their slices, in front.
    """
    engine = _engine(query, batch.schema)
    if along is not None and isinstance(engine, Sessions):
        return slices_of(replace(query, key=(along, *query.key)), batch)
    times, missing = ticks_of(batch.column(query.time_columns[0]), engine.measure)
    if isinstance(query.time, Span) and len(times):
        bounds = Bounds.of([engine], SETTINGS, None, None)
        lives = Lifespans(query.time, engine.measure, batch.schema).read(batch, bounds)
        intake = Intake(query.time.start, SETTINGS, ordered=False)
        scan = scan_times(lives.starts)
        judged = intake.judged([engine], bounds, batch, lives.starts, scan, missing, lives.culprits)
        intake.refuse(batch, *judged)
        batch, times = in_halves(batch, engine.windows, lives.starts, lives.lasts)
    if not len(times):
        nobody = np.empty(0, np.int64)
        slices = packed(engine, nobody, times, times, nobody)
        return slices if along is None else slices.add_column(0, along, batch.column(along).slice(0, 0))
    events = EventBatch(batch, times, 0, np.arange(len(times)))
    bounds = Bounds.of([engine], SETTINGS, None, None)
    intake = Intake(query.time_columns[0], SETTINGS, ordered=False)
    intake.refuse(batch, *intake.judged([engine], bounds, batch, times, events.scan, missing))
    if isinstance(engine, Sessions):
        engine.stage(events).commit()
        slots = engine.slices.in_order()
        rows = engine.slices.table[slots]
        return packed(engine, rows["lane"].astype(np.int64), rows["first"].copy(), rows["last"].copy(), slots)
    return _folded(engine, events, along)


def _folded(engine: Aligned, events: EventBatch, along: str | None) -> pa.RecordBatch:
    """Events of windows that cut all keys alike.

    An operator keeps a cell for each slice and each key. The keys of one batch may meet few of its
    slices, so here only those cells are made that hold an event.
    """
    times, (low, high, _) = events.times, events.scan
    found, _, _, inside = engine.cut(times, events.scan)
    events.number(engine.keys, Staged())
    numbers = events.numbers
    base = np.arange(len(found.slices)) * engine.keys.count
    if inside is not None:
        base[~inside] = -1
    segments = found.place(base, numbers, len(times))
    if numbers is None:
        first, last = found.extents(times, low, high)
        key = rows = np.zeros(len(base), np.int64)
    else:
        assert isinstance(segments, Cells)
        cell, rows = Words().number(segments.cell)
        segments = Cells(np.where(segments.cell < 0, -1, cell.astype(np.int64)))
        first, last = np.full(len(rows), high, times.dtype), np.full(len(rows), low, times.dtype)
        find_extents(cell, times, first, last)
        key = numbers[rows]
    for store in engine.stores():
        store.repack(np.empty(0, np.int64), len(key), 1, slice(0, 0))
    foldable = Foldable(engine.encode(events.batch), times, times[:0], events.rows)
    for own in (True, False):
        engine.fold(foldable, segments, own=own)
    engine.presence.fold(segments, [], ())
    held = np.flatnonzero(engine.presence.n)
    slices = packed(engine, key[held], first[held], last[held], held)
    if along is None:
        return slices
    return slices.add_column(0, along, events.batch.column(along).take(pa.array(rows[held])))
