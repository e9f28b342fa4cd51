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

from windrow.aggregates.base import Aggregate, Bound, Multiset, Scalars, Sequence
from windrow.engine.cache import jit
from windrow.engine.columns import Coder, settled
from windrow.engine.cutting import Runs
from windrow.engine.engine import common_rows
from windrow.engine.partials import Log, Multisets, Numbers, store_for
from windrow.engine.partials.scalars import lower_values
from windrow.engine.user_functions import bind, blame, lower_failed, named
from windrow.engine.windows import Due
from windrow.errors import DataError, QueryError
from windrow.policies.inputs import blaming
from windrow.rolling.codes import require_codes
from windrow.schema import require_columns

TICK: np.dtype[Any] = np.dtype(np.int64)


@jit
def cut(low, high, count):  # type: ignore[no-untyped-def]
    """The places where ranges begin or end, and for each range its first piece and the one behind its last."""
    place = np.zeros(count + 1, np.int64)
    for i in range(low.shape[0]):
        place[low[i]] = 1
        place[high[i]] = 1
    edges = np.empty(place.sum(), np.int64)
    found = 0
    for p in range(count + 1):
        if place[p]:
            edges[found] = p
            place[p] = found
            found += 1
    first = np.empty(low.shape[0], np.int64)
    last = np.empty(low.shape[0], np.int64)
    for i in range(low.shape[0]):
        first[i] = place[low[i]]
        last[i] = place[high[i]]
    return edges, first, last


@jit
def packed(low, high, order):  # type: ignore[no-untyped-def]
    """The rows that lie in some range, as stretches, and the ranges as places among these rows alone.

    `order` are the ranges by where they begin.
    """
    begin = np.empty(low.shape[0], np.int64)
    end = np.empty(low.shape[0], np.int64)
    new_low = np.empty(low.shape[0], np.int64)
    new_high = np.empty(low.shape[0], np.int64)
    stretches = 0
    before = 0
    for k in range(order.shape[0]):
        i = order[k]
        if stretches == 0 or low[i] > end[stretches - 1]:
            if stretches > 0:
                before += end[stretches - 1] - begin[stretches - 1]
            begin[stretches] = low[i]
            end[stretches] = high[i]
            stretches += 1
        elif high[i] > end[stretches - 1]:
            end[stretches - 1] = high[i]
        new_low[i] = low[i] - begin[stretches - 1] + before
        new_high[i] = high[i] - begin[stretches - 1] + before
    return begin[:stretches], end[:stretches], new_low, new_high


