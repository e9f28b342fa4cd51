"""Figure 22: several instances of the operator beside each other, a thread each.

The loops of all techniques are compiled and run without Python's lock, so that threads use all cores. An instance
takes its stream in again and again for a while; it starts when all others are ready.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import CONTENDERS, SLICING, exhaust, require_agreement
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Scale, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import query, tumbling
from benchmarks.papers.streams import Source
from benchmarks.papers.timing import operating, sizing
from benchmarks.support.harness import Figure

BUCKETS = "aggregate buckets"
NAMES = [SLICING, BUCKETS]
WINDOWS = 80
DEGREES = (1, 2)
THROUGHPUT, LOAD = "events/s, all instances", "CPU load, %"
QUERY = query(tumbling(WINDOWS), wr.m4("value"))


def together(name: str, degree: int, source: Source, scale: Scale) -> tuple[float, float]:
    """Events per second of all instances, and their CPU load in percent of one core."""
    make = CONTENDERS[name].make
    events, _ = sizing(operating(make, QUERY, source, scale.batch), scale, min(len(source), scale.events))
    given = source.first(events, scale.batch)
    ready = Barrier(degree)

    def run() -> int:
        exhaust(make(QUERY), given)
        return events

    with ThreadPoolExecutor(degree) as threads:
        seconds = scale.pick(tiny=0.05, small=1.0, full=5.0)
        found = [threads.submit(instance, run, ready, seconds) for _ in range(degree)]
        busy, begin = time.process_time(), time.perf_counter()
        rate = sum(future.result() for future in found)
        load = (time.process_time() - busy) / (time.perf_counter() - begin)
    return rate, 100 * load


def instance(run: Callable[[], int], ready: Barrier, seconds: float) -> float:
    """Events per second of one instance."""
    ready.wait()
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        done += run()
    return done / (time.perf_counter() - begin)


def measure(setting: Setting) -> Outcome:
    rates: dict[str, dict[float | str, Figure]] = {name: {} for name in NAMES}
    loads: dict[str, dict[float | str, Figure]] = {name: {} for name in NAMES}
    scale = setting.scale
    source = stream(setting, "football", scale.events)
    require_agreement(
        QUERY, {name: CONTENDERS[name].make for name in NAMES}, source.first(scale.least, scale.batch)
    )
    for name in NAMES:
        for degree in scale.pick(tiny=DEGREES, small=DEGREES, full=(*DEGREES, 4)):
            rates[name][degree], loads[name][degree] = together(name, degree, source, scale)
    axis = "parallel instances"
    cores = len(os.sched_getaffinity(0))
    notes = [f"This machine has {cores} cores."]
    panels = [
        Panel(
            "scotty-22a", "Figure 22a, M4, 80 windows each", axis, THROUGHPUT, rates, log_y=True, notes=notes
        ),
        Panel("scotty-22b", "Figure 22b", axis, LOAD, loads, notes=notes),
    ]
    return Outcome(panels, points(rates))


def points(rates: dict[str, dict[float | str, Figure]]) -> list[findings.Finding]:
    one, two = ({name: float(rates[name][degree]) for name in NAMES} for degree in DEGREES)  # type: ignore[arg-type]
    return [
        findings.at_least(
            "two instances of general slicing do, beside one,", two[SLICING] / one[SLICING], 1.6
        ),
        findings.at_least("two of buckets", two[BUCKETS] / one[BUCKETS], 1.6),
        findings.at_least(
            "two instances of slicing do, beside two of buckets,", two[SLICING] / two[BUCKETS], 10
        ),
    ]


EXPERIMENT = Experiment(
    "scotty-22",
    "Parallel instances",
    "Throughput grows linearly with the cores for slicing and for buckets, and slicing is an order of magnitude ahead at "
    "any number of them.",
    "The dashboard's workload: M4 over 80 tumbling windows of 1 to 20 s, football in order, for each instance, which is a "
    "thread of its own.",
    measure,
)
