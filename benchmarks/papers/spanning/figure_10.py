"""Figure 10: events of different sizes, slices in one level beside buckets and sweeping."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.contenders import CONTENDERS
from benchmarks.papers.experiment import Experiment, Outcome, Scale, Setting
from benchmarks.papers.spanning.workload import (
    BUCKETS,
    SINGLE,
    SLICING,
    SWEEPING,
    panel,
    places,
    query,
    ratio,
    scaled,
    synthetic,
)
from benchmarks.papers.timing import Sweep
from benchmarks.support.harness import Line, Table

SLICES = 5
STEADY = 3
EVENT_SIZE = "event size in ticks"
RANGES = {"10a": 5_000, "10b": 20_000, "10c": 100_000}


def sizes(scale: Scale) -> tuple[int, ...]:
    return scale.pick(
        tiny=(100, 1_000), small=(100, 2_000, 10_000), full=(50, 100, 500, 1_000, 2_000, 5_000, 10_000)
    )


def sweep(scale: Scale, size: int) -> Sweep:
    found = Sweep(SINGLE, scale)
    for event in sizes(scale):
        found.run(event, query(size, size // SLICES), synthetic(scale.events, event))
    return found


def kept(scale: Scale) -> Table:
    """What is alive before the last windows are released: partials, and events."""
    size, lines = RANGES["10a"], []
    for event in sizes(scale):
        stream = synthetic(scale.events, event).first(scale.events, scale.batch)
        figures: dict[str, float | str | None] = {}
        for name in (SLICING, *BUCKETS, SWEEPING):
            operator = CONTENDERS[name].make(query(size, size // SLICES))
            most = 0
            for batch, watermark in zip(stream.batches, stream.watermarks, strict=True):
                operator.process(batch)
                operator.advance(watermark)
                most = max(most, operator.counters.partials + operator.counters.tuples)
            figures[name] = most
        lines.append(Line(f"{event:,}", figures))
    return Table(
        f"Partials and events that are kept, at the most, by event size, ω = {size:,}",
        tuple(lines),
        ours=SLICING,
    )


def points(found: dict[str, Sweep], space: Table) -> list[findings.Finding]:
    everywhere = [(sweep_, place) for sweep_ in found.values() for place in places(sweep_)]
    sweeping = [sweep_.at(SWEEPING, place) for sweep_, place in everywhere]
    gains = [
        ratio(s, SLICING, BUCKETS, places(s)[0]) / ratio(s, SLICING, BUCKETS, places(s)[-1])
        for s in found.values()
    ]
    first, last = space.lines[0].figures, space.lines[-1].figures
    growth = {name: float(last[name] or 0) / float(first[name] or 1) for name in (SLICING, *BUCKETS)}
    return [
        findings.at_least(
            "SE-Slicing beside the faster of the buckets, at the least",
            min(ratio(s, SLICING, BUCKETS, place) for s, place in everywhere),
            1,
        ),
        findings.at_least(
            "SE-Slicing beside Sweeping, at the least",
            min(ratio(s, SLICING, [SWEEPING], place) for s, place in everywhere),
            1,
        ),
        findings.at_most(
            "Sweeping at its fastest beside itself at its slowest", max(sweeping) / min(sweeping), STEADY
        ),
        findings.at_least("the gain over buckets with the shortest events beside the longest", max(gains), 1),
        findings.at_least(
            "what Tuple Buckets keep grows with events, beside what SE-Slicing keeps,",
            growth["Tuple Buckets"] / growth[SLICING],
            1,
        ),
    ]


def measure(setting: Setting) -> Outcome:
    scale = scaled(setting.scale)
    found = {number: sweep(scale, size) for number, size in RANGES.items()}
    space = kept(scale)
    panels = [
        panel(f"spanning-{number}", f"Figure {number}, ω = {RANGES[number]:,}", EVENT_SIZE, s)
        for number, s in found.items()
    ]
    return Outcome(panels, points(found, space), [space])


EXPERIMENT = Experiment(
    "spanning-10",
    "Throughput by event size, slices beside buckets and sweeping",
    "Longer events slow all techniques down but Sweeping, which is steady. SE-Slicing is faster than buckets and "
    "Sweeping for all ranges, and the more so the shorter events are. Tuple Buckets need more memory the longer events last.",
    "Count, sum and max over sliding windows with a step of a fifth of the range; an event ends at each tick, sizes are "
    "normal with deviation 10; windows are released 15,000 ticks after their end. Memory is counted in partials and events, "
    "not in bytes. SE-Slicing keeps max apart from count and sum, which are in two parts, and so inserts an event twice into each of its "
    "slices, where a bucket takes the three as one. windrow is this library's engine, which the paper does not have.",
    measure,
)
