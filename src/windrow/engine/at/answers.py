"""What aggregates say of ranges of rows, by what their partials allow.

    counts                              the length of the range
    sums, and what inverts exactly      the difference of two running totals; of floats, as whole numbers (see `fixed_point`)
    other partials of a few numbers     two running combinations that meet at a turn (see `two_ends`)
    ranks                               two linked lists (see `ranks`)
    different values                    a count for each of them
    sketches, most frequent values      each range by itself
    lists, and the like                 the rows themselves

Ranges are cut into parts, for several threads; where is told by the ranges alone, so that answers do not depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Multiset, Scalars, Sketch
from windrow.aggregates.distinct import CountDistinct
from windrow.aggregates.quantile import Ranks
from windrow.aggregates.sum import FLOAT_SUM
from windrow.compiling.integers import python_numbers
from windrow.engine.aligned.cutting import Runs
from windrow.engine.at import two_ends
from windrow.engine.at.fixed_point import fill_fixed_totals, fixed, unit_of
from windrow.engine.at.ranks import count_different, longest_turn, select_in_ranges
from windrow.engine.functions.bound_kernels import DTYPES, Operations, giving_answers
from windrow.engine.functions.user_functions import blame, lower_failed
from windrow.engine.intake.numbers import frozen
from windrow.engine.partials import Multisets, Numbers
from windrow.engine.partials.loops import bound as bound_loop
from windrow.engine.partials.multisets import from_ordinals, to_ordinals
from windrow.engine.partials.scalars import lower_values, lowered
from windrow.engine.pool import together
from windrow.engine.windows import ClosedWindows
from windrow.errors import DataError, UserFunctionError

# Ranges of a part; a part begins anew, which costs as many rows as its first range has.
PART = 1 << 17
# Values that are sorted at once, where each range is answered by itself.
BLOCK_VALUES = 1 << 22


@dataclass
class Column:
    """Rows in order, of which all have a value: their numbers, and what depends on time: the time and the arrival of each."""

    inputs: tuple[np.ndarray, ...]
    stamps: tuple[np.ndarray, np.ndarray]


@dataclass
class Asked:
    """Ranges of rows, of points in order, and where the answer of each goes."""

    low: np.ndarray
    high: np.ndarray
    place: np.ndarray
    threads: int

    def __len__(self) -> int:
        return len(self.low)

    @property
    def counts(self) -> np.ndarray:
        """How many rows each range has, in the order of answers."""
        return self.placed(self.high - self.low)

    def placed(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers of the ranges in the order of answers."""
        out = np.empty_like(numbers)
        out[self.place] = numbers
        return out

    def parts(self) -> list[slice]:
        """Stretches of ranges that are answered by themselves."""
        edges = [0]
        for edge in range(PART, len(self), PART):
            again = self.high[edge - 1] - self.low[edge]
            if 8 * again <= self.high[edge] - self.low[edges[-1]]:
                edges.append(edge)
        return [slice(a, b) for a, b in zip(edges, [*edges[1:], len(self)], strict=True)]

    def in_parts(self, run: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> None:
        """Run a loop over all parts: ranges, and places of their answers."""
        tasks = [
            partial(lambda part, stop: run(self.low[part], self.high[part], self.place[part]), part)
            for part in self.parts()
        ]
        together(tasks, self.threads)


Build = Callable[[Bound, list[np.ndarray], np.ndarray], pa.Array]


class Answering:
    """Answers one aggregate over the rows of its columns, for any ranges; running totals are made once.

    `name` is what an error calls the column.
    """

    def __init__(self, bound: Bound, decoders: list[Any], column: Column, *, name: str) -> None:
        self._bound = bound
        self._decoders = decoders
        self._name = name
        self._column = column
        spec, tick = bound.partial, column.stamps[0].dtype
        self._numbers = Numbers(spec, len(bound.kinds), tick) if isinstance(spec, (Scalars, Sketch)) else None
        self._totals: tuple[np.ndarray, ...] | None = None
        self._codes: np.ndarray | None = None

    def of(self, asked: Asked) -> pa.Array:
        """The answer column."""
        spec = self._bound.partial
        if isinstance(spec, Scalars):
            return self._of_numbers(spec, asked)
        if isinstance(spec, Sketch):
            return self._each(asked)
        if isinstance(spec, Multiset):
            return self._of_values(asked)
        low, high = asked.placed(asked.low), asked.placed(asked.high)
        return self._bound.finish(
            low, high, lambda rows: self._decoders[0](self._column.inputs[0][rows], None)
        )

    # -- partials of a few numbers ---------------------------------------------------------------

    def _of_numbers(self, spec: Scalars, asked: Asked) -> pa.Array:
        if not spec.fields:
            assert self._bound.build is not None
            return self._bound.build([asked.counts], np.ones(len(asked), bool), self._decoders)
        assert self._numbers is not None
        is_exact = spec.invert is not None and all(d.kind in "ib" for d in self._numbers.dtypes)
        try:
            if spec is FLOAT_SUM and (unit := self._unit()) is not None:
                return self._by_totals(asked, unit)
            if is_exact:
                return self._by_totals(asked, None)
            return self._by_two_ends(spec, asked)
        except DataError:
            raise
        except Exception:  # a user's function may raise anything
            if not spec.own:
                raise
        # Loops join rows that no range holds together, and what fails there is in no answer.
        return self._each(asked)

    @property
    def _operations(self) -> Operations:
        assert self._numbers is not None
        return giving_answers(self._numbers.operations, self._bound, checks=True)

    def _unit(self) -> int | None:
        values = self._column.inputs[0]
        return unit_of(values, len(values))

    def _by_totals(self, asked: Asked, unit: int | None) -> pa.Array:
        """By differences of totals; of floats, as whole numbers of this unit."""
        operations = self._operations if unit is None else fixed(self._operations)
        if self._totals is None:
            self._totals = self._fixed_totals(unit) if unit is not None else self._sums_so_far()
        totals, out = self._totals, self._room(len(asked))
        loop = bound_loop(two_ends.answer_by_totals, operations)
        asked.in_parts(lambda low, high, place: loop(totals, low, high, place, out))
        if unit is not None:
            np.multiply(out[0], 2.0**unit, out=out[0])
        return self._built(asked, list(out[:-1]), out[-1])

    def _sums_so_far(self) -> tuple[np.ndarray, ...]:
        """Totals of the rows before each row, and of all."""
        operations, inputs = self._operations, self._inputs
        totals = operations.cells(len(self._column.inputs[0]) + 1)
        for column, nothing in zip(totals, operations.identity, strict=True):
            column[0] = nothing
        bound_loop(two_ends.fill_totals, operations)(inputs, totals)
        return totals

    def _fixed_totals(self, unit: int) -> tuple[np.ndarray, ...]:
        """The same of floats, as whole numbers."""
        values = self._column.inputs[0]
        totals = np.empty(len(values) + 1, np.int64), np.empty(len(values) + 1, np.int64)
        fill_fixed_totals(frozen(values), 2.0**-unit, *totals)
        return totals

    def _by_two_ends(self, spec: Scalars, asked: Asked) -> pa.Array:
        operations = self._operations
        loop = bound_loop(two_ends.answer_ranges, operations)
        inputs, out = self._inputs, self._room(len(asked))

        def run(low: np.ndarray, high: np.ndarray, place: np.ndarray) -> None:
            loop(inputs, low, high, place, operations.cells(len(low)), operations.identity, out)

        asked.in_parts(run)
        return self._built(asked, list(out[:-1]), out[-1])

    @property
    def _inputs(self) -> tuple[Any, ...]:
        spec, inputs = self._bound.partial, list(self._column.inputs)
        if hasattr(getattr(spec, "lift", None), "is_interpreted"):
            return tuple(python_numbers(values) for values in inputs)
        if isinstance(spec, Scalars) and spec.timed:
            inputs += self._column.stamps
        return tuple(map(frozen, inputs))

    def _room(self, count: int) -> tuple[np.ndarray, ...]:
        outputs = self._bound.outputs if self._bound.fits is None else self._bound.outputs[:1]
        return *(np.empty(count, DTYPES[d]) for d in outputs), np.empty(count, np.bool_)

    def _built(self, asked: Asked, values: list[np.ndarray], defined: np.ndarray) -> pa.Array:
        """The numbers of answers as a column; an error for the first one that its type cannot hold."""
        bound = self._bound
        assert bound.build is not None
        if bound.fits is not None and not defined.all():
            self._refuse_overflow(asked, np.flatnonzero(~defined & (asked.counts > 0)))
        elif bound.check is not None and bound.fits is None:
            overflow = bound.check(values, defined)
            if overflow is not None:
                raise DataError(self._name, overflow[0], overflow[1], "its window overflows int64")
        return bound.build(values, defined, self._decoders)

    def _refuse_overflow(self, asked: Asked, points: np.ndarray) -> None:
        """An error for the first point whose answer does not fit, found by the numbers that its type would have."""
        if not len(points):
            return
        assert self._bound.check is not None
        at = int(points[0])
        row = int(np.flatnonzero(asked.place == at)[0])
        one = Asked(asked.low[row : row + 1], asked.high[row : row + 1], np.zeros(1, np.int64), 1)
        partials, n = self._folded(one)
        overflow = self._bound.check(*lower_values(self._bound, partials, n))
        if overflow is not None:
            raise DataError(
                self._name, at, overflow[1], "the sum of the window of this point overflows int64"
            )

    # -- each range by itself --------------------------------------------------------------------

    def _folded(self, asked: Asked) -> tuple[list[np.ndarray], np.ndarray]:
        """The partial of each range, and how many values it has."""
        spec, count = self._bound.partial, len(asked)
        numbers = self._numbers
        assert numbers is not None
        numbers.repack(np.empty(0, np.int64), max(count, 1), 1, slice(0, 0))
        segments = Runs(asked.placed(asked.low), asked.placed(asked.high), np.arange(count))
        inputs = list(map(frozen, self._column.inputs))
        try:
            numbers.fold(segments, inputs, self._column.stamps)
        except Exception as problem:  # a user's function may raise anything
            if not isinstance(spec, Scalars) or isinstance(problem, UserFunctionError):
                raise
            raise blame(numbers, segments, inputs, self._column.stamps[1], problem) from problem
        return [field[:count] for field in numbers.fields], numbers.n[:count]

    def _each(self, asked: Asked) -> pa.Array:
        partials, n = self._folded(asked)
        try:
            return lowered(self._bound, partials, n, self._decoders)
        except Exception as problem:  # a user's function may raise anything
            raise lower_failed(self._bound, problem) from problem

    # -- values ----------------------------------------------------------------------------------

    def _of_values(self, asked: Asked) -> pa.Array:
        bound, finish = self._bound, self._bound.finish
        assert bound.build is not None
        if isinstance(finish, CountDistinct):
            out = np.empty(len(asked), np.int64)
            codes, different = self._different()
            asked.in_parts(
                lambda low, high, place: count_different(
                    codes, low, high, place, np.zeros(different, np.int32), out
                )
            )
            return bound.build([out], np.ones(len(asked), bool), self._decoders)
        if not isinstance(finish, Ranks):
            return self._by_value(asked)
        values = self._column.inputs[0]
        floating = values.dtype.kind == "f"
        n = asked.high - asked.low
        defined = n >= max(finish.least, 1)
        low, high, place = asked.low, asked.high, asked.place
        if not defined.all():
            low, high, place = low[defined], high[defined], place[defined]
        below, above = finish.ranks(high - low)
        smaller, larger = np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
        ordinals = to_ordinals(values)
        some = Asked(low, high, np.arange(len(low)), asked.threads)

        def run(low: np.ndarray, high: np.ndarray, rows: np.ndarray) -> None:
            ranks = below[rows], above[rows]
            where = place[rows]
            select_in_ranges(ordinals, low, high, where, *ranks, longest_turn(low, high), smaller, larger)

        some.in_parts(run)
        given = asked.placed(defined)
        counts = asked.counts[given]
        parts = from_ordinals(smaller[given], floating), from_ordinals(larger[given], floating)
        joined = finish.join(*parts, counts)
        out = np.zeros(len(asked), joined.dtype)
        out[given] = joined
        return bound.build([out], given, self._decoders)

    def _different(self) -> tuple[np.ndarray, int]:
        """The values as numbers from zero on, and how many different ones there are."""
        if self._codes is None:
            found = pa.array(to_ordinals(self._column.inputs[0])).dictionary_encode()
            self._codes = found.indices.to_numpy()
            self._many = len(found.dictionary)
        return self._codes, self._many

    def _by_value(self, asked: Asked) -> pa.Array:
        """Ranges one by one: each is sorted, some of them at a time."""
        low, high = asked.placed(asked.low), asked.placed(asked.high)
        upto = np.cumsum(high - low)
        blocks = np.searchsorted(upto, np.arange(BLOCK_VALUES, upto[-1] if len(upto) else 0, BLOCK_VALUES))
        edges = np.unique([0, *(blocks + 1), len(low)]).tolist()
        parts = [self._block(low[a:b], high[a:b]) for a, b in pairwise(edges)]
        return pa.concat_arrays(parts or [self._block(low, high)])

    def _block(self, low: np.ndarray, high: np.ndarray) -> pa.Array:
        """Each range is one slice, sorted, and answered as slices are in the engine."""
        values = self._column.inputs[0]
        each = np.arange(len(low))
        slices = Multisets(floating=values.dtype.kind == "f")
        slices.repack(each[:0], max(1, len(low)), 1, slice(0, 0))
        slices.fold(Runs(low, high, each), [values], ())
        due = ClosedWindows(each, each, each, each, each + 1)
        return slices.answer(self._bound, due, each, (each, np.zeros_like(each)), self._decoders)
