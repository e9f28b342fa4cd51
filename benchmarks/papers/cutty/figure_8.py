"""Figure 8: 1 to 100 sliding count windows at once.

8b   calls of combine                      8e, 8f, 8g   those of cutty, pairs+ and RA, by purpose
8c   partials and tuples kept at most      8h           partials made
8d   throughput
"""

from __future__ import annotations

import numpy as np

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.cutty.counting import Counted, Period, count, numbered, sliding
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.streams import Source
from benchmarks.papers.timing import Sweep

NAIVE = "tuple buffer"
NAMES = ["cutty", "pairs+", "pairs", "RA", NAIVE]
TIMED = [SLICING, "cutty", "pairs+", "RA"]
SPLIT = {"e": "cutty", "f": "pairs+", "g": "RA"}
MEASURES = ("mf01", "mf02", "mf03")
RANGES, SLIDES, STEP = (20_000, 80_000), (1_000, 20_000), 10
QUERIES = "queries"


def periods(number: int, share: int) -> list[Period]:
    """Random ranges and slides, multiples of ten rows; `share` makes all of them smaller."""
    random = np.random.default_rng(8)
    steps = [
        random.integers(low // STEP // share, high // STEP // share + 1, 100)
        for low, high in (RANGES, SLIDES)
    ]
    return [(int(r) * STEP, int(s) * STEP) for r, s in zip(*steps, strict=True)][:number]


def readings(setting: Setting, rows: int) -> Source:
    """Three energy measures by row number."""
    value = stream(setting, "machine", rows, per_second=100).table["value"].to_numpy()[:rows]
    table = numbered({name: value * (i + 1) for i, name in enumerate(MEASURES)})
    return Source("machine", table, table["row"].to_numpy())


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    share = scale.pick(tiny=100, small=1, full=1)
    rows = scale.pick(tiny=2_000, small=250_000, full=4_000_000)
    aggregates = {name: wr.mean(name) for name in MEASURES}
    source = readings(setting, max(rows, scale.events))
    counted: dict[str, dict[int, Counted]] = {name: {} for name in NAMES}
    sweep = Sweep(TIMED, scale)
    for number in scale.pick(tiny=(1, 5), small=(1, 10, 40, 100), full=(1, *range(10, 101, 10))):
        asked = periods(number, share)
        for name in NAMES:
            counted[name][number] = count(name, asked, aggregates, source.table.slice(0, rows))
        sweep.run(number, sliding(asked, aggregates), source, checked=rows)
    return Outcome([*counts(counted), throughput(sweep)], points(counted, sweep))


def counts(counted: dict[str, dict[int, Counted]]) -> list[Panel]:
    def series(what: str, names: list[str]) -> dict[str, dict[float | str, int]]:
        return {name: {n: getattr(found, what) for n, found in counted[name].items()} for name in names}

    made = ["cutty", "pairs+"]
    panels = [
        Panel("cutty-8b", "Figure 8b", QUERIES, "combine calls", series("total", NAMES), log_y=True),
        Panel(
            "cutty-8c", "Figure 8c", QUERIES, "partials and tuples kept", series("held", NAMES), log_y=True
        ),
    ]
    for letter, name in SPLIT.items():
        split = {part: series(part, [name])[name] for part in ("update", "merge")}
        panels.append(
            Panel(f"cutty-8{letter}", f"Figure 8{letter}, {name}", QUERIES, "combine calls", split, "stacked")
        )
    panels.append(Panel("cutty-8h", "Figure 8h", QUERIES, "partials made", series("made", made)))
    return panels


def throughput(sweep: Sweep) -> Panel:
    return Panel("cutty-8d", "Figure 8d", QUERIES, "events/s", sweep.series, log_y=True, notes=[sweep.note()])


def points(counted: dict[str, dict[int, Counted]], sweep: Sweep) -> list[findings.Finding]:
    most = list(counted["cutty"])[-1]
    at = {name: found[most] for name, found in counted.items()}
    # An event is combined once by everybody who slices: what slices differ in is what comes on top of that.
    beyond = {name: at[name].total - at[name].events for name in ("cutty", "pairs+")}
    return [
        findings.at_most(
            f"{most} queries: beyond one combine per event, cutty needs of the calls of pairs+",
            beyond["cutty"] / beyond["pairs+"],
            0.67,
            "%",
        ),
        findings.at_least("RA makes, beside cutty, calls", at["RA"].total / at["cutty"].total, 10),
        findings.at_least("RA keeps, beside cutty,", at["RA"].held / at["cutty"].held, 100),
        findings.at_least("pairs+ makes, beside cutty, partials", at["pairs+"].made / at["cutty"].made, 1.5),
        findings.at_least(
            "throughput of cutty beside pairs+", sweep.at("cutty", most) / sweep.at("pairs+", most), 2
        ),
        findings.at_least("and beside RA", sweep.at("cutty", most) / sweep.at("RA", most), 10),
    ]


EXPERIMENT = Experiment(
    "cutty-8",
    "Many periodic queries",
    "Cutty needs about half the calls and partials of pairs+, at least twice its throughput, and orders of magnitude "
    "fewer calls and less memory than RA, a tree over events.",
    "1 to 100 sliding count windows at once, ranges of 20,000 to 80,000 rows and slides of 1,000 to 20,000, multiples of "
    "ten; averages of three measures, machine. Counted over the first rows, timed over more. Pairs here shares "
    "nothing between queries; the naive technique is the tuple buffer. Everybody folds each event once, and all of "
    "these calls are counted: they are most of what cutty and pairs+ do.",
    measure,
)
