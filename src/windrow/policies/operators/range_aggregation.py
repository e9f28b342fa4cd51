"""Aggregates over ranges of rows: the content of many windows at once, from shared slices.

A window's content is a range of the rows of its partition. The ranges of all windows that a batch has led to
are cut wherever one of them begins or ends; each piece is folded once, and a window is a merge of pieces by
the store that costs least:

    rows       0  1  2  3  4  5  6  7
    windows    |--------|                       count(4), count(2): the pieces are the tumbling windows
                     |--------|                 of the paper's rewrite (Gedik 2013, section 4.1.8)
                           |--------|
    pieces     |--|--|--|--|--|--|

Quantiles and the like are answered from sorted pieces, lists from the rows themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Multiset, Scalars, Sequence
from windrow.engine.aligned.cutting import Runs
from windrow.engine.arrays import ranges as positions_between
from windrow.engine.functions.user_functions import blame, lower_failed, named
from windrow.engine.intake.columns import whole
from windrow.engine.partials import Log, Multisets, Numbers, store_for
from windrow.engine.partials.scalars import lower_values
from windrow.engine.windows import ClosedWindows
from windrow.errors import DataError, QueryError
from windrow.policies.inputs import BoundAggregate, Inputs, blaming

TICK: np.dtype[Any] = np.dtype(np.int64)


def cut(low: np.ndarray, high: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The places where ranges of `count` rows begin or end, and for each range its first piece and the one behind its last."""
    is_edge = np.zeros(count + 1, np.bool_)
    is_edge[low] = is_edge[high] = True
    piece = np.cumsum(is_edge) - 1
    return np.flatnonzero(is_edge), piece[low], piece[high]


