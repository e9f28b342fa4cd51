"""Join: by hash and by predicate, inner and outer, one-sided, partitioned; against the naive model."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.support import SCHEMA, flat, stream, table_of

from tests.referee.policies import PUNCTUATION, NaiveJoin
from windrow import policies as wp
from windrow.errors import DataError, QueryError

SIDES = ["left", "right"]
OUTER = {"inner": [], "left": ["left"], "right": ["right"], "full": SIDES}
KEPT = [
    "sliding, count(0), count(1)",
    "sliding, count(1), count(1)",
    "sliding, count(5), count(1)",
    "sliding, delta(t, 6), count(1)",
]
NULLS = dict.fromkeys(SCHEMA.names)


def paired(item):
    if item is PUNCTUATION:
        return item
    left, right = (row or NULLS for row in item)
    return left | {f"{name}_right": value for name, value in right.items()}


def equal(name):
    return lambda a, b: a[name] is not None and a[name] == b[name]


CONDITIONS = {
    "hash": ({"on": "g"}, equal("g")),
    "hash with nulls": ({"on": ["x"]}, equal("x")),
    "two columns": ({"on": ["g", ("x", "x")]}, lambda a, b: equal("g")(a, b) and equal("x")(a, b)),
    "predicate": (
        {"match": lambda a, b: pc.less(a["id"], b["id"])},
        lambda a, b: a["id"] < b["id"],
    ),
    "both": (
        {"on": "g", "match": lambda a, b: a["id"].to_numpy() % 2 == b["id"].to_numpy() % 2},
        lambda a, b: a["g"] == b["g"] and a["id"] % 2 == b["id"] % 2,
    ),
    "everything": ({}, lambda a, b: True),
}


@given(
    left=st.sampled_from(KEPT),
    right=st.sampled_from(KEPT),
    condition=st.sampled_from(sorted(CONDITIONS)),
    how=st.sampled_from(sorted(OUTER)),
    partitioned=st.booleans(),
    apart=st.booleans(),
    seed=st.integers(0, 10**6),
    cut=st.integers(0, 12),
)
def test_any_join_agrees_with_the_model(left, right, condition, how, partitioned, apart, seed, cut):
    options, match = CONDITIONS[condition]
    columns = ["k"] if partitioned else []
    left, right = (window + ", partitioned" * partitioned for window in (left, right))
    specs = wp.parse(left), wp.parse(right)

    def made():
        unmatched = "apart" if apart else "together"
        return wp.Join(*specs, how=how, unmatched=unmatched, partition_by=columns, **options)

    join = made()
    naive = NaiveJoin(*specs, match, outer=OUTER[how], partition_by=(columns, columns), separate=apart)
    ports = ["matches", *(OUTER[how] if apart else [])]
    found = {port: [] for port in ports}
    batches = [thing for what, thing in stream(seed, 60) if what == "rows"]
    for place, rows in enumerate(batches):
        if place == cut:
            state, join = join.snapshot(), made()
            join.restore(state)
        for port, stretch in zip(ports, join.process(table_of(rows), port=place % 2), strict=True):
            found[port] += flat(stretch)
        naive.process(rows, SIDES[place % 2])
    expected = {"matches": [paired(item) for item in naive.given["matches"]]}
    expected |= {
        side: [pair[i] for pair in naive.given[side]] for i, side in enumerate(SIDES) if side in ports
    }
    if len(batches) > 1:
        assert found == expected


def test_equal_keys_are_found_over_a_long_stream_with_ever_new_keys():
    window = "sliding, count(500), count(1)"
    join = wp.Join(window, window, on="key")
    rng = np.random.default_rng(2)
    kept, matched, expected = ([], []), 0, 0
    for step in range(80):
        keys = (rng.integers(0, 300, 400) + 100 * step).tolist()
        mine, other = kept[step % 2], kept[1 - step % 2]
        counts = {key: other.count(key) for key in set(keys)}
        expected += sum(counts[key] for key in keys)
        mine.extend(keys)
        del mine[:-500]
        matched += len(join.process(pa.table({"key": keys}), port=step % 2)[0])
    assert matched == expected > 10_000


def test_a_row_that_meets_more_pairs_than_are_looked_at_at_once_meets_all_of_them():
    join = wp.Join(
        "sliding, count(300000), count(1)",
        "sliding, count(0), count(1)",
        match=lambda a, b: pc.equal(a["x"], b["y"]),
    )
    join.process(pa.table({"x": np.arange(300_000)}), port=0)
    out = join.process(pa.table({"y": [299_999, 7]}), port=1)[0]
    assert out.table.to_pylist() == [{"x": 299_999, "y": 299_999}, {"x": 7, "y": 7}]
    assert out.marks.tolist() == [1, 2]


def test_rows_wait_for_the_types_of_the_other_side():
    join = wp.Join("sliding, count(1), count(1)", "sliding, count(1), count(1)", on="a", how="left")
    assert len(join.process(pa.table({"a": [1, 2]}))[0]) == 0
    out = join.process(pa.table({"a": [2], "b": ["x"]}), port=1)[0]
    assert out.table.to_pylist() == [
        {"a": 1, "a_right": None, "b": None},
        {"a": 2, "a_right": 2, "b": "x"},
    ]
    assert out.marks.tolist() == [2]


def test_a_side_that_never_comes_leaves_the_other_alone():
    join = wp.Join("sliding, count(1), count(1)", "sliding, count(1), count(1)", on="a", how="left")
    join.process(pa.table({"a": [1, 2]}))
    assert join.finish()[0].table.to_pylist() == [{"a": 1}]


def test_rows_leave_by_the_clock_and_are_given_out_by_poll():
    clock = wp.VirtualClock()
    join = wp.Join(
        "sliding, time(5), count(1)", "sliding, time(5), count(1)", on="a", how="full", clock=clock
    )
    join.process(pa.table({"a": [1]}), port=0)
    join.process(pa.table({"a": [2]}), port=1)
    clock.advance(6)
    assert join.poll()[0].table.to_pylist() == [{"a": 1, "a_right": None}, {"a": None, "a_right": 2}]


def test_two_threads_feed_both_sides_while_a_real_clock_runs():
    join = wp.Join("sliding, time(0.001), count(1)", "sliding, time(0.001), count(1)", on="a", how="full")
    rows, failures = 2_000, []

    def feed(port):
        try:
            for start in range(0, rows, 50):
                join.process(pa.table({"a": list(range(start, start + 50))}), port=port)
        except Exception as problem:  # told by the assertion below
            failures.append(problem)

    threads = [threading.Thread(target=feed, args=(port,)) for port in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_columns_that_must_be_equal_have_one_type():
    join = wp.Join("sliding, count(1), count(1)", "sliding, count(1), count(1)", on=[("a", "b")])
    join.process(pa.table({"a": [1]}), port=0)
    with pytest.raises(
        QueryError, match="column 'a' of the left side is int64, and 'b' of the right side is string"
    ):
        join.process(pa.table({"b": ["x"]}), port=1)
    assert len(join.process(pa.table({"b": [1]}), port=1)[0]) == 1


def test_what_cannot_be_is_refused():
    window = "sliding, count(1), count(1)"
    with pytest.raises(QueryError, match="how is 'inner', 'left', 'right', 'full', not 'outer'"):
        wp.Join(window, window, how="outer")
    with pytest.raises(QueryError, match="unmatched is 'together' or 'apart'"):
        wp.Join(window, window, unmatched="elsewhere")
    with pytest.raises(QueryError, match="is partitioned: say by which columns"):
        wp.Join(window + ", partitioned", window)
    with pytest.raises(QueryError, match="is not partitioned"):
        wp.Join(window + ", partitioned", window, partition_by="k")
    with pytest.raises(QueryError, match="inputs 0 \\(left\\) and 1 \\(right\\), not 2"):
        wp.Join(window, window).process(pa.table({"a": [1]}), port=2)
    join = wp.Join(window, window, match=lambda a, b: [1, 2, 3])
    join.process(pa.table({"a": [1]}), port=0)
    with pytest.raises(QueryError, match="match must give true or false for each of 1 pairs"):
        join.process(pa.table({"b": [1]}), port=1)


def test_a_batch_that_is_refused_changes_nothing():
    join = wp.Join("sliding, delta(t, 9), count(1)", "sliding, count(9), count(1)", on="a")
    join.process(pa.table({"t": [5], "a": [1]}), port=0)
    with pytest.raises(DataError, match="column 't', row 0, value 3"):
        join.process(pa.table({"t": [3], "a": [1]}), port=0)
    assert len(join.process(pa.table({"a": [1]}), port=1)[0]) == 1


def test_rows_that_wait_for_the_other_side_come_back_in_their_order():
    window = "sliding, count(1), count(1)"
    first, second = (wp.Join(window, window, on="a", how="left") for _ in range(2))
    for a in range(13):
        first.process(pa.table({"a": [a]}), 0)
    second.restore(first.snapshot())
    given = [join.process(pa.table({"a": [-1]}), 1)[0].table["a"].to_pylist() for join in (first, second)]
    assert given[1] == given[0] == list(range(12))


def test_a_join_is_restored_in_place_of_what_it_holds():
    window = "sliding, count(9), count(1)"
    join = wp.Join(window, window, on="a")
    join.process(pa.table({"a": [1]}), 0)
    state = join.snapshot()
    join.process(pa.table({"a": [1, 2]}), 0)
    join.restore(state)
    assert join.process(pa.table({"a": [1, 2]}), 1)[0].table["a"].to_pylist() == [1]
