"""The oracle on cases that were worked out by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import windrow as wr
from tests.referee import oracle, windows_of
from tests.referee.placement import first_second
from windrow.errors import DataError, QueryError
from windrow.measure import Measure

INTEGERS = Measure("t", pa.int64())


def value(aggregate: wr.Aggregate, **columns: pa.Array) -> object:
    """One aggregate over one window that holds all rows."""
    size = len(next(iter(columns.values())))
    table = pa.table({"t": list(range(size)), **columns})
    query = wr.query(time="t", windows={"w": wr.tumbling(1000)}, aggregates={"a": aggregate})
    return oracle(query, table)["a"].to_pylist()[0]


@pytest.mark.parametrize(
    ("window", "tick", "expected"),
    [
        (wr.tumbling(5), 0, [(0, 5)]),
        (wr.tumbling(5), -1, [(-5, 0)]),
        (wr.tumbling(5, offset=7), 6, [(2, 7)]),
        (wr.sliding(4, every=2), 5, [(2, 6), (4, 8)]),
        (wr.sliding(5, every=3), 4, [(0, 5), (3, 8)]),
        (wr.sliding(2, every=5), 1, [(0, 2)]),
        (wr.sliding(2, every=5), 2, []),
        (wr.cumulate(6, step=2), 3, [(0, 4), (0, 6)]),
        (wr.band(2, length=4), 6, []),
        (wr.band(2, length=4), 5, [(2, 6)]),
        (wr.tumbling(10), 2**63 - 1, [(2**63 - 8, 2**63 + 2)]),
    ],
)
def test_windows_hold_an_instant_by_definition(window, tick, expected):
    assert windows_of(window, INTEGERS, tick) == expected


def test_edges_of_a_float_measure_are_the_same_numbers_on_both_sides():
    measure = Measure("t", pa.float64())
    spans = {span for i in range(100) for span in windows_of(wr.sliding(0.2, every=0.1), measure, i / 37)}
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    assert sum(end in starts for end in ends) >= len(ends) - 3


@pytest.mark.parametrize(
    ("day", "zone", "expected"),
    [
        (date(2024, 3, 31), "Europe/Berlin", "2024-03-30T23:00:00"),
        (date(2024, 4, 1), "Europe/Berlin", "2024-03-31T22:00:00"),
        (date(2018, 11, 4), "America/Sao_Paulo", "2018-11-04T03:00:00"),
        (date(2018, 2, 18), "America/Sao_Paulo", "2018-02-18T03:00:00"),
        (date(2024, 11, 3), "America/Havana", "2024-11-03T04:00:00"),
        (date(2011, 12, 30), "Pacific/Apia", "2011-12-30T10:00:00"),
        (date(2011, 12, 31), "Pacific/Apia", "2011-12-30T10:00:00"),
        (date(1919, 3, 31), "America/Toronto", "1919-03-31T04:30:00"),
    ],
)
def test_a_day_begins_when_the_clock_on_the_wall_first_shows_it(day, zone, expected):
    begins = datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert first_second(datetime.combine(day, time()), zone) == begins.timestamp()


def test_sums_of_floats_are_rounded_once():
    assert value(wr.sum("x"), x=pa.array([1e16, 1.0, -1e16])) == 1.0
    assert value(wr.sum("x"), x=pa.array([0.1] * 10)) == 1.0


def test_infinities_of_both_signs_add_up_to_nan():
    assert value(wr.sum("x"), x=pa.array([math.inf, 1.0])) == math.inf
    assert math.isnan(value(wr.sum("x"), x=pa.array([math.inf, -math.inf])))


def test_sums_of_decimals_are_exact():
    cents = pa.array([Decimal("0.10"), Decimal("0.20"), None], pa.decimal128(5, 2))
    assert value(wr.sum("x"), x=cents) == Decimal("0.30")


def test_means_and_deviations():
    x = pa.array([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert value(wr.mean("x"), x=x) == 5.0
    assert value(wr.stddev("x", ddof=0), x=x) == 2.0
    assert value(wr.variance("x"), x=x) == pytest.approx(32 / 7)
    assert value(wr.variance("x"), x=pa.array([3.0])) is None
    assert value(wr.geometric_mean("x"), x=pa.array([1.0, 100.0])) == pytest.approx(10.0)


def test_deviations_of_infinities_are_nan():
    assert math.isnan(value(wr.variance("x"), x=pa.array([math.inf, 1.0])))
    assert math.isnan(value(wr.variance("x", ddof=0), x=pa.array([math.inf])))


def test_pairs_of_columns():
    x, y = pa.array([1.0, 2.0, 3.0]), pa.array([2.0, 4.0, 6.0])
    assert value(wr.covariance("x", "y"), x=x, y=y) == 2.0
    assert value(wr.correlation("x", "y"), x=x, y=y) == 1.0
    assert value(wr.slope("y", "x"), x=x, y=y) == 2.0
    assert value(wr.slope("y", "x"), x=pa.array([1.0, 1.0, 1.0]), y=y) is None
    assert value(wr.weighted_mean("x", weight="y"), x=x, y=y) == pytest.approx(28 / 12)


def test_nan_is_the_greatest_number():
    x = pa.array([1.0, math.nan, 3.0])
    assert value(wr.min("x"), x=x) == 1.0
    assert math.isnan(value(wr.max("x"), x=x))
    assert math.isnan(value(wr.quantile("x", 1.0), x=x))
    assert value(wr.quantile("x", 0.5), x=x) == 3.0
    assert value(wr.histogram("x", low=0, high=2, bins=2), x=x) == [0, 0, 1, 2]


def test_negative_zero_is_zero():
    assert value(wr.distinct("x"), x=pa.array([0.0, -0.0])) == 1
    assert value(wr.min_count("x"), x=pa.array([0.0, -0.0, 1.0])) == 2


def test_quantiles_interpolate_as_spark_does():
    x = pa.array([10, 20, 30, 40])
    assert value(wr.median("x"), x=x) == 25.0
    assert value(wr.quantile("x", 0.9), x=x) == pytest.approx(37.0)
    assert value(wr.quantile("x", 0.5, interpolation="lower"), x=x) == 20
    assert value(wr.quantile("x", 0.5, interpolation="higher"), x=x) == 30
    assert value(wr.quantile("x", 0.5, interpolation="nearest"), x=x) == 30
    assert value(wr.ith_smallest("x", 5), x=x) is None


def test_among_equals_the_earliest_event_counts():
    x, y = pa.array(["a", "b", "c"]), pa.array([1, 0, 0])
    assert value(wr.argmin("x", by="y"), x=x, y=y) == "b"
    assert value(wr.top_k("x", 2), x=pa.array(["b", "a", "c", "c"])) == [
        {"value": "c", "count": 2},
        {"value": "a", "count": 1},
    ]


def test_strings_compare_by_their_bytes():
    assert value(wr.max("x"), x=pa.array(["z", "ä", "B"])) == "ä"


def test_events_are_ordered_by_time_and_then_by_arrival():
    table = pa.table({"t": [2, 1, 1], "x": ["c", "a", "b"]})
    query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"a": wr.concat("x")})
    assert oracle(query, table)["a"].to_pylist() == ["abc"]


def test_nulls_are_skipped_and_an_empty_rest_is_null():
    x = pa.array([None, None], pa.int64())
    assert value(wr.count(), x=x) == 2
    assert value(wr.count("x"), x=x) == 0
    assert value(wr.distinct("x"), x=x) == 0
    for aggregate in (wr.sum("x"), wr.mean("x"), wr.min("x"), wr.first("x"), wr.collect("x"), wr.median("x")):
        assert value(aggregate, x=x) is None


def test_all_nan_keys_are_one_and_null_is_another():
    table = pa.table({"t": [0, 1, 2, 3, 4], "k": [math.nan, -math.nan, None, 0.0, -0.0]})
    query = wr.query(time="t", key="k", windows={"w": wr.tumbling(9)}, aggregates={"n": wr.count()})
    assert sorted(oracle(query, table)["n"].to_pylist()) == [1, 2, 2]


def test_a_time_that_is_null_or_nan_is_an_error_that_names_it():
    query = wr.query(time="t", windows={"w": wr.tumbling(9)}, aggregates={"n": wr.count()})
    with pytest.raises(DataError, match="column 't', row 1, value None"):
        oracle(query, pa.table({"t": [1, None]}))
    with pytest.raises(DataError, match="column 't', row 0, value nan"):
        oracle(query, pa.table({"t": [math.nan]}))


def test_an_integer_sum_that_does_not_fit_is_an_error():
    with pytest.raises(DataError, match=str(2**63)):
        value(wr.sum("x"), x=pa.array([2**63 - 1, 1]))


def test_an_unknown_column_is_an_error():
    query = wr.query(time="t", windows={"w": wr.tumbling(9)}, aggregates={"n": wr.sum("y")})
    with pytest.raises(QueryError, match="there is no column 'y'"):
        oracle(query, pa.table({"t": [1]}))