def pack(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The positions that lie in some range, ascending, and the ranges as places among them; there is a range."""
    order = by_start(low)
    starts, reached = low[order], np.maximum.accumulate(high[order])
    # Ranges that touch each other make a stretch; all of its ranges move down alike.
    first = np.concatenate([[0], np.flatnonzero(starts[1:] > reached[:-1]) + 1])
    behind = np.append(first[1:], len(starts))
    begin, end = starts[first], reached[behind - 1]
    packed_begin = np.cumsum(end - begin) - (end - begin)
    down = np.empty(len(low), np.int64)
    down[order] = np.repeat(begin - packed_begin, behind - first)
    return positions_between(begin, end), low - down, high - down


def by_start(low: np.ndarray) -> np.ndarray:
    """The ranges in the order in which they begin."""
    if len(low) < 2 or np.all(low[1:] >= low[:-1]):
        return np.arange(len(low))
    return np.argsort(low, kind="stable")


class RangeAggregation:
    """Aggregates fitted to the types of a table; `columns` are those that they read, `sorts` whether one
    needs sorted values.

    >>> import pyarrow as pa, windrow as wr
    >>> rows = pa.table({"x": [3, 1, 2, 5]})
    >>> answers = RangeAggregation({"total": wr.sum("x"), "middle": wr.median("x")}, rows.schema)
    >>> [a.to_pylist() for a in answers(rows, np.array([0, 1]), np.array([3, 4]))]
    [[6, 8], [2.0, 2.0]]
    """

    def __init__(self, aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> None:
        self._aggregates: list[BoundAggregate] = []
        for name, aggregate in aggregates.items():
            try:
                self._aggregates.append(BoundAggregate.of(name, aggregate, schema))
            except QueryError as problem:
                raise QueryError(f"aggregate {name!r}: {problem}") from None
        self.sorts = any(isinstance(one.bound.partial, Multiset) for one in self._aggregates)
        self.columns = tuple(dict.fromkeys(c for one in self._aggregates for c in one.columns))
        self._inputs = Inputs(schema, self._aggregates)
        self.fields = [pa.field(one.name, one.bound.type) for one in self._aggregates]

    @property
    def may_fail(self) -> bool:
        """Whether an answer may be an error: a function of the user's raises, a sum overflows."""
        return any(one.own or one.bound.check is not None for one in self._aggregates)

    def refuse(self, batch: pa.RecordBatch) -> None:
        """An error if a value cannot be read."""
        self._inputs.require(batch)

    def __call__(
        self, rows: pa.Table, low: np.ndarray, high: np.ndarray, caused: np.ndarray | None = None
    ) -> list[pa.Array]:
        """The answers for `rows[low[i]:high[i]]`, none of which is empty: a column for each aggregate.

        `caused` is the row of the batch that caused each range, or -1, for errors.
        """
        order = by_start(low)
        low, high = low[order], high[order]
        edges, first, last = cut(low, high, rows.num_rows)
        pieces = Runs(edges[:-1], edges[1:], np.arange(len(edges) - 1))
        due = ClosedWindows(first, first, first, first, last)
        inputs = Inputs(rows.schema, self._aggregates)
        inputs.read(whole(rows.select(self.columns)))
        merged: dict[Any, Any] = {}
        found = []
        for one in self._aggregates:
            if one.key not in merged:
                merged[one.key] = _merged(one, inputs, pieces, due, (low, high))
            blamed = None if caused is None else caused[order]
            found.append(_lowered(one, merged[one.key], inputs.decoders(one.inputs), blamed))
        if np.all(order[1:] > order[:-1]):
            return found
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return [column.take(pa.array(back)) for column in found]


def _merged(
    one: BoundAggregate,
    source: Inputs,
    pieces: Runs,
    due: ClosedWindows,
    ranges: tuple[np.ndarray, np.ndarray],
) -> Any:
    """The partials of all ranges and how many values each has; or, of rows in order, a function that
    answers.
    """
    inputs, present = source.codes(one.inputs), source.present(one.columns)
    rows = None if present is None else np.flatnonzero(present)
    if rows is not None:
        inputs = [codes[rows] for codes in inputs]
    slots, bound = pieces.cell, one.bound
    if isinstance(bound.partial, Sequence):
        codes = inputs[0]
        low, high = (r if rows is None else np.searchsorted(rows, r) for r in ranges)
        return lambda bound, decoders: bound.finish(low, high, lambda p: decoders[0](codes[p], None))
    store: Any = store_for(bound, TICK)
    if isinstance(store, Log):
        # Rows come in order, so that pieces of them may be joined even where order matters.
        assert isinstance(bound.partial, Scalars)
        store = Numbers(bound.partial, len(bound.kinds), TICK)
    store.repack(slots[:0], len(slots), 1, slice(0, 0))
    stamps: tuple[np.ndarray, ...] = ()
    if isinstance(store, Numbers) and store.timed:
        numbers = np.arange(int(pieces.high[-1])) if rows is None else rows
        stamps = (numbers, numbers)
    pieces = pieces if rows is None else pieces.only(rows)
    # These are rows of windows, and no longer those of a batch.
    with blaming(one.own, lambda problem: blame(store, pieces, inputs, None, problem)):
        store.fold(pieces, inputs, stamps)
    if isinstance(store, Multisets):
        window = (np.arange(len(due)), np.zeros(len(due), np.int64))
        return lambda bound, decoders: store.answer(bound, due, slots, window, decoders)
    with blaming(one.own, partial(named, bound.partial, "combine")):  # type: ignore[arg-type]
        return store.merge(due, slots, 1)


def _lowered(one: BoundAggregate, merged: Any, decoders: list[Any], caused: np.ndarray | None) -> pa.Array:
    """What `_merged` has found as a column."""
    bound = one.bound
    if callable(merged):
        return merged(bound, decoders)
    fields, n = merged
    assert bound.build is not None
    if bound.lower is None:
        return bound.build(fields, n, decoders)
    with blaming(one.own, partial(lower_failed, bound)):
        values, defined = lower_values(bound, fields, n)
    overflow = bound.check(values, defined) if bound.check else None
    if overflow is not None:
        row = -1 if caused is None else int(caused[overflow[0]])
        problem = f"{one.aggregate} of a window overflows int64"
        raise DataError(one.columns[0], None if row < 0 else row, overflow[1], problem)
    return bound.build(values, defined, decoders)
