"""From what a window says of its step to what the loop is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.numbers import numbers
from windrow.engine.predicates import Condition
from windrow.engine.sequence.run import Run
from windrow.engine.sequence.stepped import Recipe
from windrow.measure import Measure
from windrow.windows.base import Window
from windrow.windows.stepping import Holds, Input, Present

DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64}


def recipe_of(window: Window, measure: Measure, schema: pa.Schema, *, shown: str) -> Recipe:
    """The recipe of a window with a built-in step; `shown` names the window in errors."""
    stepping = window.stepping(schema)
    readers = [_reader(one, measure, schema, shown) for one in stepping.inputs]
    least = stepping.at_least
    return Recipe(
        stepping.step,
        stepping.parameters,
        {name: (DTYPES[kind], 0) for name, kind in stepping.state},
        lambda run: [read(run) for read in readers],
        0 if least is None else measure.ticks(least, what="at_least"),
        stepping.at_least_rows,
    )


def _reader(one: Input, measure: Measure, schema: pa.Schema, shown: str) -> Callable[[Run], np.ndarray]:
    """How a run becomes one input of a step."""
    if isinstance(one, Holds):
        condition = Condition(one.predicate, schema, what=f"{one.role} of {shown}")
        return lambda run: condition(run.batch, moment_of(run, measure))
    if isinstance(one, Present):
        return lambda run: _present(run.batch.column(one.column))
    if one.floating:
        return lambda run: numbers(run.batch.column(one.column))[0].astype(np.float64, copy=False)
    return lambda run: numbers(run.batch.column(one.column))[0]


def _present(array: pa.Array) -> np.ndarray:
    values, present = numbers(array)
    there = np.ones(len(values), np.bool_) if present is None else present
    return there & ~np.isnan(values) if values.dtype.kind == "f" else there


def moment_of(run: Run, measure: Measure) -> Callable[[int], str]:
    """How an error names the event in a row of the run."""
    return lambda row: f"time {measure.scalar(run.times[row].item())}"
