"""Windows by eviction and trigger: the content of each key, from its oldest event to the newest.

    rank       7    8    9   10   11
    content         |-------------|        begins with rank 8
    tail            |--------------        every event of the content may be the first of a window

The times of events from earlier runs belong to the engine. Where a function asks for the `oldest`, as
many of them are fetched as a run is likely to evict, and more if that was not enough.
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
from windrow.engine.intake.numbers import frozen
from windrow.engine.sequence.base import KeyStated, below
from windrow.engine.sequence.evicting_loop import NEED_TIMES, NEGATIVE, ROLES, TOO_MANY, source
from windrow.engine.sequence.recipes import moment_of
from windrow.engine.sequence.run import Run, Windows, spread
from windrow.engine.sequence.state import KeyState
from windrow.engine.sequence.ticks import after
from windrow.engine.sequence.user import (
    WHOLE,
    Role,
    checked_count,
    joined_kinds,
    settle,
    state_type,
)
from windrow.engine.sequence.user_step import column_inputs, column_kinds
from windrow.errors import UserFunctionError
from windrow.measure import Measure
from windrow.windows.functions import parameters_of
from windrow.windows.nondeterministic import Nondeterministic

SENTENCES = {NEGATIVE: "evicted a negative number of events", TOO_MANY: "evicted more events than there are"}


class Evicting(KeyStated):
    """See the module."""

    def __init__(self, window: Nondeterministic, measure: Measure, schema: pa.Schema, *, shown: str) -> None:
        super().__init__(measure.dtype)
        self.window, self.measure = window, measure
        self.columns = column_kinds(window.columns, schema, measure)
        self.input_kinds = "".join(self.columns)
        given = [f for f in (window.evict, window.trigger, window.update) if f is not None]
        self.parameters = tuple(parameters_of(f, what=r) for r, f in zip(ROLES, given, strict=False))
        self.functions: dict[str, Any] = {
            role: as_function(function, len(names))
            for role, function, names in zip(ROLES, given, self.parameters, strict=False)
        }
        self.roles = [
            Role(role, function, shown, names)
            for role, function, names in zip(ROLES, given, self.parameters, strict=False)
        ]
        started = ["f" if isinstance(value, float) else "i" for value in window.state]
        settled = settle(started, self._kinds_after, self.functions)
        self.interpreted = settled is None
        self.kinds = "".join(started if settled is None else settled)
        fields = {
            f"state {i}": (np.float64 if kind == "f" else np.int64, value)
            for i, (kind, value) in enumerate(zip(self.kinds, window.state, strict=True))
        }
        self.state = KeyState({"begin": (np.int64, 0), **fields})
        self.timed = any("oldest" in names for names in self.parameters)
        self._loop: Any = None

    def _kinds_after(self, kinds: list[str]) -> list[str]:
        """The kinds of the state after one more event; an error if a function returns nonsense."""
        tick = TYPES["f" if self.measure.floating else "i"]
        types = {"state": state_type(kinds, self.window.bare), "rows": numba.int64, "oldest": tick}
        types |= {name: TYPES[kind] for name, kind in zip(self.window.parameters, self.columns, strict=True)}
        answers = [
            returned(function, [types[name] for name in names])
            for function, names in zip(self.functions.values(), self.parameters, strict=True)
        ]
        if not isinstance(answers[0], WHOLE):
            raise self.roles[0].refused(f"returns {answers[0]}; a whole number of events is needed")
        if not isinstance(answers[1], numba.types.Boolean):
            raise self.roles[1].refused(f"returns {answers[1]}; a boolean is needed")
        if len(answers) < 3:
            return kinds
        return joined_kinds(kinds, answers[2], self.window.bare, self.roles[2])

    def _strict(self) -> dict[str, Callable[..., Any]]:
        """The functions as plain Python, with their answers checked."""
        functions = {role: interpreted(function) for role, function in self.functions.items()}

        def evict(*values: Any) -> int:
            return checked_count(functions["evict"](*values), "the number of events to evict")

        def trigger(*values: Any) -> bool:
            answer = functions["trigger"](*values)
            if not isinstance(answer, (bool, np.bool_)):
                raise Nonsense(f"returned {answer!r}, which is not a boolean,")
            return bool(answer)

        def update(*values: Any) -> Any:
            return checked_numbers(functions["update"](*values), self.kinds, self.window.bare, "state")

        return {"evict": evict, "trigger": trigger, "update": update}

    def _loop_of(self) -> Callable[..., Any]:
        text = source(self.parameters, self.window.parameters, self.kinds, bare=self.window.bare)
        if not self.interpreted:
            return kernel(text, "discretize", self.functions, user=True)
        scope: dict[str, Any] = {**self._strict(), "np": np}
        exec(compile(text, "<windrow kernel>", "exec"), scope)
        return scope["discretize"]

    def inputs(self, batch: pa.RecordBatch, times: np.ndarray) -> list[np.ndarray]:
        return column_inputs(self.window.columns, batch, times, self.measure)

    def release(self, run: Run) -> Windows:
        if self._loop is None:
            self._loop = self._loop_of()
        wanted = 2 * run.lengths + 16
        while True:
            state = self.state.take(run.keys)
            status, windows = self._once(run, state, wanted)
            if status != NEED_TIMES:
                self.state.put(run.keys, state)
                return windows
            wanted *= 4

    def _once(self, run: Run, state: list[np.ndarray], wanted: np.ndarray) -> tuple[int, Windows]:
        """Run the loop with the first `wanted` times of each content at hand; `state` is changed in place."""
        begin, *numbers = state
        inputs = [frozen(column) for column in run.inputs]
        held_to = np.minimum(run.ranks, begin + wanted) if self.timed else begin.copy()
        owner, ranks = spread(begin, held_to)
        held = run.tail_times(run.keys[owner], ranks) if len(owner) else np.empty(0, self.dtype)
        held_from = np.cumsum(held_to - begin) - (held_to - begin)
        out = [np.empty(len(run.times), np.int64) for _ in range(3)]
        note, note_time = np.zeros(3, np.int64), np.zeros(1, self.dtype)
        given: list[Any] = [frozen(run.times), *inputs]
        held_times: Any = frozen(held)
        if self.interpreted:
            # Plain numbers, because Python's own arithmetic is what an interpreted function expects.
            given, held_times = [x.tolist() for x in given], held.tolist()
        arguments = (*given, *numbers, begin, held_times, held_from, held_to, *out, note, note_time)
        try:
            status, n = self._loop(frozen(run.bounds), run.ranks, *arguments)
        except Exception as problem:  # a user's function may raise anything
            raise self._failed(problem, note, note_time, run, inputs, numbers) from problem
        if status in SENTENCES:
            raise self._failed(Nonsense(SENTENCES[status]), note, note_time, run, inputs, numbers)
        segment, first, trigger = (column[:n] for column in out)
        end = run.ranks[segment] + (trigger - run.bounds[segment]) + 1
        return status, Windows(run.keys[segment], first, end, after(run.times[trigger]))

    def _failed(
        self,
        problem: Exception,
        note: np.ndarray,
        note_time: np.ndarray,
        run: Run,
        inputs: list[np.ndarray],
        state: list[np.ndarray],
    ) -> UserFunctionError:
        """The error for the call that `note` is about."""
        row, role, rows = note.tolist()
        segment = int(np.searchsorted(run.bounds, row, "right")) - 1
        before = tuple(column[segment].item() for column in state)
        values = {
            "state": before[0] if self.window.bare else before,
            "rows": rows,
            "oldest": note_time[0].item(),
        }
        values |= {name: x[row].item() for name, x in zip(self.window.parameters, inputs, strict=True)}
        moment = moment_of(run.times, self.measure)(row)
        return self.roles[role].failed(problem, moment, [values[name] for name in self.parameters[role]])

    def close(self, seen: np.ndarray, last_time: np.ndarray, keys: np.ndarray) -> Windows:
        return Windows.none(self.dtype)

    def begin_at(self, keys: np.ndarray, ranks: np.ndarray, which: int) -> None:
        self.state["begin"][keys] = ranks

    def tail(self, seen: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        begin = self.state["begin"]
        return begin.copy() if keys is None else begin[keys]

    def require_sound(self, state: KeyState, seen: np.ndarray | None) -> None:
        below(state["begin"], seen, what="the first event of a content")
