"""Windows that are placed by the events, one by one: the step that the engine runs for them.

    stepping     step(parameters, state, time, input, ..) -> state, ends, begins, ends behind

The step is a plain function over numbers beside its window. `Stepping` says what it is called with: the
inputs that events give, the parameters that the window gives, and the numbers that are kept for each key.
The engine compiles the step into its loop, and knows no window by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from windrow.durations import Duration
from windrow.windows.predicate import Predicate


@dataclass(frozen=True)
class Holds:
    """Whether a predicate holds for the event; `role` names it in errors."""

    role: str
    predicate: Predicate


@dataclass(frozen=True)
class Value:
    """The number in a column, zero where it is null; a float64 if `floating`, else as the column has it."""

    column: str
    floating: bool = False


@dataclass(frozen=True)
class Present:
    """Whether a column holds a number: neither null nor NaN."""

    column: str


Input: TypeAlias = Holds | Value | Present


@dataclass(frozen=True)
class Stepping:
    """A step and what it is called with. `state` has name and kind ("i" or "f") of each number, which begins as zero.

    Windows that are shorter than `at_least`, or of fewer events than `at_least_rows`, are left out.
    """

    step: Callable[..., Any]
    inputs: tuple[Input, ...]
    parameters: tuple[int | float, ...] = (0,)
    state: tuple[tuple[str, str], ...] = (("opened", "i"),)
    at_least: Duration | None = None
    at_least_rows: int = 1
