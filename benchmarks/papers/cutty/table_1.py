"""Table 1: how much is kept, and how often `combine` is called per event and per window, beside the formulas.

The formulas are worst cases for one window of range r and slide s. A merge of n partials takes n - 1 calls; a tree
is asked for a range that may lie anywhere, so that its merge takes up to twice the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.cutty.counting import Counted, Period, count, numbered
from benchmarks.papers.experiment import Experiment, Outcome, Setting
from benchmarks.support.harness import Line, Table

Formula = Callable[[int, int], float]
SLACK = 2  # partials: the slice that is being filled, and one that a watermark has yet to let go


def logarithm(n: float) -> int:
    """Levels of a tree over so many leaves: a whole number of them."""
    return math.ceil(math.log2(max(2.0, n)))


@dataclass(frozen=True)
class Formulas:
    """Table 1 for one technique, with the store that it has here; `update` is amortised."""

    store: str
    space: Formula
    update: Formula
    merge: Formula


FORMULAS = {
    "cutty": Formulas(
        "eager",
        lambda r, s: math.ceil(2 * r / s) + 1,
        lambda r, s: (logarithm(math.ceil(r / s)) - 1) / s + 1,
        lambda r, s: logarithm(math.ceil(r / s)),
    ),
    "pairs": Formulas(
        "lazy", lambda r, s: math.ceil(2 * r / s), lambda r, s: 1, lambda r, s: math.ceil(2 * r / s)
    ),
    "pairs+": Formulas(
        "eager",
        lambda r, s: math.ceil(4 * r / s),
        lambda r, s: 2 * (logarithm(math.ceil(2 * r / s)) - 1) / s + 1,
        lambda r, s: logarithm(math.ceil(2 * r / s)),
    ),
    "panes": Formulas(
        "lazy",
        lambda r, s: math.ceil(r / math.gcd(r, s)),
        lambda r, s: 1,
        lambda r, s: math.ceil(r / math.gcd(r, s)),
    ),
    "RA": Formulas("eager", lambda r, s: 2 * r, lambda r, s: logarithm(r), lambda r, s: logarithm(r)),
}
PERIODS: tuple[Period, ...] = ((60, 10), (10, 3), (100, 30), (1_000, 7))


def measure(setting: Setting) -> Outcome:
    rows = setting.scale.pick(tiny=1_000, small=5_000, full=20_000)
    events = numbered({"value": np.random.default_rng(1).integers(0, 1_000, rows)})
    tables, found = [], {}
    for period in setting.scale.pick(tiny=PERIODS[:2], small=PERIODS, full=PERIODS):
        counted = {name: count(name, [period], {"sum": wr.sum("value")}, events) for name in FORMULAS}
        tables.append(table(period, counted))
        found[period] = counted
    return Outcome([], points(found), tables)


def table(period: Period, counted: dict[str, Counted]) -> Table:
    r, s = period
    lines = []
    for name, formulas in FORMULAS.items():
        seen = counted[name]
        figures = {
            "kept, counted": seen.held,
            "formula": formulas.space(r, s),
            "combines per event": seen.update / seen.events,
            "formula ": float(formulas.update(r, s)),
            "combines per window, at most": seen.most_merged,
            "formula  ": float(formulas.merge(r, s)),
        }
        lines.append(Line(f"{name} ({formulas.store})", figures))
    return Table(f"Range {r:,}, slide {s}", tuple(lines), ours="kept, counted")


def points(found: dict[Period, dict[str, Counted]]) -> list[findings.Finding]:
    space, update, merge = [], [], []
    for (r, s), counted in found.items():
        for name, seen in counted.items():
            formulas, twice = FORMULAS[name], 2 if FORMULAS[name].store == "eager" else 1
            space.append((seen.held - SLACK) / formulas.space(r, s))
            # A path from leaf to root is a join per level, where the formula has one less per slice.
            update.append(seen.update / seen.events / (formulas.update(r, s) + 2 / s))
            merge.append(seen.most_merged / (twice * formulas.merge(r, s)))
    smallest = [min(counted, key=lambda name: counted[name].held) for counted in found.values()]
    trees = [seen for counted in found.values() for seen in [(counted["cutty"], counted["RA"])]]
    less = min(ra.total / cutty.total for cutty, ra in trees)
    lazy = [name for name in FORMULAS if FORMULAS[name].store == "lazy"]
    return [
        findings.at_most("space beside the formula (less two partials), at the most", max(space), 1),
        findings.at_most("combines per event (and two more per slice)", max(update), 1),
        findings.at_most("combines per window (twice the logarithm for trees)", max(merge), 1),
        findings.Finding(
            all(
                counted["cutty"].held <= min(counted["pairs+"].held, counted["RA"].held)
                for counted in found.values()
            ),
            f"of the eager techniques cutty keeps least in all of {len(found)} cases (least of all, with the "
            f"lazy ones {' and '.join(lazy)}: {', '.join(smallest)})",
        ),
        findings.at_least("RA makes, beside cutty, calls, at the least", less, 1),
    ]


EXPERIMENT = Experiment(
    "cutty-table-1",
    "Space and calls of combine, counted",
    "For a window of range r and slide s, Cutty keeps as many partials as there are open windows, pairs twice and panes "
    "r / gcd(r, s) of them, and a tree over events 2 r; calls of combine per event and per window follow.",
    "One sliding window of rows, a sum, a batch for each edge. Each technique has the store that it has in this "
    "library: pairs and panes merge lazily, cutty, pairs+ and RA keep a tree. windrow's own engine is counted in "
    "[benchmarks.md](benchmarks.md), under *slices*.",
    measure,
)
