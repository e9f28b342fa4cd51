"""A queue of values that knows their aggregate: one store, one value at a time, to learn and to test with."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, require_aggregate
from windrow.engine.functions.store_compatibility import require_pairing
from windrow.errors import DataError, LimitError, QueryError
from windrow.rolling import held
from windrow.rolling.held import Held, Rows
from windrow.stores import store_named
from windrow.stores.operations import evict, insert, lift, put, query
from windrow.windows.arguments import require_count


def insert_one(inputs, state, cells, notes):
    """Take in one row."""
    return insert(state, cells, notes, lift(inputs, 0))


def evict_one(state, cells, notes):
    """Let go of the oldest partial."""
    return evict(state, cells, notes)


def query_one(state, cells, notes, out):
    """Put all partials as one into `out`."""
    put(out, 0, query(state, cells, notes))


class _Called(Held):
    """What is held, for loops that take no rows as well."""

    def call(self, loop, *arguments):
        self._require_whole()
        with self._blaming(Rows(0, [], None)):
            return held.compiled(loop, self.store, self._operations[False])(*arguments)


class Queue:
    """Up to `capacity` values, or tuples of values of the columns that the aggregate reads.

    `types` are the Arrow types of these columns, in their order.

    >>> import windrow as wr, pyarrow as pa
    >>> from store_queue import Queue
    >>> queue = Queue(wr.max("x"), [pa.int64()], store="flat_fit", capacity=4)
    >>> for value in (3, 1, 2):
    ...     queue.insert(value)
    >>> queue.query()
    3
    >>> queue.evict()
    >>> queue.query(), len(queue)
    (2, 2)
    """

    def __init__(
        self, aggregate: Aggregate, types: Sequence[pa.DataType], *, store: str, capacity: int
    ) -> None:
        require_aggregate(aggregate)
        require_count(capacity, what="capacity")
        columns = aggregate.columns
        if len(types) != len(columns):
            raise QueryError(f"{aggregate} reads {len(columns)} columns, and types has {len(types)}")
        chosen = store_named(store)
        require_pairing(chosen, aggregate)
        self._schema = pa.schema([pa.field(c, t) for c, t in zip(columns, types, strict=True)])
        self._held = _Called(aggregate, self._schema, chosen, capacity)
        self._capacity = capacity
        self._present: deque[bool] = deque()

    def __len__(self) -> int:
        return len(self._present)

    def insert(self, *values: Any) -> None:
        """Put in a value for each column, at the end."""
        if len(self._present) == self._capacity:
            raise LimitError(f"the queue is full: it has room for {self._capacity}, evict first")
        held = self._held
        rows = held.read(self._row(values))
        with held.as_before_on_failure(1, held.parts(1, 0)):
            if not held.is_count:
                held.state = held.run(insert_one, rows, held.state, held.cells, held.notes)
        self._present.append(rows.present is None or bool(rows.present[0]))
        if held.log is not None:
            held.log.forget(held.log.end - self._capacity)

    def _row(self, values: tuple[Any, ...]) -> pa.RecordBatch:
        if len(values) != len(self._schema):
            raise QueryError(f"insert takes {len(self._schema)} values, and got {len(values)}")
        arrays = []
        for field, value in zip(self._schema, values, strict=True):
            try:
                arrays.append(pa.array([value], field.type))
            except (pa.ArrowException, OverflowError) as problem:
                raise DataError(field.name, 0, value, f"is not of type {field.type}: {problem}") from None
        if not arrays:
            return pa.RecordBatch.from_arrays([pa.nulls(1)], names=["rows"])
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def evict(self) -> None:
        """Take out the oldest value."""
        if not self._present:
            raise QueryError("the queue is empty: there is nothing to evict")
        held = self._held
        if not held.is_count:
            with held.as_before_on_failure(1, held.parts(0, 1)):
                held.state = held.call(evict_one, held.state, held.cells, held.notes)
        self._present.popleft()

    def query(self) -> Any:
        """The aggregate of all values, as a plain Python value."""
        held = self._held
        out = held.room(1)
        if not held.is_count:
            held.call(query_one, held.state, held.cells, held.notes, out)
        n = np.array([sum(self._present)])
        return held.answers(out, n, lambda _: (0, f"the {len(self)} values in the queue"))[0].as_py()
