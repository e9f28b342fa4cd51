"""A rolling window of time over events in any order: an answer for each event, as it comes.

    time      ----1----4--3------6----2----->
    arrives      1  4  3  6  2
    windows   (.. 1] (.. 4] (.. 4] (.. 6] (.. 6]     each ends with the greatest time seen so far

Entries are kept in FiBA, where an event that is late by a little costs little more than one in order. A partial has one
number more than the aggregate gave it: of how many values it is made.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Multiset, Scalars, Sequence, require_aggregate
from windrow.compiling.compiler import bound as bind
from windrow.durations import DurationLike, parse_duration
from windrow.engine.functions.bound_kernels import Operations
from windrow.engine.intake.columns import ticks_of
from windrow.engine.intake.numbers import frozen
from windrow.engine.partials.multisets import to_ordinals
from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure
from windrow.rolling.codes import refuse_first
from windrow.rolling.held import Held, Rows
from windrow.rolling.rolling import one_batch
from windrow.schema import require_columns
from windrow.stores import operations
from windrow.stores.fiba import FIBA, evict_until, grow, has_room, place
from windrow.stores.operations import combine, evict, insert, lift, load, put, query

# The store as the loop sees it: entries have times.
BY_TIME = replace(FIBA, insert=place, evict=evict_until)
# Rows that are inserted at once: before, there must be room for a new node with each of them.
ROWS_AT_ONCE = 1 << 12


def slide_to_greatest(inputs, times, begins, rows, state, cells, notes, out):
    """Take in rows with these times, of which those from `begins` on are in the window; the state."""
    for i in range(rows):
        state = evict(state, cells, notes, begins[i])  # type: ignore[call-arg]
        if times[i] >= begins[i]:
            state = insert(state, cells, notes, times[i], lift(inputs, i))  # type: ignore[call-arg]
        put(out, i, query(state, cells, notes))
    return state


class OutOfOrder:
    """The aggregate of the last `period` before the greatest time seen, `(greatest - period, greatest]`, for
    each event.

    An event that is older than that changes nothing, and gets the answer of the window as it is. Events of
    equal time are combined in order of arrival. Nulls are no values.

    Parameters
    ----------
    aggregate
        What is computed; its partials must have a fixed size.
    time
        The time column.
    period
        The length of the window: a duration, a `timedelta`, or a plain number.

    Raises
    ------
    QueryError
        If `period` is not longer than zero.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.rolling import OutOfOrder
    >>> window = OutOfOrder(wr.max("x"), time="t", period=10)
    >>> window.process(pa.table({"t": [1, 12, 5, 2, 14], "x": [9, 1, 4, 7, 2]})).to_pylist()
    [9, 1, 4, 4, 4]
    """

    def __init__(self, aggregate: Aggregate, *, time: str, period: DurationLike) -> None:
        require_aggregate(aggregate)
        self._aggregate = aggregate
        self._time = time
        self._length = parse_duration(period, what="period")
        if self._length.magnitude <= 0:
            raise QueryError(f"period must be longer than zero, not {self._length}")
        self._held: _Entries | None = None
        self._greatest: Any = None

    def process(self, events: Any) -> pa.Array:
        """Take in events, all or none.

        Parameters
        ----------
        events
            Anything that speaks Arrow, or an iterator of such batches.

        Returns
        -------
        pa.Array
            An answer for each event.

        Raises
        ------
        DataError
            If an event has no time, or a value that does not fit. Nothing was taken in then.
        """
        batch = one_batch(events, (self._time, *self._aggregate.columns))
        if batch is None:
            return pa.nulls(0, pa.null() if self._held is None else self._held.bound.type)
        if self._held is None:
            self._begin(batch.schema)
        held = self._held
        assert held is not None
        ticks = self._ticks(batch)
        rows = held.read(batch)
        greatest = np.maximum.accumulate(ticks)
        if self._greatest is not None:
            greatest = np.maximum(greatest, self._greatest)
        out = held.room(rows.count)
        before = held.cells, held.notes
        try:
            with held.as_before_on_failure(rows.count):
                held.slide(rows, to_ordinals(ticks), self._begins(greatest), out)
                answers = held.answers(out[:-1], out[-1], self._where)
        except BaseException:
            held.cells, held.notes = before
            raise
        if rows.count:
            self._greatest = greatest[-1]
        return answers

    def _begin(self, schema: pa.Schema) -> None:
        require_columns(schema, (self._time, *self._aggregate.columns))
        self._measure = Measure(self._time, schema.field(self._time).type)
        self._period = self._measure.ticks(self._length, what="period")
        self._held = _Entries(self._aggregate, schema)

    def _ticks(self, batch: pa.RecordBatch) -> np.ndarray:
        column = batch.column(self._time)
        ticks, missing = ticks_of(column, self._measure)
        refuse_first(missing, self._time, None, "an event needs a time, and this one has none")
        if self._measure.floating:
            problem = "is not a point in time: no window ends there"
            refuse_first(np.isinf(ticks), self._time, column, problem)
        elif self._measure.lowest == 0:
            refuse_first(ticks < 0, self._time, column, "does not fit in 64 bits with a sign")
        return ticks

    def _begins(self, greatest: np.ndarray) -> np.ndarray:
        """The first time, as a code, that is in the window of each event."""
        if self._measure.floating:
            return to_ordinals(greatest - self._period) + 1
        period = min(int(self._period), INT64_MAX)
        return np.where(greatest < INT64_MIN + period, INT64_MIN, greatest - period + 1)

    @staticmethod
    def _where(i: int) -> tuple[int, str]:
        return i, f"the window that ends with row {i}"


class _Entries(Held):
    """What is held by time, with a count beside each partial, and room that grows."""

    def __init__(self, aggregate: Aggregate, schema: pa.Schema) -> None:
        super().__init__(aggregate, schema, BY_TIME, ROWS_AT_ONCE)
        if isinstance(self.bound.partial, (Multiset, Sequence)):
            raise QueryError(
                f"{aggregate} keeps all of its values, and windows out of order keep partials of a fixed size: "
                "use a query instead"
            )
        self._operations = {masked: _counted(inner, masked) for masked, inner in self._operations.items()}
        self.identity = self.current = self._operations[False].identity
        self.state = FIBA.create(ROWS_AT_ONCE, self.identity)
        self.cells = self.room(FIBA.cells(ROWS_AT_ONCE))
        self._capacity = ROWS_AT_ONCE
        self._times = np.empty(0, np.int64)

    def slide(self, rows: Rows, times: np.ndarray, begins: np.ndarray, out: tuple[np.ndarray, ...]) -> None:
        """Take in rows with these times; what is in the window of each of them."""
        for low in range(0, rows.count, ROWS_AT_ONCE):
            part = slice(low, low + ROWS_AT_ONCE)
            present = None if rows.present is None else rows.present[part]
            self._times = np.array(times[part])
            taken = Rows(len(self._times), [codes[part] for codes in rows.codes], present)
            while not has_room(self.notes, 2 * ROWS_AT_ONCE):
                self._capacity *= 2
                self.cells, self.notes = grow(self.cells, self.notes, self._capacity)
            arguments = self._times, np.array(begins[part]), taken.count, self.state, self.cells, self.notes
            self.state = self.run(slide_to_greatest, taken, *arguments, tuple(o[part] for o in out))

    def _inputs(self, rows: Rows) -> tuple[np.ndarray, ...]:
        inputs = super()._inputs(rows)
        if isinstance(self._partial, Scalars) and self._partial.timed:
            place = len(rows.codes)
            inputs = (*inputs[:place], frozen(self._times), *inputs[place + 1 :])
        return inputs


def lift_one(inputs, i):
    return (*lift(inputs, i), np.int64(1))


def lift_present(inputs, i):
    return (*lift(inputs, i), np.int64(inputs[-1][i]))


def combine_counted(a, b):
    return (*combine(a[:-1], b[:-1]), a[-1] + b[-1])


def load_counted(cells, i):
    return (*load(cells[:-1], i), cells[-1][i])


def put_counted(cells, i, partial):
    put(cells[:-1], i, partial[:-1])
    cells[-1][i] = partial[-1]


COUNTED = {"combine": combine_counted, "load": load_counted, "put": put_counted}


@cache
def _counted(inner: Operations, masked: bool) -> Operations:
    """The operations of partials that have the number of their values as a last field, around those of the aggregate.

    Where some inputs may be null, their last column says which ones are not.
    """
    known = {getattr(operations, name): function for name, function in inner.functions}
    written = {"lift": lift_present if masked else lift_one, **COUNTED}
    return replace(
        inner,
        functions=tuple((name, bind(function, known)) for name, function in written.items()),
        dtypes=(*inner.dtypes, "int64"),
        widths=(*inner.widths, None),
        identities=(*inner.identities, 0),
    )
