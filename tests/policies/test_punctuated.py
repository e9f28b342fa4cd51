"""Many punctuations in one stretch give what they give one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.support import flat, stream, table_of

import windrow as wr
from windrow import policies as wp
from windrow.errors import DataError

PLAIN, PARTITIONED = "tumbling, punct()", "tumbling, punct(), partitioned"
SOME = {"n": wr.count(), "total": wr.sum("x")}
OPERATORS = {
    "aggregate": lambda: wp.Aggregate(PLAIN, SOME),
    "with a median": lambda: wp.Aggregate(PLAIN, {"middle": wr.median("x")}),
    "by partition": lambda: wp.Aggregate(PARTITIONED, SOME, partition_by="k"),
    "by partition and group": lambda: wp.Aggregate(PARTITIONED, SOME, partition_by="k", group_by="g"),
    "with few partitions": lambda: wp.Aggregate(
        "tumbling, punct(), partitioned, partitionCount(2)", SOME, partition_by="k"
    ),
    "sort": lambda: wp.Sort(PLAIN, ["g", "x"]),
    "sort by partition": lambda: wp.Sort(PARTITIONED, ["x"], partition_by="k"),
    "deduplicate": lambda: wp.Deduplicate(PLAIN, "g"),
    "deduplicate by partition": lambda: wp.Deduplicate(PARTITIONED, "g", partition_by="k"),
}


@given(name=st.sampled_from(sorted(OPERATORS)), seed=st.integers(0, 10**6), data=st.data())
def test_many_at_once_are_as_many_one_by_one(name, seed, data):
    at_once, one_by_one = OPERATORS[name](), OPERATORS[name]()
    for what, rows in stream(seed, 80):
        if what != "rows":
            continue
        marks = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=8)))
        stretch = wp.Punctuated.of(table_of(rows), marks)
        expected = []
        for part, ends in stretch.parts():
            expected += flat(one_by_one.process(wp.Punctuated.of(part, [part.num_rows] if ends else []))[0])
        assert flat(at_once.process(stretch)[0]) == expected


def test_a_null_key_anywhere_refuses_the_whole_stretch():
    operator = wp.Aggregate(PARTITIONED, {"n": wr.count()}, partition_by="k")
    rows = pa.table({"k": ["a", "a", "b", None, "c", "d"]})
    with pytest.raises(DataError, match="column 'k', row 3"):
        operator.process(wp.Punctuated.of(rows, [1, 2, 3, 4, 5]))
    assert len(operator.window) == 0
