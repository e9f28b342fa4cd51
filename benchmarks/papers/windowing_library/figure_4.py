"""Figure 4: a percentile of sliding windows, for which all rows of the window are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Setting
from benchmarks.papers.windowing_library.coupled import Coupled
from benchmarks.papers.windowing_library.workload import PARTITIONS, WINDOWS, Comparison, Window, no_slower
from windrow import policies as wp

SHARE = 0.9
EVERY = 10


def makers(window: Window, size: int) -> tuple[Callable[[], wp.Aggregate], Callable[[], Coupled]]:
    text = f"sliding, {window.policy(size)}, {window.policy(EVERY)}{window.suffix}"
    answer = {"answer": wr.quantile("x", SHARE, interpolation="lower")}
    ours = partial(wp.Aggregate, text, answer, partition_by=window.partition_by)
    less = 1 if window.by_delta else 0
    theirs = partial(
        Coupled, size - less, window.by_delta, window.partitioned, PARTITIONS, EVERY - less, SHARE
    )
    return ours, theirs


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    comparison = Comparison(scale, makers)
    for size in scale.pick(tiny=(10, 100), small=(10, 100, 1_000), full=(10, 100, 1_000, 10_000)):
        for window in WINDOWS:
            comparison.run(window, size)
    first, last = comparison.at(0), comparison.at(-1)
    close = findings.at_most(
        f"from the smallest to the largest window, how far the two lie apart goes from {findings.amount(apart(first))} to",
        apart(last),
        max(apart(first), 1.0),
    )
    return Outcome(comparison.panels(4, "percentile of sliding windows"), [no_slower(comparison), close])


def apart(ratio: float) -> float:
    """How many times as fast the faster one is."""
    return max(ratio, 1 / ratio)


EXPERIMENT = Experiment(
    "windowing-4",
    "The library beside a coupled operator: sliding windows, percentile",
    "With an aggregate that needs the whole window, the library is faster than a coupled operator for small windows, and the gap narrows to nothing for "
    "large ones, where the operator's own work dominates.",
    "The 0.9 quantile of sliding windows by count and by delta, every 10 rows, with 100 partitions and without. The rival is a compiled loop "
    "written by hand, with a ring of rows that it copies and sorts at each trigger.",
    measure,
)
