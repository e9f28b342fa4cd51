"""Figure 19: the median of more and more windows, on values of which many, or few, are distinct."""

from __future__ import annotations

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import (
    CONCURRENT,
    LATE_SHARE,
    LONGEST_DELAY,
    THROUGHPUT,
    query,
    tumbling,
    with_session,
)
from benchmarks.papers.streams import disordered
from benchmarks.papers.timing import Sweep

RIVALS = ["tuple buckets", "tuple buffer"]
NAMES = [SLICING, *RIVALS, "aggregate tree"]


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    panels, found = [], {}
    for name in ("football", "machine"):
        events = min(scale.events, scale.pick(tiny=4_000, small=1_000_000, full=4_000_000))
        source = disordered(stream(setting, name, events), LATE_SHARE, LONGEST_DELAY)
        sweep = found[name] = Sweep(NAMES, scale)
        for count in scale.pick(tiny=(1, 5), small=(1, 10, 100), full=(1, 5, 10, 20, 50, 100)):
            sweep.run(count, query(with_session(tumbling(count)), wr.median("value")), source)
        panels.append(
            Panel(
                f"scotty-19-{name}",
                f"Figure 19, median, {name}",
                CONCURRENT,
                THROUGHPUT,
                sweep.series,
                log_x=True,
                log_y=True,
                notes=[sweep.note()],
            )
        )
    return Outcome(panels, points(found["football"], found["machine"]))


def points(football: Sweep, machine: Sweep) -> list[findings.Finding]:
    most = list(football.series[SLICING])[-1]

    def ahead(sweep: Sweep) -> float:
        return sweep.at(SLICING, most) / max(sweep.at(name, most) for name in RIVALS)

    return [
        findings.at_least(
            f"football, {most} windows: general slicing beside the better of buckets and buffer",
            ahead(football),
            1,
        ),
        findings.at_least("machine", ahead(machine), 1),
        findings.at_least(
            "general slicing on the 37 values of machine, beside the 84,232 of football",
            machine.at(SLICING, most) / football.at(SLICING, most),
            1,
        ),
    ]


EXPERIMENT = Experiment(
    "scotty-19",
    "Throughput of the median",
    "Slicing is ahead of buckets and buffers for the median too, as it sorts each slice once for all windows, and it is "
    "faster where few values are distinct, as equal ones are kept once.",
    "Exact median of tumbling windows of 1 to 20 s and a session, 20 % of the events up to 2 s late, football (up to "
    "84,232 distinct values) and machine (37). Rivals keep tuples and sort each window by itself.",
    measure,
)
