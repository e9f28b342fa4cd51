"""Stores and aggregates that do not go together are refused, with a sentence that says why and what to do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from store_queue import Queue

import windrow as wr
from windrow.errors import QueryError
from windrow.rolling import Rolling

LATER = wr.aggregate(
    lift=lambda x: x, combine=lambda a, b: max(a, b), identity=0, name="later", commutative=True
)
FLOATING = wr.aggregate(
    lift=lambda x: x / 2, combine=lambda a, b: a + b, invert=lambda a, b: a - b, identity=0, name="half"
)


@pytest.mark.parametrize(
    ("store", "aggregate", "says"),
    [
        ("subtract_on_evict", wr.max("x"), "max(x) has no inverse: use slick_deque or two_stacks_lite"),
        ("subtract_on_evict", wr.variance("x"), "variance(x) has no inverse: use two_stacks_lite or daba"),
        ("subtract_on_evict", wr.approx_distinct("x"), "has no inverse"),
        ("subtract_on_evict", LATER, "later(x) has no inverse"),
        ("slick_deque_inverse", wr.first("x"), "first(x) has no inverse"),
        (
            "slick_deque",
            wr.sum("x"),
            "that of sum(x) makes new ones: use subtract_on_evict or two_stacks_lite",
        ),
        ("slick_deque", wr.histogram("x", low=0, high=1, bins=2), "makes new ones: use two_stacks_lite"),
        ("slick_deque", LATER, "that of later(x) makes new ones"),
        ("slick_deque", wr.min_count("x"), "that of min_count(x) makes new ones"),
        ("slick_deque", wr.m4("x"), "that of m4(x) makes new ones"),
        ("slick_deque", wr.median("x"), "that of quantile(x, 0.5) makes new ones"),
        ("subtract_on_evict", wr.median("x"), "quantile(x, 0.5) has no inverse: use two_stacks_lite or daba"),
        ("subtract_on_evict", wr.min_count("x"), "min_count(x) has no inverse: use two_stacks_lite or daba"),
    ],
)
def test_what_the_algebra_does_not_allow_is_refused_when_it_is_built(store, aggregate, says):
    windows = {"w": wr.tumbling(5)}
    query = wr.query(time="ts", windows=windows, aggregates={"n": wr.count(), "a": aggregate})
    running = wr.query(time="ts", windows=windows, aggregates={"n": wr.count()}).operator(store=store)
    for build in (
        lambda: Rolling(aggregate, rows=3, store=store),
        lambda: query.operator(store=store),
        lambda: running.add_aggregate("a", aggregate),
    ):
        with pytest.raises(QueryError) as refused:
            build()
        assert says in str(refused.value)


def test_counts_go_with_any_store_of_a_query():
    query = wr.query(
        time="ts",
        windows={"w": wr.sliding(3, every=1)},
        aggregates={"n": wr.count("x"), "high": wr.max("x")},
    )
    events = pa.table({"ts": range(9), "x": [1, None, 3, 4, None, 6, 7, 8, 9]})
    operator = query.operator(store="slick_deque")
    operator.process(events)
    assert operator.finish().to_pylist() == query.run(events).to_pylist()


@pytest.mark.parametrize(
    ("store", "aggregate", "type_", "says"),
    [
        ("subtract_on_evict", wr.sum("x"), pa.float64(), "leaves rounding errors behind in sum(x)"),
        ("slick_deque_inverse", wr.mean("x"), pa.float32(), "leaves rounding errors behind in mean(x)"),
        ("subtract_on_evict", FLOATING, pa.int64(), "leaves rounding errors behind in half(x)"),
    ],
)
def test_what_the_types_do_not_allow_is_refused_with_the_first_rows(store, aggregate, type_, says):
    rolling = Rolling(aggregate, rows=3, store=store)
    with pytest.raises(QueryError) as refused:
        rolling.process(pa.table({"x": pa.array([1, 2, 3], type_)}))
    assert says in str(refused.value)
    with pytest.raises(QueryError):
        Queue(aggregate, [type_], store=store, capacity=3)


def test_an_unknown_store_is_refused_with_the_names_of_all():
    with pytest.raises(
        QueryError,
        match=r"no store 'three_stacks'; did you mean 'two_stacks'\? Choose from lazy, .*daba_lite",
    ):
        Rolling(wr.max("x"), rows=3, store="three_stacks")
    with pytest.raises(QueryError, match="no store 'three_stacks'"):
        Queue(wr.max("x"), [pa.int64()], store="three_stacks", capacity=3)


def test_sums_of_integers_and_decimals_may_be_subtracted():
    for type_ in (pa.int8(), pa.decimal128(21, 2)):
        for store in ("subtract_on_evict", "slick_deque_inverse"):
            rolling = Rolling(wr.sum("x"), rows=2, every=2, store=store)
            table = pa.table({"x": pa.array([1, 2, 3, 4], pa.int64()).cast(type_)})
            assert [int(v) for v in rolling.process(table).to_pylist()] == [3, 7]
