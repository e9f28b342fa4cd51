"""What Figures 3 and 4 have in common: four windows, the library beside a coupled operator, and their ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.papers.experiment import Panel, Scale
from benchmarks.papers.findings import Finding, at_least
from benchmarks.papers.timing import Work, measured
from benchmarks.papers.windowing_library.coupled import Coupled
from benchmarks.support import harness
from windrow import policies as wp

PARTITIONS = 100
LIBRARY, COUPLED = "windrow.policies", "coupled operator"
# Few rows tell whether two operators agree.
CHECKED = 20_000


@dataclass(frozen=True)
class Window:
    """A policy, with partitions or without. A window holds `size` rows in either policy: rows of a partition
    are a tick apart.
    """

    by_delta: bool
    partitioned: bool

    def __str__(self) -> str:
        return f"{'delta' if self.by_delta else 'count'}{', partitioned' if self.partitioned else ''}"

    def policy(self, size: int) -> str:
        return f"delta(t, {size - 1})" if self.by_delta else f"count({size})"

    @property
    def partition_by(self) -> str | None:
        return "k" if self.partitioned else None

    @property
    def suffix(self) -> str:
        return ", partitioned" if self.partitioned else ""


WINDOWS = [Window(by_delta, partitioned) for by_delta in (False, True) for partitioned in (False, True)]


@cache
def rows(events: int, partitioned: bool) -> pa.Table:
    """Uniform values; `t` counts the rows, or those of a partition, of which there are 100 in random order."""
    random = np.random.default_rng(7)
    if not partitioned:
        return pa.table({"t": np.arange(events), "k": np.zeros(events, np.int64), "x": random.random(events)})
    k = random.integers(0, PARTITIONS, events)
    order = np.argsort(k, kind="stable")
    starts = np.searchsorted(k[order], k[order])
    t = np.empty(events, np.int64)
    t[order] = np.arange(events) - starts
    return pa.table({"t": t, "k": k, "x": random.random(events)})


def working(make: Callable[[], Any], table: pa.Table, batch: int) -> Work:
    """An operator over the first rows of a table; it has seen one row when the clock starts."""

    def work(events: int) -> float:
        operator = make()
        operator.process(table.slice(0, 1))
        parts = [table.slice(i, min(batch, events - i)) for i in range(1, events, batch)]

        def run() -> None:
            for part in parts:
                operator.process(part)

        return harness.clocked(run)()

    return work


Maker = Callable[[Window, int], tuple[Callable[[], wp.Aggregate], Callable[[], Coupled]]]


class Comparison:
    """Rates of the library and of coupled operators, by window and size."""

    def __init__(self, scale: Scale, make: Maker) -> None:
        self._scale, self._make = scale, make
        self.rates: dict[str, dict[float | str, float | str | None]] = {}
        self.ratios: dict[str, dict[float | str, float | str | None]] = {}

    def run(self, window: Window, size: int) -> None:
        """Make sure that both give the same answers, and measure them in turns."""
        scale = self._scale
        table = rows(scale.events, window.partitioned)
        ours, theirs = self._make(window, size)
        self._agree(ours(), theirs(), table.slice(0, min(CHECKED, scale.events)))
        works = {
            LIBRARY: working(ours, table, scale.batch),
            COUPLED: working(theirs, table, scale.batch),
        }
        found = measured(works, scale, scale.events)
        for name, figure in found.items():
            self.rates.setdefault(f"{name}, {window}", {})[size] = figure.rate / 1e6
        self.ratios.setdefault(str(window), {})[size] = found[LIBRARY].rate / found[COUPLED].rate

    def _agree(self, ours: wp.Aggregate, theirs: Coupled, table: pa.Table) -> None:
        half = len(table) // 2
        for part in (table.slice(0, half), table.slice(half)):
            answers = ours.process(part)[0].table["answer"].to_numpy()
            np.testing.assert_allclose(answers, theirs.process(part), rtol=1e-12)

    def panels(self, number: int, title: str) -> list[Panel]:
        """The ratio, as the paper plots it, and the rates behind it."""
        size = "rows in a window"
        name = f"windowing-{number}"
        head = f"Figure {number}, {title}"
        return [
            Panel(name, head, size, "times the throughput of a coupled operator", self.ratios, log_x=True),
            Panel(f"{name}-rates", head, size, "M events/s", self.rates, log_x=True, log_y=True),
        ]

    def least(self) -> float:
        """The worst ratio of all."""
        return min(float(v) for series in self.ratios.values() for v in series.values() if v is not None)

    def at(self, place: int) -> float:
        """The mean ratio of the four windows at the smallest (0) or the largest (-1) size."""
        return float(np.mean([float(list(series.values())[place] or 0) for series in self.ratios.values()]))


def no_slower(comparison: Comparison) -> Finding:
    """What both figures are to show: that windows apart from operators cost nothing."""
    return at_least("at its worst, the library beside a coupled operator", comparison.least(), 1)
