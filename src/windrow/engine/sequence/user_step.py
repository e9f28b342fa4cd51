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
from windrow.compiling.compiler import kernel, warn_interpreted
from windrow.compiling.integers import Nonsense, checked_numbers, interpreted
from windrow.compiling.native import NOT_COMPILED, TYPES, returned
from windrow.engine.intake.numbers import kind_of, numbers
from windrow.engine.sequence.loop import FoundWindows, source, source_of_ends
from windrow.engine.sequence.recipes import moment_of
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.stepped import Recipe, Stepped
from windrow.engine.sequence.ticks import after_function, clipped, last_tick
from windrow.engine.sequence.user import (
    WHOLE,
    Role,
    checked_count,
    joined_kinds,
    settle,
    state_type,
)
from windrow.errors import LimitError, UserFunctionError
from windrow.measure import Measure, Tick
from windrow.windows.deterministic import Deterministic

SHAPE = "(state, begins, ends) is needed"


def _whole(value: Any) -> Any:
    """A time in whole ticks."""
    return np.int64(value)


def _float(value: Any) -> Any:
    """A time that is a float."""
    return np.float64(value)


_TICK = {"i": _whole, "f": _float}


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
        self.at_watermark = None if window.at_watermark is None else as_function(window.at_watermark, 1)
        self.asked = Role("at_watermark", window.at_watermark or window.step, shown, ("state",))
        self._ends: Any = None
        if self.at_watermark is not None and not self.interpreted:
            self.interpreted = not self._is_compilable(kinds)
        fields: dict[str, tuple[Any, Any]] = {
            f"state {i}": (np.float64 if kind == "f" else np.int64, value)
            for i, (kind, value) in enumerate(zip(kinds, window.state, strict=True))
        }
        if self.at_watermark is not None:
            fields["last event"] = (measure.dtype, 0)
        # The state with which a key begins, as the loop writes it.
        self.initial = tuple(float(v) if k == "f" else v for k, v in zip(kinds, window.state, strict=True))

        def inputs(batch: pa.RecordBatch, times: np.ndarray) -> list[np.ndarray]:
            return column_inputs(window.columns, batch, times, measure)

        recipe = Recipe(self.step, (0,), fields, inputs, "".join(self.columns))
        super().__init__(recipe, measure.dtype, shown=shown)

    @property
    def kinds(self) -> str:
        """ "i" or "f" for each number of the user's state."""
        found = super().kinds
        return found if self.at_watermark is None else found[:-1]

    def _is_compilable(self, kinds: list[str]) -> bool:
        """Whether the function that says when windows end can be compiled; an error if what it returns is no time."""
        assert self.at_watermark is not None
        try:
            found = returned(self.at_watermark, [state_type(kinds, self.window.bare)])
        except NOT_COMPILED as problem:
            warn_interpreted({"at_watermark": self.at_watermark}, problem)
            return False
        fitting = (*WHOLE, numba.types.Float) if self.measure.floating else WHOLE
        if not isinstance(found, fitting):
            raise self.asked.refused(
                f"returns {found}; a time of {self.measure.describe()} in ticks is needed"
            )
        return True

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

    def _instant(self, value: Any) -> int | float:
        """When windows end, as an interpreted function said it."""
        fitting = (bool, np.bool_, int, np.integer, *((float, np.floating) if self.measure.floating else ()))
        if not isinstance(value, fitting) or value != value:
            raise Nonsense(f"returned {value!r}; a time of {self.measure.describe()} in ticks is needed,")
        return self.dtype.type(value).item()

    def loop_of(self, columns: int) -> Callable[..., Any]:
        timed = self.at_watermark is not None
        text = source(
            columns, super().kinds, user=True, bare=self.window.bare, initial=self.initial if timed else None
        )
        return self._made(text, "discretize")

    def _made(self, text: str, name: str) -> Callable[..., Any]:
        """A loop around the user's functions, compiled or as it is."""
        after, timed = after_function(self.dtype), self.at_watermark is not None
        if not self.interpreted:
            due = {"due": self.at_watermark, "instant": _TICK[self.dtype.kind]} if timed else {}
            step = {"step": self.step} if name == "discretize" else {}
            return kernel(text, name, {**step, "after": after, **due}, user=True)
        scope: dict[str, Any] = {"step": self._strict, "after": after, "np": np, "instant": self._instant}
        scope["due"] = interpreted(self.at_watermark) if timed else None
        exec(compile(text, "<windrow kernel>", "exec"), scope)
        return scope[name]

    # -- windows that end by the watermark -------------------------------------------------------

    def _over(self, keys: np.ndarray) -> np.ndarray:
        """When the open windows of these keys end; each has some."""
        if self._ends is None:
            self._ends = self._made(source_of_ends(super().kinds, bare=self.window.bare), "ends")
        state, over, cursor = self.state.take(keys), np.empty(len(keys), self.dtype), np.zeros(1, np.int64)
        given = [column.tolist() for column in state] if self.interpreted else state
        try:
            self._ends(*given, cursor, over)
        except Exception as problem:  # the user's function may raise anything
            before = tuple(column[cursor[0]].item() for column in state[:-1])
            moment = f"time {self.measure.scalar(state[-1][cursor[0]].item())}"
            raise self.asked.failed(problem, moment, [before[0] if self.window.bare else before]) from problem
        return over

    def timers(self, keys: np.ndarray, seen: np.ndarray) -> np.ndarray | None:
        if self.at_watermark is None:
            return None
        times = np.full(len(keys), last_tick(self.dtype), self.dtype)
        some = np.flatnonzero(self.open.counts(keys))
        times[some] = self._over(keys[some])
        return times

    def expire(self, until: Tick, seen: np.ndarray, keys: np.ndarray | None = None) -> Windows:
        if self.at_watermark is None:
            return Windows.none(self.dtype)
        keys = np.arange(self.state.keys) if keys is None else keys
        keys = keys[self.open.counts(keys) > 0]
        over = self._over(keys)
        due = over <= clipped(until, self.dtype)
        keys, over = keys[due], np.repeat(over[due], self.open.counts(keys[due]))
        found = self.close(seen, seen, keys)
        found.finish = over
        return found

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
        user = state if self.at_watermark is None else state[:-1]
        before = tuple(column[segment].item() for column in user)
        if self.at_watermark is not None and self._fails(before):
            given = [before[0] if self.window.bare else before]
            return self.asked.failed(problem, moment_of(run.times, self.measure)(row), given)
        values = (before[0] if self.window.bare else before, *(x[row].item() for x in inputs))
        return self.role.failed(problem, moment_of(run.times, self.measure)(row), values)

    def _fails(self, state: tuple[Any, ...]) -> bool:
        """Whether it is `at_watermark` that raises, or means nothing."""
        try:
            self._instant(interpreted(self.at_watermark)(state[0] if self.window.bare else state))
        except Exception:  # the user's function may raise anything
            return True
        return False
