"""What do operators over policy windows take in?

Events per second of each operator of `windrow.policies`, embedded, on one core, in batches of a million rows
(joins: 100,000 a side, in turns). `Aggregate` computes a mean; keys are random integers. Results are Arrow
tables, and are made. Before anything is timed, a small run is compared with the naive model
(`tests.referee.policies`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, Target, at_least, clocked, race, rate
from tests.referee import policies as naive
from windrow import policies as wp

RATE = "M events/s"
LIMIT = "limit, M/s"
NOTE = "Limit: numpy.sum over the columns that are read, in the same run."
MEAN = {"mean": wr.mean("x")}
JOINED = 10_000
CHECKED = 300

Make = Callable[[], Any]


def rows(events: int, keys: int = 1) -> pa.Table:
    random = np.random.default_rng(11)
    x = random.random(events)
    return pa.table({"k": random.integers(0, keys, events), "x": x, "n": np.arange(events)})


def batches(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(i, size) for i in range(0, table.num_rows, size)]


def feed(operator: Any, parts: list[pa.Table]) -> None:
    for part in parts:
        operator.process(part)


def feed_both(join: wp.Join, parts: list[pa.Table]) -> None:
    """Parts go to the left and to the right side in turns."""
    for place, part in enumerate(parts):
        join.process(part, port=place % 2)


def check(operator: Any, model: naive.NaiveOperator, keys: int) -> None:
    """The operator gives out what its model does, on few rows."""
    table = rows(CHECKED, keys)
    ours = operator.process(table)[0].table.to_pylist()
    model.process(table.to_pylist())
    theirs = [row for row in model.given if row is not naive.PUNCTUATION]
    if len(ours) != len(theirs):
        raise AssertionError(f"{len(ours)} rows in the place of {len(theirs)}")
    for mine, expected in zip(ours, theirs, strict=True):
        if any(abs(mine[name] - value) > 1e-12 for name, value in expected.items()):
            raise AssertionError(f"{mine} in the place of {expected}")


def timed(
    make: Make, parts: list[pa.Table], run: Callable[[Any, list[pa.Table]], None]
) -> Callable[[], float]:
    """A contender that begins anew each time, and has seen some rows when the clock starts."""

    def work() -> float:
        operator, first = make(), parts[: 2 if run is feed_both else 1]
        run(operator, [part.slice(0, 1) for part in first])
        rest = [part.slice(1) for part in first] + parts[len(first) :]
        return clocked(partial(run, operator, rest))()

    return work


def line(
    name: str,
    make: Make,
    table: pa.Table,
    read: tuple[str, ...],
    scale: Scale,
    target: Target | None = None,
    run: Callable[[Any, list[pa.Table]], None] = feed,
    size: int | None = None,
) -> Line:
    columns = [table[column].to_numpy() for column in read]
    contenders = {
        RATE: timed(make, batches(table, size or scale.batch), run),
        LIMIT: clocked(lambda: [column.sum() for column in columns]),
    }
    times = race(contenders, scale)
    figures: dict[str, Figure] = {n: rate(table.num_rows, seconds) for n, seconds in times.items()}
    return Line(name, figures, target, headline=target is not None)


def aggregates(scale: Scale) -> Table:
    """Means of tumbling and sliding windows."""
    lines = []
    for keys in (10, 10_000):
        window = "tumbling, count(100), partitioned"
        make = partial(wp.Aggregate, window, MEAN, partition_by="k")
        check(make(), naive.NaiveAggregate(wp.parse(window), MEAN, partition_by=["k"]), 2)
        name = f"Aggregate, tumbling count(100), mean, {keys:,} partitions"
        lines.append(line(name, make, rows(scale.events, keys), ("k", "x"), scale, at_least(RATE, 30)))
    table = rows(scale.events)
    for window, target in (
        ("tumbling, count(100)", None),
        ("tumbling, delta(n, 99)", None),
        ("sliding, count(100), count(10)", at_least(RATE, 10)),
        ("sliding, count(1000), count(1)", None),
        ("sliding, delta(n, 99), delta(n, 9)", None),
    ):
        make = partial(wp.Aggregate, window, MEAN)
        check(make(), naive.NaiveAggregate(wp.parse(window), MEAN), 1)
        lines.append(line(f"Aggregate, {window}, mean", make, table, ("x",), scale, target))
    window = "tumbling, count(100)"
    make = partial(wp.Aggregate, window, MEAN, group_by="k")
    check(make(), naive.NaiveAggregate(wp.parse(window), MEAN, group_by=["k"]), 10)
    lines.append(line(f"Aggregate, {window}, mean by group", make, rows(scale.events, 10), ("k", "x"), scale))
    return Table("Aggregate", tuple(lines), ours=RATE, beside=LIMIT, note=NOTE)


def others(scale: Scale) -> Table:
    """Sort, de-duplication and joins."""
    events = scale.events // 4
    table = rows(events, 100_000)
    progressive, batch = "sliding, count(1000), count(1)", "tumbling, count(1000)"
    history, side = "sliding, count(10000), count(1)", f"sliding, count({JOINED}), count(1)"
    small = wp.parse("sliding, count(5), count(1)")
    check(wp.Sort(small, "x"), naive.NaiveSort(small, [("x", "ascending")]), 1)
    check(wp.Deduplicate(small, "k"), naive.NaiveDeduplicate(small, ["k"]), 9)
    check_join()
    joined = rows(events, JOINED).select(["k", "x"])
    lines = [
        line(
            "Sort, progressive, of 1,000",
            partial(wp.Sort, progressive, "x"),
            table,
            ("x",),
            scale,
            at_least(RATE, 2),
        ),
        line("Sort, batches of 1,000", partial(wp.Sort, batch, "x"), table, ("x",), scale),
        line("Deduplicate, the last 10,000", partial(wp.Deduplicate, history, "k"), table, ("k",), scale),
        line(
            "Join, equality, two windows of 10,000",
            partial(wp.Join, side, side, on="k"),
            joined,
            ("k",),
            scale,
            at_least(RATE, 2),
            run=feed_both,
            size=min(100_000, events // 4),
        ),
    ]
    return Table("Other operators", tuple(lines), ours=RATE, beside=LIMIT, note=NOTE)


def check_join() -> None:
    """As many matches as the model finds."""
    small = wp.parse("sliding, count(7), count(1)")
    join = wp.Join(small, small, on="k")
    model = naive.NaiveJoin(small, small, lambda a, b: bool(a["k"] == b["k"]))
    found = 0
    for place, (low, high) in enumerate(pairwise(range(0, CHECKED, 20))):
        part = rows(CHECKED, 5).slice(low, high - low)
        found += len(join.process(part, port=place % 2)[0])
        model.process(part.to_pylist(), ("left", "right")[place % 2])
    expected = sum(item is not naive.PUNCTUATION for item in model.given["matches"])
    if found != expected:
        raise AssertionError(f"{found} matches in the place of {expected}")


def measure(scale: Scale) -> list[Table]:
    return [aggregates(scale), others(scale)]
