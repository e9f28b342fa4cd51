"""Figure 3: the average of tumbling windows, which a summarizer computes as rows come."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import windrow as wr
from benchmarks.papers.experiment import Experiment, Outcome, Setting
from benchmarks.papers.windowing_library.coupled import Coupled
from benchmarks.papers.windowing_library.workload import PARTITIONS, WINDOWS, Comparison, Window, no_slower
from windrow import policies as wp


def makers(window: Window, size: int) -> tuple[Callable[[], wp.Aggregate], Callable[[], Coupled]]:
    text = f"tumbling, {window.policy(size)}{window.suffix}"
    ours = partial(wp.Aggregate, text, {"answer": wr.mean("x")}, partition_by=window.partition_by)
    limit = size - 1 if window.by_delta else size
    return ours, partial(Coupled, limit, window.by_delta, window.partitioned, PARTITIONS)


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    comparison = Comparison(scale, makers)
    for size in scale.pick(
        tiny=(10, 100), small=(10, 100, 1_000, 10_000), full=(10, 100, 1_000, 10_000, 100_000)
    ):
        for window in WINDOWS:
            comparison.run(window, size)
    return Outcome(comparison.panels(3, "average of tumbling windows"), [no_slower(comparison)])


EXPERIMENT = Experiment(
    "windowing-3",
    "The library beside a coupled operator: tumbling windows, average",
    "Windows apart from operators, with policies and events between them, bring no overhead: the library's aggregate is around five times "
    "as fast as one whose windows are woven into it, because the latter was hard to optimise.",
    "The mean of tumbling windows by count and by delta, with 100 partitions and without. The rival is a compiled loop, written by hand for "
    "these four windows and no other, which keeps the same sums; so there is nothing for it to be slowed down by. The paper's "
    "rival, SPADE, handed every row to another thread.",
    measure,
)
