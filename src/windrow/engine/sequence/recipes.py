"""What the loop needs to know of each built-in deterministic window.

    window          inputs                state of a key                     step
    punctuated      mark                  opened                             begins_at_mark
                    start, end            opened                             between_marks
    threshold       holds                 opened                             while_it_holds
    delta           value, present        anchor, opened                     integer_moves, float_moves
    advancing       value                 oldest, following, bound           advance_integers, _floats

The steps themselves are plain functions beside their windows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.numbers import kind_of, numbers
from windrow.engine.predicates import Condition
from windrow.engine.sequence.run import Run
from windrow.engine.sequence.stepped import Recipe
from windrow.measure import Measure
from windrow.windows.advancing import Advancing, advance_floats, advance_integers
from windrow.windows.base import Periodic
from windrow.windows.delta import Delta, float_moves, integer_moves
from windrow.windows.predicate import Predicate
from windrow.windows.punctuated import Punctuated, begins_at_mark, between_marks
from windrow.windows.threshold import Threshold, while_it_holds

OPENED = {"opened": (np.int64, 0)}


def moment_of(run: Run, measure: Measure) -> Callable[[int], str]:
    """How an error names the event in a row of the run."""
    return lambda row: f"time {measure.scalar(run.times[row].item())}"


def marks(conditions: list[Condition], measure: Measure) -> Callable[[Run], list[np.ndarray]]:
    """Inputs that say of each event whether the conditions hold."""
    return lambda run: [condition(run.batch, moment_of(run, measure)) for condition in conditions]


def punctuated(window: Punctuated, measure: Measure, schema: pa.Schema, *, shown: str) -> Recipe:
    def bound(role: str, predicate: Predicate) -> Condition:
        return Condition(predicate, schema, what=f"{role} of {shown}")

    if window.where is not None:
        inputs = marks([bound("where", window.where)], measure)
        return Recipe(begins_at_mark, (0,), OPENED, inputs)
    assert window.start is not None
    assert window.end is not None
    inputs = marks([bound("start", window.start), bound("end", window.end)], measure)
    return Recipe(between_marks, (0,), OPENED, inputs)


def threshold(window: Threshold, measure: Measure, schema: pa.Schema, *, shown: str) -> Recipe:
    condition = Condition(window.where, schema, what=f"where of {shown}")
    least = 0 if window.at_least is None else measure.ticks(window.at_least, what="at_least")
    return Recipe(while_it_holds, (0,), OPENED, marks([condition], measure), least, window.at_least_rows or 1)


def delta(window: Delta, schema: pa.Schema) -> Recipe:
    floating = pa.types.is_floating(schema.field(window.column).type)

    def inputs(run: Run) -> list[np.ndarray]:
        values, present = numbers(run.batch.column(window.column))
        there = np.ones(len(values), np.bool_) if present is None else present
        return [values, there & ~np.isnan(values) if floating else there]

    # Integers differ by a whole number: more than 2.5 is more than 2.
    by = float(window.by) if floating else int(window.by)
    dtype: Any = np.float64 if floating else np.int64
    return Recipe(
        float_moves if floating else integer_moves,
        (by, window.moves),
        {"anchor": (dtype, 0), **OPENED},
        inputs,
    )


def advancing(window: Advancing, schema: pa.Schema) -> Recipe:
    sizes = (window.length, window.every, window.offset)
    whole = kind_of(schema.field(window.column).type) == "i" and all(isinstance(s, int) for s in sizes)

    def inputs(run: Run) -> list[np.ndarray]:
        values, _ = numbers(run.batch.column(window.column))
        return [values if whole else values.astype(np.float64, copy=False)]

    number: Any = int if whole else float
    length, every, offset = (number(size) for size in sizes)
    placed = Periodic.of(length=length, every=every, offset=offset)
    parameters = (placed.every, placed.offset, number(placed.whole), placed.rest)
    dtype = np.int64 if whole else np.float64
    fields = {"oldest": (dtype, 0), "following": (dtype, 0), "bound": (dtype, 0)}
    return Recipe(advance_integers if whole else advance_floats, parameters, fields, inputs)
