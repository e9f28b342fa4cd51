"""What a module of this folder is: an experiment of a paper, how large it is run, and what comes out.

    Experiment   a name, the paper's claim, the workload, and a function that measures
    Scale        how many events, and for how long a slow technique is watched
    Panel        one plot and its table: techniques over an axis
    Outcome      the panels and tables of a run, and its findings

A technique that cannot run a workload stands in the table with the reason in the place of its figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from benchmarks.papers.findings import Finding
from benchmarks.support.harness import Figure, Line, Table, Target

Value = TypeVar("Value")
Kind = Literal["lines", "bars", "stacked", "map"]


@dataclass(frozen=True)
class Scale:
    """How much work a run does.

    A technique is measured on `events` events if that takes it no more than some `seconds`, and on fewer if it
    does, but not on fewer than `least`. It is timed `repeats` times.
    """

    name: str
    events: int
    least: int
    batch: int
    seconds: float
    repeats: int

    def pick(self, *, tiny: Value, small: Value, full: Value) -> Value:
        """What an experiment wants at this scale."""
        return {"tiny": tiny, "small": small, "full": full}[self.name]


SCALES = {
    scale.name: scale
    for scale in (
        Scale("tiny", events=4_000, least=2_000, batch=1_000, seconds=0.0, repeats=1),
        Scale("small", events=4_000_000, least=10_000, batch=1_000_000, seconds=0.15, repeats=3),
        Scale("full", events=20_000_000, least=200_000, batch=1_000_000, seconds=3.0, repeats=5),
    )
}


@dataclass(frozen=True)
class Setting:
    """A scale, and a file of the papers' data if the user has one."""

    scale: Scale
    data: Path | None = None


@dataclass(frozen=True)
class Panel:
    """Techniques over an axis: `series[technique][place]` is a figure, or says why there is none. On a map a
    series is a row, and its figures are the names of techniques.

    `beside` holds columns of the table that are not drawn, `targets` what one of the columns should reach at
    a place, `notes` what a reader of the figures must know. One with too many places to read is not `tabled`.
    """

    name: str
    title: str
    x: str
    y: str
    series: Mapping[str, Mapping[float | str, Figure]]
    kind: Kind = "lines"
    log_x: bool = False
    log_y: bool = False
    beside: Mapping[str, Mapping[float | str, Figure]] = field(default_factory=dict)
    targets: Mapping[float | str, Target] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tabled: bool = True

    @property
    def places(self) -> list[float | str]:
        """Where on the axis anything was measured, in order."""
        return list(dict.fromkeys(place for values in self.series.values() for place in values))

    def table(self) -> Table:
        """The panel in figures: a line for each place, a column for each technique."""
        columns = {**self.series, **self.beside}
        lines = tuple(
            Line(
                place if isinstance(place, str) else f"{place:,}",
                {name: values[place] for name, values in columns.items() if place in values},
                self.targets.get(place),
            )
            for place in self.places
        )
        title = f"{self.title}: {self.y} by {self.x}"
        return Table(title, lines, ours=next(iter(self.series)), note=" ".join(self.notes))


@dataclass(frozen=True)
class Outcome:
    """What a run of an experiment gives; `tables` are those that no panel draws."""

    panels: Sequence[Panel]
    findings: Sequence[Finding]
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Experiment:
    """`claim` is what the paper says, `workload` what is run to see whether it holds."""

    name: str
    title: str
    claim: str
    workload: str
    measure: Callable[[Setting], Outcome]
