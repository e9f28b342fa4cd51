"""Every window configuration that the paper counts, each against the naive model of Tables I and II.

Aggregate   52 = (4 tumbling + 3 x 3 sliding) x (not partitioned, or partitioned with one of 3 partition evictions)
Join        90 = 3 x 3 evictions x (not partitioned, or 3 x 3 partition evictions of the two sides)
Sort        44 = 4 tumbling x 4 x (the last window sorted or not) + 3 sliding x 4. The paper gives the number and does
                 not list them; this split is our reading of it
"""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from policies.support import flat, run, stream, table_of

import windrow as wr
from tests.referee.policies import PUNCTUATION, NaiveAggregate, NaiveJoin, NaiveSort
from windrow import policies as wp

TUMBLING = {"count": wp.count(3), "delta": wp.delta("t", 4), "time": wp.time(5), "punct": wp.punct()}
EVICTIONS = {"count": wp.count(4), "delta": wp.delta("t", 5), "time": wp.time(6)}
TRIGGERS = {"count": wp.count(2), "delta": wp.delta("t", 2), "time": wp.time(3)}
PARTITIONS = {"partitions": wp.partition_count(2), "tuples": wp.tuple_count(6), "age": wp.partition_age(4)}
EACH = {
    "plain": {},
    **{name: {"partitioned": True, "partition_eviction": p} for name, p in PARTITIONS.items()},
}
SEEDS = range(4)


def windows():
    for how, partitions in EACH.items():
        for name, policy in TUMBLING.items():
            yield f"tumbling-{name}-{how}", wp.tumbling(policy, **partitions)
        for (name, eviction), (when, trigger) in product(EVICTIONS.items(), TRIGGERS.items()):
            yield f"sliding-{name}-{when}-{how}", wp.sliding(eviction, trigger, **partitions)


AGGREGATE = dict(windows())
SORT = {
    **{
        (name, last): spec for name, spec in AGGREGATE.items() if "tumbling" in name for last in (True, False)
    },
    **{
        (f"sliding-{name}-{how}", True): wp.sliding(eviction, wp.count(1), **partitions)
        for (name, eviction), (how, partitions) in product(EVICTIONS.items(), EACH.items())
    },
}
BOTH = [("plain", "plain"), *product(PARTITIONS, PARTITIONS)]
JOIN = {
    (left, right, *how): (
        wp.sliding(EVICTIONS[left], wp.count(1), **EACH[how[0]]),
        wp.sliding(EVICTIONS[right], wp.count(1), **EACH[how[1]]),
    )
    for left, right, how in product(EVICTIONS, EVICTIONS, BOTH)
}
# With the last one, windows keep their rows; without it, partials.
FOLDED = {"n": wr.count(), "total": wr.sum("x"), "largest": wr.max("x"), "last": wr.last("g")}
SORTED = FOLDED | {"middle": wr.median("x")}


def test_the_configurations_are_as_many_as_the_paper_counts():
    counts = {"aggregate": len(AGGREGATE), "join": len(JOIN), "sort": len(SORT)}
    print(counts)
    assert counts == {"aggregate": 52, "join": 90, "sort": 44}
    assert len(set(AGGREGATE.values())) == 52
    assert len(set(JOIN.values())) == 90


def by(spec):
    return ["k"] if spec.partitioned else []


@pytest.mark.parametrize(
    ("columns", "group"), [(FOLDED, []), (SORTED, []), (SORTED, ["g"])], ids=["folded", "sorted", "grouped"]
)
@pytest.mark.parametrize("name", AGGREGATE)
def test_aggregate(name, columns, group):
    spec = AGGREGATE[name]
    options = {"partition_by": by(spec), "group_by": group}
    for seed in SEEDS:
        made = partial(wp.Aggregate, spec, columns, partial_windows=seed % 2 == 0, **options)
        naive = NaiveAggregate(spec, columns, partial=seed % 2 == 0, **options)
        given, expected = run(made, naive, stream(seed))
        assert given == expected, f"{spec}, stream {seed}"


@pytest.mark.parametrize(("name", "last"), SORT)
def test_sort(name, last):
    spec = SORT[name, last]
    order = [("x", "descending"), ("g", "ascending")]
    for seed in SEEDS:
        made = partial(wp.Sort, spec, order, partition_by=by(spec), partial=last)
        naive = NaiveSort(spec, order, partition_by=by(spec), partial=last)
        given, expected = run(made, naive, stream(seed))
        assert given == expected, f"{spec}, stream {seed}"


@pytest.mark.parametrize("name", JOIN, ids="-".join)
def test_join(name):
    left, right = JOIN[name]
    columns = by(left)
    for seed in SEEDS:
        clock = wp.VirtualClock()
        how = ["inner", "left", "right", "full"][seed % 4]
        join = wp.Join(left, right, on="g", how=how, partition_by=columns, clock=clock)
        naive = NaiveJoin(
            left,
            right,
            lambda a, b: a["g"] == b["g"],
            outer={"inner": [], "left": ["left"], "right": ["right"], "full": ["left", "right"]}[how],
            partition_by=(columns, columns),
        )
        given, expected = [], []
        for place, (what, thing) in enumerate(stream(seed, 60)):
            if what == "rows":
                side = place % 2
                given.append(flat(join.process(table_of(thing), port=side)[0]))
                naive.process(thing, ["left", "right"][side])
            elif what == "pass":
                clock.advance(thing)
                # At one instant, it does not matter which side's rows leave first.
                given.append(sorted(flat(join.poll()[0]), key=str))
                naive.advance(clock.now())
            expected.append([paired(item) for item in naive.given["matches"]])
            if what == "pass":
                expected[-1].sort(key=str)
            naive.given["matches"].clear()
        together = [[item for step in steps for item in step] for steps in (given, expected)]
        assert together[0] == together[1], f"{left} and {right}, stream {seed}"


def paired(item):
    """A pair of rows as one row with the columns of both."""
    if item is PUNCTUATION:
        return item
    left, right = (row or dict.fromkeys(["id", "t", "k", "g", "x"]) for row in item)
    return left | {f"{name}_right": value for name, value in right.items()}
