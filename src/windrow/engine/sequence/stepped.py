"""Deterministic windows: a step function, the loop around it, and the windows that are open.

    run --> inputs (marks, values) --> loop --> begun, ended --> open windows --> windows

`Stepped` serves every window type whose step is built in; `recipe` says for each of them what the
loop needs: the step, its parameters, the state of a new key, and how a run becomes inputs. Windows
of the user's own are in `user_step`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from windrow.compiling.compiler import kernel
from windrow.engine.intake.numbers import frozen
from windrow.engine.sequence.base import NEVER, Discretizer, require_flags
from windrow.engine.sequence.loop import (
    FINE,
    NEED_ROOM,
    NEGATIVE,
    TOO_MANY_ENDS,
    TOO_MANY_OPEN,
    FoundWindows,
    source,
)
from windrow.engine.sequence.open_windows import MOST_OPEN, OpenWindows, too_many_open
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.state import KeyState
from windrow.engine.sequence.ticks import after, after_function, apart
from windrow.errors import StateError
from windrow.measure import Tick

SENTENCES = {
    NEGATIVE: "returned a negative number of windows",
    TOO_MANY_ENDS: "ended more windows than were open",
}


@dataclass(frozen=True)
class Recipe:
    """What the loop needs to know of one window.

    `fields` are the dtype and the initial value of each number of the state. `inputs` turns a batch
    and its times into one array per column of the step. `least` and `least_rows` leave out windows that are shorter.
    """

    step: Callable[..., Any]
    parameters: tuple[int | float, ...]
    fields: dict[str, tuple[Any, Any]]
    inputs: Callable[[pa.RecordBatch, np.ndarray], list[np.ndarray]]
    input_kinds: str
    least: Tick = 0
    least_rows: int = 1


class Stepped(Discretizer):
    """See the module. `shown` names the window in errors."""

    def __init__(self, recipe: Recipe, dtype: np.dtype[Any], *, shown: str) -> None:
        super().__init__(dtype)
        self.recipe = recipe
        self.input_kinds = recipe.input_kinds
        self.shown = shown
        self.state = KeyState(recipe.fields)
        self.open = OpenWindows(dtype)
        self._loop: Any = None

    @property
    def kinds(self) -> str:
        """ "i" or "f" for each number of the state."""
        return "".join("f" if dtype.kind == "f" else "i" for dtype, _ in self.state.fields.values())

    def inputs(self, batch: pa.RecordBatch, times: np.ndarray) -> list[np.ndarray]:
        return self.recipe.inputs(batch, times)

    def release(self, run: Run) -> Windows:
        inputs = [frozen(column) for column in run.inputs]
        state = self.state.take(run.keys)
        queued = self.open.counts(run.keys)
        found = FoundWindows.of(run, len(self.open))
        self.discretize(run, inputs, state, queued, found)
        self.state.put(run.keys, state)
        counts = (found.begun_to, found.ended_to)
        windows = self.open.apply(run.keys, counts, found.begun, found.ended)
        return self.long_enough(windows)

    def discretize(
        self, run: Run, inputs: list[Any], state: list[np.ndarray], queued: np.ndarray, found: FoundWindows
    ) -> None:
        """Run the loop; `state` and `found` are written to."""
        if self._loop is None:
            self._loop = self.loop_of(len(inputs))
        segments = (frozen(run.bounds), run.ranks, frozen(run.times))
        while True:
            status = self._loop(*segments, *inputs, self.recipe.parameters, *state, queued, MOST_OPEN, *found)
            if status != NEED_ROOM:
                break
            found.widen()
        if status == TOO_MANY_OPEN:
            raise too_many_open(self.shown)
        if status != FINE:
            raise self.nonsense(SENTENCES[status])

    def nonsense(self, sentence: str) -> Exception:
        """The error for a step that does what none may: for a built-in one, only a forged state leads there."""
        return StateError(f"{self.shown} was restored to a state that no events lead to: its step {sentence}")

    def loop_of(self, columns: int) -> Callable[..., Any]:
        """The loop around the step."""
        functions = {"step": self.recipe.step, "after": after_function(self.dtype)}
        return kernel(source(columns, self.kinds), "discretize", functions)

    def long_enough(self, windows: Windows) -> Windows:
        """Without the windows that are too short or hold too few events."""
        least, rows = self.recipe.least, self.recipe.least_rows
        if not len(windows) or (not least and rows <= 1):
            return windows
        assert windows.start is not None
        long = windows.end - windows.begin >= rows
        if least:
            long &= apart(windows.finish, windows.start) >= least
        return windows.where(long)

    def close(self, seen: np.ndarray, last_time: np.ndarray, keys: np.ndarray) -> Windows:
        at, key = self.open.places(keys), np.repeat(keys, self.open.counts(keys))
        (rank,), (time,) = self.open.numbers[:, at], self.open.ticks[:, at]
        self.open.clear(keys)
        self.state.reset(keys)
        return self.long_enough(Windows(key, rank, seen[key], after(last_time[key]), time))

    def anchors_of(self, keys: np.ndarray, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.open.since(keys, since)

    def first_anchor(self, keys: np.ndarray) -> np.ndarray:
        first = np.full(len(keys), NEVER)
        some = np.flatnonzero(self.open.counts(keys))
        first[some] = self.open.numbers[0, self.open.begin[keys[some]]]
        return first

    def begin_at(self, keys: np.ndarray, ranks: np.ndarray, which: int) -> None:
        """A step does not see ranks: there is nothing to do."""

    def grow(self, keys: int) -> None:
        self.state.grow(keys)
        self.open.grow(keys)

    def mark(self, keys: np.ndarray) -> Any:
        return self.open.mark(keys), keys, self.state.take(keys)

    def restore(self, mark: Any) -> None:
        queues, keys, state = mark
        self.open.restore(queues)
        self.state.put(keys, state)

    def settle(self) -> None:
        self.open.settle()

    def take_over(self, other: Self, keys: np.ndarray) -> None:
        self.state.put(keys, other.state.take(keys))
        at = other.open.places(keys)
        self.open.clear(keys)
        self.open.push(keys, other.open.counts(keys), other.open.numbers[:, at], other.open.ticks[:, at])

    def save(self) -> dict[str, np.ndarray]:
        return self.state.save() | self.open.save()

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None = None) -> None:
        state, queues = self.state.copy(), OpenWindows(self.dtype)
        state.load(arrays, keys)
        queues.load(arrays, keys, seen)
        self.require_sound(state, queues)
        self.state, self.open = state, queues

    def require_sound(self, state: KeyState, queues: OpenWindows) -> None:
        """A ValueError if the state of a step does not agree with the windows that are open."""
        count = queues.counts(np.arange(state.keys))
        if "opened" in state.fields and not np.array_equal(state["opened"], count):
            raise ValueError("a key has other windows open than its state says")
        if "begun" in state.fields:
            begun = state["begun"]
            require_flags(begun.view(np.uint64), what="whether an event was seen")
            if (count > 0)[begun == 0].any():
                raise ValueError("a key has windows open before its first event")

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + self.open.nbytes
