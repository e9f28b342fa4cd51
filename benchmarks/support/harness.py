"""The clock, and the shape of a result.

A benchmark is a function `measure(scale) -> list[Table]`. A `Table` holds `Line`s, a line holds
figures by column, and a line may carry a `Target` for one of its columns. Other work on the machine
disturbs a measurement in one direction only, so contenders take turns and each keeps its best time:

    round 1     ours  rival  limit
    round 2     ours  rival  limit      best of each column
    round 3     ours  rival  limit
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Figure = float | str | None

PATIENCE_SECONDS = 3.0
MOST_ROUNDS = 25


@dataclass(frozen=True)
class Scale:
    """How much work a run does: a race has at least `repeats` rounds and goes on for some `seconds`.

    Only `full` is meant to be quoted.
    """

    name: str
    events: int
    batch: int
    repeats: int
    seconds: float


SCALES = {
    scale.name: scale
    for scale in (
        Scale("tiny", events=40_000, batch=10_000, repeats=1, seconds=0),
        Scale("small", events=2_000_000, batch=1_000_000, repeats=3, seconds=1),
        Scale("full", events=20_000_000, batch=1_000_000, repeats=3, seconds=4),
    )
}
FULL_EVENTS = SCALES["full"].events


@dataclass(frozen=True)
class Target:
    """What the figure in `column` should reach (`at_least`) or stay within."""

    column: str
    bound: float
    at_least: bool

    def met(self, figure: Figure) -> bool:
        assert isinstance(figure, (int, float)), f"no figure in column {self.column!r}"
        return figure >= self.bound if self.at_least else figure <= self.bound

    def __str__(self) -> str:
        return f"{self.column} {'≥' if self.at_least else '≤'} {self.bound:g}"


def at_least(column: str, bound: float) -> Target:
    return Target(column, bound, at_least=True)


def at_most(column: str, bound: float) -> Target:
    return Target(column, bound, at_least=False)


@dataclass(frozen=True)
class Line:
    """One row of a table; `headline` puts it into the summary of docs/benchmarks.md."""

    name: str
    figures: Mapping[str, Figure]
    target: Target | None = None
    headline: bool = False

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.target.met(self.figures.get(self.target.column))


@dataclass(frozen=True)
class Table:
    """Lines with the same columns; `ours` and `beside` are the two columns that a summary shows.

    `also` are further columns of windrow's own, which `benchmarks.before` compares as it does `ours`.
    """

    title: str
    lines: tuple[Line, ...]
    ours: str
    beside: str | None = None
    note: str = ""
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for line in self.lines:
            if line.headline and self.ours not in line.figures:
                raise ValueError(f"{self.title}: {line.name} is for the summary, and has no {self.ours!r}")

    @property
    def columns(self) -> list[str]:
        """Every column that a line fills, in order of first appearance."""
        return list(dict.fromkeys(column for line in self.lines for column in line.figures))


def is_speed(column: str) -> bool:
    """Whether more is better in a column; else its figures are times, sizes or counts."""
    return column.endswith("/s")


Name = TypeVar("Name")
Contender = Callable[[], float]


def clocked(work: Callable[[], object]) -> Contender:
    """`work` as a contender: called without the garbage collector, gives the seconds it took."""

    def run() -> float:
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            work()
            return time.perf_counter() - start
        finally:
            gc.enable()

    return run


def race(contenders: Mapping[Name, Contender], scale: Scale) -> dict[Name, float]:
    """The best time of each contender, who take turns. One that is slow beyond patience runs once."""
    best: dict[Name, float] = {}
    begin = time.perf_counter()
    for done in range(MOST_ROUNDS):
        if done >= scale.repeats and time.perf_counter() - begin >= scale.seconds:
            break
        for name, contender in contenders.items():
            if best.get(name, 0.0) < PATIENCE_SECONDS:
                best[name] = min(best.get(name, float("inf")), contender())
    return best


def rate(events: int, seconds: float) -> float:
    """Million events per second."""
    return events / seconds / 1e6