def pack(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The positions that lie in some range, ascending, and the ranges as places among them."""
    begin, end, new_low, new_high = packed(low, high, by_start(low))
    return Runs(begin, end, begin).located()[0], new_low, new_high


def by_start(low: np.ndarray) -> np.ndarray:
    """The ranges in the order in which they begin."""
    if len(low) < 2 or np.all(low[1:] >= low[:-1]):
        return np.arange(len(low))
    return np.argsort(low, kind="stable")


class RangeAnswers:
    """Aggregates fitted to the types of a table; `columns` are those that they read, `sorts` whether one
    needs sorted values.

    >>> import pyarrow as pa, windrow as wr
    >>> rows = pa.table({"x": [3, 1, 2, 5]})
    >>> answers = RangeAnswers({"total": wr.sum("x"), "middle": wr.median("x")}, rows.schema)
    >>> [a.to_pylist() for a in answers(rows, np.array([0, 1]), np.array([3, 4]))]
    [[6, 8], [2.0, 2.0]]
    """

    def __init__(self, aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> None:
        self._aggregates = dict(aggregates)
        self._bound: dict[str, Bound] = {}
        for name, aggregate in self._aggregates.items():
            require_columns(schema, aggregate.columns)
            types = tuple(schema.field(c).type for c in aggregate.columns)
            try:
                self._bound[name] = bind(aggregate, types)
            except QueryError as problem:
                raise QueryError(f"aggregate {name!r}: {problem}") from None
        self.sorts = any(isinstance(bound.partial, Multiset) for bound in self._bound.values())
        read = [c for aggregate in self._aggregates.values() for c in aggregate.columns]
        self.columns = tuple(dict.fromkeys(read))
        coded = [c for name, bound in self._bound.items() if bound.kinds for c in aggregates[name].columns]
        self._coders = {name: Coder(name, schema.field(name).type) for name in dict.fromkeys(coded)}
        self.fields = [pa.field(name, bound.type) for name, bound in self._bound.items()]

    @property
    def may_fail(self) -> bool:
        """Whether an answer may be an error: a function of the user's raises, a sum overflows."""
        return any(_is_own(bound) or bound.check is not None for bound in self._bound.values())

    def refuse(self, batch: pa.RecordBatch) -> None:
        """An error if a value cannot be read."""
        for coder in self._coders.values():
            require_codes(coder, batch)

    def __call__(
        self,
        rows: pa.Table | pa.RecordBatch,
        low: np.ndarray,
        high: np.ndarray,
        caused: np.ndarray | None = None,
    ) -> list[pa.Array]:
        """The answers for `rows[low[i]:high[i]]`, none of which is empty: a column for each aggregate.

        `caused` is the row of the batch that caused each range, or -1, for errors.
        """
        order = by_start(low)
        low, high = low[order], high[order]
        edges, first, last = cut(low, high, rows.num_rows)
        pieces = Runs(edges[:-1], edges[1:], np.arange(len(edges) - 1))
        due = Due(first, first, first, first, last)
        columns = _Columns(rows)
        merged: dict[Any, Any] = {}
        found = []
        for name, aggregate in self._aggregates.items():
            bound = self._bound[name]
            key = (bound.partial, aggregate.columns)
            if key not in merged:
                merged[key] = _taken(bound, aggregate.columns, columns, pieces, due, (low, high))
            blamed = None if caused is None else caused[order]
            found.append(self._lowered(name, bound, merged[key], columns.decoders(aggregate, bound), blamed))
        if np.all(order[1:] > order[:-1]):
            return found
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return [column.take(pa.array(back)) for column in found]

    def _lowered(
        self, name: str, bound: Bound, taken: Any, decoders: list[Any], caused: np.ndarray | None
    ) -> pa.Array:
        if callable(taken):
            return taken(bound, decoders)
        fields, n = taken
        assert bound.build is not None
        if bound.lower is None:
            return bound.build(fields, n, decoders)
        with blaming(_is_own(bound), partial(lower_failed, bound)):
            values, defined = lower_values(bound, fields, n)
        overflow = bound.check(values, defined) if bound.check else None
        if overflow is not None:
            row = -1 if caused is None else int(caused[overflow[0]])
            column = self._aggregates[name].columns[0]
            told = f"{self._aggregates[name]} of a window overflows int64"
            raise DataError(column, None if row < 0 else row, overflow[1], told)
        return bound.build(values, defined, decoders)


def _is_own(bound: Bound) -> bool:
    return isinstance(bound.partial, Scalars) and bound.partial.own


class _Columns:
    """The codes of the columns of some rows, each made once."""

    def __init__(self, rows: pa.Table | pa.RecordBatch) -> None:
        self._rows = rows
        self._codes: dict[str, tuple[Coder, np.ndarray, np.ndarray | None]] = {}

    def codes(self, columns: tuple[str, ...], *, coded: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Codes of these columns without the rows that have a null in one of them, and which rows these are."""
        if not coded:
            masks = [_present(self._array(name)) for name in columns]
            return [], common_rows([m for m in masks if m is not None])
        found = [self._coded(name) for name in columns]
        rows = common_rows([present for _, _, present in found if present is not None])
        return [codes if rows is None else codes[rows] for _, codes, _ in found], rows

    def decoders(self, aggregate: Aggregate, bound: Bound) -> list[Any]:
        return [self._coded(name)[0].decode for name in aggregate.columns] if bound.kinds else []

    def _array(self, name: str) -> pa.Array:
        column = self._rows.column(name)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def _coded(self, name: str) -> tuple[Coder, np.ndarray, np.ndarray | None]:
        if name not in self._codes:
            array = self._array(name)
            coder = Coder(name, array.type)
            codes, present, _ = coder.encode(array)
            self._codes[name] = (coder, codes, present)
        return self._codes[name]


def _present(array: pa.Array) -> np.ndarray | None:
    array = settled(array)
    return np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)) if array.null_count else None


def _taken(
    bound: Bound,
    columns: tuple[str, ...],
    source: _Columns,
    pieces: Runs,
    due: Due,
    ranges: tuple[np.ndarray, np.ndarray],
) -> Any:
    """The partials of all ranges and how many values each has; or, of rows in order, a function that
    answers.
    """
    inputs, rows = source.codes(columns, coded=bool(bound.kinds))
    slots = pieces.cell
    if isinstance(bound.partial, Sequence):
        codes = inputs[0]
        low, high = (r if rows is None else np.searchsorted(rows, r) for r in ranges)
        return lambda asked, decoders: asked.finish(low, high, lambda p: decoders[0](codes[p], None))
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
    with blaming(_is_own(bound), lambda problem: blame(store, pieces, inputs, None, problem)):
        store.fold(pieces, inputs, stamps)
    if isinstance(store, Multisets):
        window = (np.arange(len(due)), np.zeros(len(due), np.int64))
        return lambda asked, decoders: store.answer(asked, due, slots, window, decoders)
    with blaming(_is_own(bound), partial(named, bound.partial, "combine")):  # type: ignore[arg-type]
        return store.merge(due, slots, 1)
