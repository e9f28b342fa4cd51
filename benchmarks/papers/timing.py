"""Events per second, measured so that a slow technique does not hold up the others.

Each contender first finds out how many events it can take in about the seconds that it is given: it starts with
few and takes more as long as there is time. Then all of them take turns at their own sizes, and each keeps its best
time (`support/harness.py`). At the end of a run all windows are closed, so that even a short run pays for
every window that an event is in. Trees and buffers that have not grown to their full size yet are cheaper than they
would be later, which favours slow techniques; each table says on how few events they were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchmarks.papers.contenders import CANNOT, CONTENDERS, IN_ORDER_ONLY, exhaust, require_agreement
from benchmarks.papers.experiment import Scale
from benchmarks.papers.streams import Source
from benchmarks.support import harness
from benchmarks.support.harness import Figure
from windrow import Query, QueryError

# The share of the least events that are enough to have everything compiled.
WARM_UP = 10
# How many times as long as expected a run must take to be repeated.
SURPRISING = 2
# What share of its seconds a brief run takes, and how many times as many of these there are.
BRIEF, MORE = 5, 3
Work = Callable[[int], float]
"""Runs on so many events, and gives the seconds it took."""


@dataclass(frozen=True)
class Measured:
    """Events per second, and on how many events that was measured."""

    rate: float
    events: int


def measured(works: Mapping[str, Work], scale: Scale, most: int) -> dict[str, Measured]:
    """The rate of each contender, on up to `most` events. One that needs more than its seconds runs once."""
    sized = {name: sizing(work, scale, most) for name, work in works.items()}
    rounds = harness.Scale(scale.name, 0, 0, repeats=scale.repeats, seconds=0)
    racing = {
        name: partial(works[name], events) for name, (events, took) in sized.items() if took <= scale.seconds
    }
    best = harness.race(racing, rounds)
    # A run of a few milliseconds is easily disturbed: more of them.
    brief = {name: work for name, work in racing.items() if best[name] < scale.seconds / BRIEF}
    again = harness.race(brief, replace(rounds, repeats=MORE * scale.repeats))
    best |= {name: min(seconds, best[name]) for name, seconds in again.items()}
    return {
        name: Measured(events / min(took, best.get(name, took)), events)
        for name, (events, took) in sized.items()
    }


def sizing(work: Work, scale: Scale, most: int) -> tuple[int, float]:
    """How many events a contender is measured on, and the seconds that it took."""
    events = max(2, min(scale.least, most) // WARM_UP)
    seconds = work(events) if scale.seconds > 0 else 0.0
    wanted = min(scale.least, most)
    while True:
        expected, events = seconds * wanted / events, wanted
        seconds = work(events)
        if scale.seconds > 0 and seconds > SURPRISING * expected:
            # More events may take other ways, and something was compiled that is not needed again.
            seconds = min(seconds, work(events))
        if events == most or seconds >= scale.seconds / 2:
            return events, seconds
        more = min(max(2.0, scale.seconds / max(seconds, 1e-9)), 20.0)
        wanted = min(most, int(events * more))


def operating(make: Callable[[Query], Any], query: Query, source: Source, batch: int) -> Work:
    """A query over the first events of a source.

    The first event of all comes before the clock starts: an operator sets itself up when it sees the types.
    """

    def work(events: int) -> float:
        stream, operator = source.first(events, batch), make(query)
        operator.process(stream.batches[0].slice(0, 1))
        rest = replace(stream, batches=(stream.batches[0].slice(1), *stream.batches[1:]))
        return harness.clocked(partial(exhaust, operator, rest))()

    return work


class Sweep:
    """The throughput of some techniques over an axis: what the figures of the papers mostly are.

    `run` measures one place on the axis; before that it makes sure that all techniques give the same answers there.
    """

    def __init__(self, names: list[str], scale: Scale) -> None:
        self.names = names
        self.scale = scale
        self.series: dict[str, dict[float | str, Figure]] = {name: {} for name in names}
        self.fewest: dict[str, int] = {}
        self.refusals: dict[str, str] = {}

    def run(self, place: float | str, query: Query, source: Source, *, checked: int | None = None) -> None:
        """Measure all techniques that can run this; `checked` is on how many events the answers are compared."""
        makers = {}
        for name in self.names:
            obstacle = self._obstacle(name, query, source)
            if obstacle is None:
                makers[name] = CONTENDERS[name].make
            else:
                self.series[name][place] = obstacle
        sample = source.first(checked or self.scale.least, self.scale.batch)
        require_agreement(query, {"the engine": Query.operator, **makers}, sample)
        works = {name: operating(make, query, source, self.scale.batch) for name, make in makers.items()}
        for name, figure in measured(works, self.scale, min(self.scale.events, len(source))).items():
            self.series[name][place] = figure.rate
            self.fewest[name] = min(self.fewest.get(name, figure.events), figure.events)

    def _obstacle(self, name: str, query: Query, source: Source) -> str | None:
        """Why a technique cannot run a query here; None if it can."""
        contender = CONTENDERS[name]
        if contender.ordered and source.slack > 0:
            return IN_ORDER_ONLY
        try:
            contender.make(query)
        except QueryError as refused:
            self.refusals[name] = str(refused)
            return CANNOT
        return None

    def at(self, name: str, place: float | str) -> float:
        """Events per second of a technique that ran there."""
        figure = self.series[name][place]
        assert isinstance(figure, float), f"{name} has no figure at {place}"
        return figure

    def note(self) -> str:
        """On how many events each technique was measured, at the least."""
        groups: dict[int, list[str]] = {}
        for name, events in self.fewest.items():
            groups.setdefault(events, []).append(name)
        parts = [f"{', '.join(names)}: {events:,}" for events, names in sorted(groups.items(), reverse=True)]
        text = f"Events measured, at the slowest place: {'; '.join(parts)}."
        return " ".join([text, *(f"{CANNOT}: {refusal}." for refusal in self.refusals.values())])
