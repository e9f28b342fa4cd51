"""Deterministic windows of the user's own: the same loop around the user's step.

    step(state, column, ..) -> (state, begins, ends)

    compiled        the loop and the step are one machine-code function
    interpreted     the same loop as plain Python, with each answer checked

The loop notes the row and the state before each call, so that an error can show them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from windrow.aggregates.user import as_function
from windrow.compiling.compiler import kernel
from windrow.compiling.integers import Nonsense, checked_numbers, interpreted
from windrow.compiling.native import TYPES, returned
from windrow.engine.intake.numbers import kind_of, numbers
from windrow.engine.sequence.loop import FoundWindows, source
from windrow.engine.sequence.recipes import moment_of
from windrow.engine.sequence.run import Run
from windrow.engine.sequence.stepped import Recipe, Stepped
from windrow.engine.sequence.ticks import after_function
from windrow.engine.sequence.user import (
    WHOLE,
    Role,
    checked_count,
    joined_kinds,
    settle,
    state_type,
)
from windrow.errors import LimitError, UserFunctionError
from windrow.measure import Measure
from windrow.windows.deterministic import Deterministic

SHAPE = "(state, begins, ends) is needed"


def column_kinds(columns: tuple[str, ...], schema: pa.Schema, measure: Measure) -> list[str]:
    """How each column is handed to a user function; the time column comes in ticks."""
    return [
        ("f" if measure.floating else "i")
        if column == measure.column
        else kind_of(schema.field(column).type) or ""
        for column in columns
    ]


def column_inputs(
    columns: tuple[str, ...], batch: pa.RecordBatch, times: np.ndarray, measure: Measure
) -> list[np.ndarray]:
    """The columns of a batch as numbers; the time column in ticks."""
    return [times if column == measure.column else numbers(batch.column(column))[0] for column in columns]


class UserStepped(Stepped):
    """See the module."""

    def __init__(self, window: Deterministic, measure: Measure, schema: pa.Schema, *, shown: str) -> None:
        self.window = window
        self.measure = measure
        self.step = as_function(window.step, len(window.columns) + 1)
        self.role = Role("step", window.step, shown, ("state", *window.columns))
        self.columns = column_kinds(window.columns, schema, measure)
        given = ["f" if isinstance(value, float) else "i" for value in window.state]
        settled = settle(given, self._kinds_after, {"step": self.step})
        self.interpreted = settled is None
        kinds = given if settled is None else settled
        fields = {
            f"state {i}": (np.float64 if kind == "f" else np.int64, value)
            for i, (kind, value) in enumerate(zip(kinds, window.state, strict=True))
        }

        def inputs(batch: pa.RecordBatch, times: np.ndarray) -> list[np.ndarray]:
            return column_inputs(window.columns, batch, times, measure)

        recipe = Recipe(self.step, (0,), fields, inputs, "".join(self.columns))
        super().__init__(recipe, measure.dtype, shown=shown)

    def _kinds_after(self, kinds: list[str]) -> list[str]:
        """The kinds of the state after one more step; an error if what it returns means nothing."""
        bare = self.window.bare
        found = returned(self.step, [state_type(kinds, bare), *(TYPES[k] for k in self.columns)])
        parts: tuple[Any, ...] = tuple(getattr(found, "types", ()))
        if not isinstance(found, numba.types.BaseTuple) or len(parts) != 3:
            raise self.role.refused(f"returns {found}; {SHAPE}")
        for part, name in zip(parts[1:], ("begins", "ends"), strict=True):
            if not isinstance(part, WHOLE):
                raise self.role.refused(f"returns {part} for {name}, which is not a whole number; {SHAPE}")
        return joined_kinds(kinds, parts[0], bare, self.role)

    def _strict(self, *arguments: Any) -> tuple[Any, int, int]:
        """One step as plain Python, with its answer checked."""
        answer: Any = interpreted(self.step)(*arguments)
        if not isinstance(answer, (tuple, list)) or len(answer) != 3:
            raise Nonsense(f"returned {answer!r}; {SHAPE},")
        state = checked_numbers(answer[0], self.kinds, self.window.bare, "state")
        return state, checked_count(answer[1], "begins"), checked_count(answer[2], "ends")

    def loop_of(self, columns: int) -> Callable[..., Any]:
        text = source(columns, self.kinds, user=True, bare=self.window.bare)
        after = after_function(self.dtype)
        if not self.interpreted:
            return kernel(text, "discretize", {"step": self.step, "after": after}, user=True)
        scope: dict[str, Any] = {"step": self._strict, "after": after, "np": np}
        exec(compile(text, "<windrow kernel>", "exec"), scope)
        return scope["discretize"]

    def nonsense(self, sentence: str) -> Exception:
        return Nonsense(sentence)

    def discretize(
        self, run: Run, inputs: list[Any], state: list[np.ndarray], queued: np.ndarray, found: FoundWindows
    ) -> None:
        # Plain numbers, because Python's own arithmetic is what an interpreted function expects.
        given = [column.tolist() for column in inputs] if self.interpreted else inputs
        try:
            super().discretize(run, given, state, queued, found)
        except LimitError:
            raise
        except Exception as problem:  # the user's function may raise anything
            raise self._failed(problem, found.row, run, inputs, state) from problem

    def _failed(
        self, problem: Exception, row: int, run: Run, inputs: list[np.ndarray], state: list[np.ndarray]
    ) -> UserFunctionError:
        """The error for the call at this row; `state` is that before it."""
        segment = int(np.searchsorted(run.bounds, row, "right")) - 1
        before = tuple(column[segment].item() for column in state)
        values = (before[0] if self.window.bare else before, *(x[row].item() for x in inputs))
        return self.role.failed(problem, moment_of(run.times, self.measure)(row), values)
