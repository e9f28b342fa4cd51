"""Aggregate: against the naive model over streams of all kinds, and what it refuses."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.support import run, stream, table_of

import windrow as wr
from tests.referee.policies import NaiveAggregate
from windrow import policies as wp
from windrow.errors import DataError, QueryError

COLUMNS = {
    "n": wr.count(),
    "values": wr.count("x"),
    "total": wr.sum("x"),
    "mean": wr.mean("x"),
    "first": wr.first("x"),
    "last": wr.last("g"),
    "least": wr.min("g"),
    "middle": wr.median("x"),
    "all": wr.collect("x"),
    "kinds": wr.distinct("g"),
    "often": wr.approx_distinct("x"),
}
SIZES = st.integers(1, 6)
SHOWN = st.one_of(SIZES.map(wp.count), SIZES.map(lambda n: wp.delta("t", n - 1)), SIZES.map(wp.time))
PARTITIONS = st.one_of(
    st.none(),
    st.integers(1, 3).map(wp.partition_count),
    st.integers(1, 9).map(wp.tuple_count),
    st.integers(1, 5).map(wp.partition_age),
)


@st.composite
def specs(draw):
    """Any window."""
    partitioned = draw(st.booleans())
    eviction = draw(PARTITIONS) if partitioned else None
    asks = isinstance(eviction, (type(wp.partition_count(1)), type(wp.tuple_count(1))))
    orders = ["least recently updated", "least frequently updated", "oldest"]
    options = {
        "partitioned": partitioned,
        "partition_eviction": eviction,
        "selection": draw(st.sampled_from(orders)) if asks else orders[0],
    }
    if draw(st.booleans()):
        return wp.tumbling(draw(st.one_of(SHOWN, st.just(wp.punct()))), **options)
    return wp.sliding(draw(SHOWN), draw(SHOWN), **options)


@given(
    spec=specs(),
    group=st.sampled_from([[], ["g"], ["g", "x"]]),
    chosen=st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True),
    partial=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_window_and_any_aggregates_agree_with_the_model(spec, group, chosen, partial, seed):
    aggregates = {name: COLUMNS[name] for name in chosen}
    options = {"partition_by": ["k"] if spec.partitioned else [], "group_by": group}
    found, expected = run(
        lambda clock: wp.Aggregate(spec, aggregates, clock=clock, partial_windows=partial, **options),
        NaiveAggregate(spec, aggregates, partial=partial, **options),
        stream(seed),
    )
    assert found == expected


@given(seed=st.integers(0, 10**6), cut=st.integers(0, 12), spec=specs(), group=st.sampled_from([[], ["g"]]))
def test_an_aggregate_that_is_restored_goes_on_as_if_nothing_had_been(seed, cut, spec, group):
    steps = stream(seed)
    clock = wp.VirtualClock()

    def made():
        by = ["k"] if spec.partitioned else []
        return wp.Aggregate(
            spec, {"n": wr.count(), "all": wr.sum("x")}, partition_by=by, group_by=group, clock=clock
        )

    first = made()
    feed(first, clock, steps[:cut])
    second = made()
    second.restore(first.snapshot())
    clock_free = [step for step in steps[cut:] if step[0] != "pass"]
    assert feed(first, clock, clock_free) == feed(second, clock, clock_free)


def feed(operator, clock, steps):
    """What an operator gives out in some steps."""
    given = []
    for what, thing in steps:
        if what == "rows":
            given += operator.process(table_of(thing))[0].table.to_pylist()
        elif what == "pass":
            clock.advance(thing)
            given += operator.poll()[0].table.to_pylist()
        else:
            given += operator.process(wp.Punctuated.of(table_of([]), [0]))[0].table.to_pylist()
    return given


def test_the_output_has_the_columns_of_partition_group_and_aggregates():
    operator = wp.Aggregate(
        "tumbling, count(2), partitioned", {"total": wr.sum("x")}, partition_by="k", group_by="g"
    )
    out = operator.process(table_of([]))[0]
    assert out.table.schema.names == ["k", "g", "total"]
    assert out.table.schema.types == [pa.string(), pa.string(), pa.int64()]


def test_each_window_is_followed_by_a_punctuation():
    operator = wp.Aggregate("tumbling, count(3)", {"n": wr.count()}, group_by="x")
    out = operator.process(pa.table({"x": [1, 2, 1, 4, 4, 4]}))[0]
    assert out.table["n"].to_pylist() == [2, 1, 3]
    assert out.marks.tolist() == [2, 3]


def test_a_window_of_an_hour_every_minute_keeps_no_rows():
    operator = wp.Aggregate(
        "sliding, time(1 hour), time(1 minute)", {"mean": wr.mean("x")}, clock=wp.VirtualClock()
    )
    operator.process(pa.table({"x": list(range(10_000))}))
    assert operator.window.log.rows == 0
    assert len(operator.window) < 10


def test_what_cannot_be_is_refused():
    with pytest.raises(QueryError, match="at least one aggregate"):
        wp.Aggregate("tumbling, count(2)", {})
    with pytest.raises(QueryError, match="'n' needs an aggregate of windrow, as in sum"):
        wp.Aggregate("tumbling, count(2)", {"n": "count"})
    with pytest.raises(QueryError, match="two columns of the output would be called 'k'"):
        wp.Aggregate("tumbling, count(2)", {"k": wr.count()}, group_by="k")
    with pytest.raises(QueryError, match="Aggregate has one input, number 0, and not 1"):
        wp.Aggregate("tumbling, count(2)", {"n": wr.count()}).process(pa.table({"x": [1]}), port=1)
    with pytest.raises(QueryError, match="there is no column 'y'"):
        wp.Aggregate("tumbling, count(2)", {"n": wr.sum("y")}).process(pa.table({"x": [1]}))


def test_a_delta_attribute_that_goes_back_refuses_the_batch_and_changes_nothing():
    operator = wp.Aggregate("tumbling, delta(t, 10)", {"n": wr.count()})
    operator.process(pa.table({"t": [1, 2]}))
    with pytest.raises(DataError, match="column 't', row 2, value 2"):
        operator.process(pa.table({"t": [3, 4, 2]}))
    assert operator.process(pa.table({"t": [20]}))[0].table["n"].to_pylist() == [2]


def test_a_null_partition_key_is_refused():
    operator = wp.Aggregate("tumbling, count(1), partitioned", {"n": wr.count()}, partition_by="k")
    with pytest.raises(DataError, match="column 'k', row 1"):
        operator.process(pa.table({"k": ["a", None]}))
