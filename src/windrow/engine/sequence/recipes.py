"""From what a window says of its step to what the loop is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.intake.numbers import kind_of, numbers
from windrow.engine.intake.predicates import Condition
from windrow.engine.sequence.stepped import Recipe
from windrow.measure import Measure
from windrow.windows.base import Window
from windrow.windows.stepping import Holds, Input, Present

Reader = Callable[[pa.RecordBatch, np.ndarray], np.ndarray]

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
        lambda batch, times: [read(batch, times) for read, _ in readers],
        "".join(kind for _, kind in readers),
        0 if least is None else measure.ticks(least, what="at_least"),
        stepping.at_least_rows,
    )


def _reader(one: Input, measure: Measure, schema: pa.Schema, shown: str) -> tuple[Reader, str]:
    """How a batch and its times become one input of a step, and of which kind that is."""
    if isinstance(one, Holds):
        condition = Condition(one.predicate, schema, what=f"{one.role} of {shown}")
        return lambda batch, times: condition(batch, moment_of(times, measure)), "b"
    if isinstance(one, Present):
        return lambda batch, _: _present(batch.column(one.column)), "b"
    if one.floating:
        return lambda batch, _: numbers(batch.column(one.column))[0].astype(np.float64, copy=False), "f"
    kind = kind_of(schema.field(one.column).type)
    assert kind is not None
    return lambda batch, _: numbers(batch.column(one.column))[0], kind


def _present(array: pa.Array) -> np.ndarray:
    values, present = numbers(array)
    there = np.ones(len(values), np.bool_) if present is None else present
    return there & ~np.isnan(values) if values.dtype.kind == "f" else there


def moment_of(times: np.ndarray, measure: Measure) -> Callable[[int], str]:
    """How an error names the event in a row."""
    return lambda row: f"time {measure.scalar(times[row].item())}"
