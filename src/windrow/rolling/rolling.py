"""A rolling window over a stream in order: a table in, an answer for each window that ended."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, require_aggregate
from windrow.durations import DurationLike
from windrow.engine.functions.store_compatibility import chosen, require_pairing
from windrow.engine.intake.columns import batches
from windrow.errors import QueryError
from windrow.rolling import bulk_loops, loops
from windrow.rolling.counts import Counts
from windrow.rolling.held import Held, Rows
from windrow.rolling.periods import Periods
from windrow.schema import require_columns
from windrow.stores import store_named
from windrow.stores.chunks import chunk_of_rows
from windrow.windows.arguments import require_count


class Rolling:
    """The aggregate of the last rows, or of the last length of time, over a stream in order.

    Parameters
    ----------
    aggregate
        What is computed. Nulls count as rows, and not as values.
    rows
        How many rows a window has; the first one is answered when as many have come.
    every
        How far one window lies behind the one before: a number of rows, 1 by default, or a duration where
        there is a `period`.
    time, period
        Instead of `rows`: the time column, by which events must be in order, and the length of a window.
    store
        The name of the store that keeps the partials (see `windrow.stores`), or "auto" (default) for the one
        that is likely to be fastest.

    Raises
    ------
    QueryError
        If the aggregate does not allow the store, here or when the types of the columns are known, or
        arguments do not go together.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.rolling import Rolling
    >>> window = Rolling(wr.max("x"), rows=3, store="daba_lite")
    >>> window.process(pa.table({"x": [3, 1, 2, 0]})).to_pylist()
    [3, 2]
    >>> window.process(pa.table({"x": [5]})).to_pylist()
    [5]
    >>> window = Rolling(wr.max("x"), time="t", period=10, every=5)
    >>> window.process(pa.table({"t": [1, 7, 16], "x": [3, 1, 2]})).to_pydict()
    {'start': [-5, 0, 5], 'end': [5, 10, 15], 'answer': [3, 3, 1]}
    """

    def __init__(
        self,
        aggregate: Aggregate,
        *,
        rows: int | None = None,
        every: DurationLike | None = None,
        time: str | None = None,
        period: DurationLike | None = None,
        store: str = "auto",
    ) -> None:
        require_aggregate(aggregate)
        if store != "auto":
            require_pairing(store_named(store), aggregate)
        self._store = store
        self._aggregate = aggregate
        self._periods: Periods | None = None
        if rows is not None and (time is not None or period is not None):
            raise QueryError("a window has rows, or a time and a period: give one of the two")
        if rows is None and (time is not None or period is not None):
            if time is None or period is None or every is None:
                raise QueryError(
                    "a window of time needs all three: time names the column, period is how long it is, and every "
                    "how far the next one is"
                )
            self._periods = Periods(aggregate, time, period, every, self._store)
            return
        self._size = require_count(rows, what="rows")
        self._every = require_count(1 if every is None else every, what="every")
        self._capacity = max(1, self._size // self._every)
        self._held: Held | None = None
        self._counts = Counts(self._size, self._every)
        self._seen = self._filled = self._place = 0

    def process(self, events: Any) -> pa.Array | pa.RecordBatch:
        """Take in rows, all or none.

        Parameters
        ----------
        events
            Anything that speaks Arrow, or an iterator of such batches.

        Returns
        -------
        pa.Array or pa.RecordBatch
            An answer for each window that ended; with `time` a batch with the columns `start`, `end` and
            `answer`.

        Raises
        ------
        DataError
            If a row is bad: without a time, out of order, or with a value that does not fit. Nothing was
            taken in then.
        """
        if self._periods is not None:
            return self._periods.process(one_batch(events, self._periods.columns))
        batch = one_batch(events, self._aggregate.columns)
        if batch is None:
            return pa.nulls(0, pa.null() if self._held is None else self._held.bound.type)
        if self._held is None:
            store = chosen(
                self._store, self._aggregate, batch.schema, slices=self._capacity, row_by_row=self._every == 1
            )
            chunk = chunk_of_rows(self._size, self._every)
            self._held = Held(self._aggregate, batch.schema, store, self._capacity, chunk)
        held = self._held
        rows = held.read(batch)
        first = self._size + max(0, -(-(self._seen + 1 - self._size) // self._every)) * self._every
        made = max(0, (self._seen + rows.count - first) // self._every + 1)

        def where(i: int) -> tuple[int, str]:
            row = first + i * self._every - self._seen - 1
            return row, f"the {self._size} rows that end with row {row}"

        answers = None
        if self._every == 1 and held.store.name in bulk_loops.LOOPS and self._counts.are_known:
            slide = partial(self._slide, held, rows, lowers=True)
            answers, slid = held.answers_of_loop(rows, made, self._all_or_none(held, rows), slide)
            self._filled, self._place = slid or (self._filled, self._place)
        if answers is None:
            out = held.room(made)
            counted = self._counts.counted(rows.present, rows.count, self._seen, made)
            with counted as n, self._all_or_none(held, rows):
                filled, place = self._slide(held, rows, out)
                answers = held.answers(out, n, where)
            self._filled, self._place = filled, place
        self._seen += rows.count
        if held.log is not None:
            held.log.forget(held.log.end - self._size)
        return answers

    def _all_or_none(self, held: Held, rows: Rows) -> AbstractContextManager[None]:
        """What is held stays as it was if taking in these rows fails."""
        inserts = rows.count // self._every + 1
        evicts = max(0, self._filled + inserts + 1 - self._capacity)
        return held.as_before_on_failure(rows.count, held.parts(inserts, evicts))

    def _slide(
        self, held: Held, rows: Rows, out: tuple[np.ndarray, ...], *, lowers: bool = False
    ) -> tuple[int, int]:
        """Run the rows through the store: how many partials are in it then, and rows in the current slice."""
        if held.is_count:
            return 0, 0
        kept = held.state, held.cells, held.notes, out
        if self._every == 1:
            loop = bulk_loops.LOOPS.get(held.store.name, loops.slide_by_one)
            arguments = rows.count, self._size, self._filled, *kept
            held.state, filled, _ = held.run(loop, rows, *arguments, lowers=lowers)
            return filled, 0
        sizes = rows.count, self._size, self._every, self._place, self._filled
        found = held.run(loops.slide, rows, *sizes, held.current, held.identity, *kept)
        held.state, place, filled, held.current, _ = found
        return filled, place


def one_batch(events: Any, columns: tuple[str, ...]) -> pa.RecordBatch | None:
    """All rows of a call together, so that they are taken in or refused together; None if there is no batch."""
    parts = list(batches(events))
    if len(parts) < 2:
        return parts[0] if parts else None
    names = list(dict.fromkeys(columns))
    if not names:
        return pa.RecordBatch.from_arrays([pa.nulls(sum(part.num_rows for part in parts))], names=["rows"])
    for part in parts:
        require_columns(part.schema, columns)
    return pa.RecordBatch.from_arrays([_joined(name, parts) for name in names], names=names)


def _joined(name: str, parts: list[pa.RecordBatch]) -> pa.Array:
    """A column of all parts."""
    kinds = list(dict.fromkeys(part.schema.field(name).type for part in parts))
    if len(kinds) > 1:
        raise QueryError(f"column {name!r} was {kinds[0]} before, and now is {kinds[1]}")
    return pa.chunked_array([part.column(name) for part in parts]).combine_chunks()
