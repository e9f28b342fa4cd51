"""A running operator asked at points, from the slices that it holds; nothing changes.

    slices       |-----|--|-----|           |----
    point                             t
    window       |--------------------|           the slices from its start to the point

A slice is not divided, and holds no times. So a point lies behind all events that have come, as it does where the question is about now, or at
the edge of a slice. What cannot be told exactly is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import Scalars
from windrow.engine.aligned.engine import Aligned
from windrow.engine.at.asking import read_points, result_names, with_answers
from windrow.engine.at.ranges import window_starts
from windrow.engine.binding import Answer, is_own
from windrow.engine.engine import Engine
from windrow.engine.functions.user_functions import lower_failed, named
from windrow.engine.intake.bad_rows import Bounds
from windrow.engine.intake.columns import as_table, whole
from windrow.engine.partials import Numbers
from windrow.engine.partials.scalars import lower_values
from windrow.engine.windows import ClosedWindows
from windrow.errors import DataError, QueryError
from windrow.spec import QuerySpec

UNDIVIDED = (
    "of which the operator holds no single events: ask at a time behind all events, or at an edge of windows"
)


def at_running(query: QuerySpec, engines: Sequence[Engine], points: Any) -> pa.Table:
    """As `Operator.at`, of the engines of an operator."""
    names = result_names(query)
    if not engines:
        raise QueryError(
            "no event has come yet, and so the types of answers are not known: prepare the operator with their schema"
        )
    for engine in engines:
        if not isinstance(engine, Aligned):
            raise QueryError(
                f"window {next(iter(engine.query.windows))!r} cannot be asked while the operator runs: windows of time can, such as "
                "tumbling, sliding and calendar windows; Query.at asks others over bounded data"
            )
    table = as_table(points)
    answered: dict[tuple[str, str], pa.Array] = {}
    for engine in engines:
        assert isinstance(engine, Aligned)
        answered |= _Running(engine, whole(table)).answers()
    return with_answers(table, names, answered, whose="points")


class _Running:
    """The windows of one engine at some points."""

    def __init__(self, engine: Aligned, points: pa.RecordBatch) -> None:
        self._engine = engine
        known = engine.keys.count
        bounds = Bounds(engine.lowest, engine.highest, None, None)
        self._times, numbers = read_points(engine.measure, bounds, engine.keys, points)
        if engine.keys.count > known:
            engine.keys.keep(np.arange(known))
        self._numbers = np.zeros(len(self._times), np.int64) if numbers is None else numbers.astype(np.int64)
        self._is_known = self._numbers < known

    def answers(self) -> dict[tuple[str, str], pa.Array]:
        """The answer column of each window and aggregate."""
        found = {}
        for name, window in self._engine.query.windows.items():
            starts, holds = window_starts(window, self._engine.measure, self._times)
            asked = self._slices_of(name, starts, holds & self._is_known)
            for aggregate, answer in self._engine.binding.answers.items():
                column = self._answer(aggregate, answer, asked)
                floor = self._engine.complete_from.get("aggregate " + aggregate)
                if floor is not None and (starts < floor).any():
                    column = pc.if_else(pa.array(starts >= floor), column, pa.scalar(None, column.type))
                found[name, aggregate] = column
        return found

    def _slices_of(self, name: str, starts: np.ndarray, there: np.ndarray) -> ClosedWindows:
        """The slices of the window of each point; an error if they do not make up the window."""
        engine, times, slices = self._engine, self._times, self._engine.slices
        first = np.searchsorted(slices.starts, starts)
        last = np.maximum(np.searchsorted(slices.starts, times), first)
        held_from = max(engine.threshold, engine.complete_from.get("window " + name, engine.threshold))
        gone = f"the operator holds nothing from before {engine.measure.scalar(held_from)}"
        too_early = there & (starts < held_from) & (held_from > engine.lowest)
        self._refuse(too_early, starts, (f"window {name!r} begins at", f" there, and {gone}"))
        if len(slices):
            divides = f"window {name!r} would divide a slice at", f", {UNDIVIDED}"
            before = np.maximum(first - 1, 0)
            self._refuse(there & (first > 0) & (slices.ends[before] > starts), starts, divides)
            until = slices.ends[np.maximum(last - 1, 0)]
            newest = engine.highest_time
            assert newest is not None
            self._refuse(there & (last > first) & (until > times) & (times <= newest), times, divides)
        first, last = np.where(there, first, 0), np.where(there, last, 0)
        return ClosedWindows(
            np.zeros(len(times), np.int64), starts, np.where(there, times, starts), first, last
        )

    def _refuse(self, wrong: np.ndarray, edges: np.ndarray, problem: tuple[str, str]) -> None:
        """An error for the first wrong point; between the parts of `problem` stands an edge of its window."""
        if wrong.any():
            row, measure = int(np.argmax(wrong)), self._engine.measure
            said = f"{problem[0]} {measure.scalar(edges[row])}{problem[1]}"
            raise DataError(measure.column, row, measure.scalar(self._times[row]), said)

    def _answer(self, name: str, answer: Answer, asked: ClosedWindows) -> pa.Array:
        engine, store = self._engine, answer.store
        rows = np.arange(len(asked)), np.where(self._is_known, self._numbers, 0)
        if not isinstance(store, Numbers):
            return engine.answer(answer, asked, engine.slices.slots, rows, answer.decoders)
        bound, spec = answer.bound, store.spec
        try:
            partials, n = store.merge_rows(asked.first, asked.last, rows[1], engine.slices.slots)
        except Exception as problem:  # a user's function may raise anything
            if not is_own(spec):
                raise
            assert isinstance(spec, Scalars)
            raise named(spec, "combine", problem) from problem
        assert bound.build is not None
        if bound.lower is None:
            return bound.build(partials, n, answer.decoders)
        try:
            values, defined = lower_values(bound, partials, n, answer.lowering)
        except Exception as problem:  # a user's function may raise anything
            if not is_own(spec):
                raise
            raise lower_failed(bound, problem) from problem
        overflow = bound.check(values, defined) if bound.check else None
        if overflow is not None:
            raise DataError(
                name, overflow[0], overflow[1], "the sum of the window of this point overflows int64"
            )
        return bound.build(values, defined, answer.decoders)
