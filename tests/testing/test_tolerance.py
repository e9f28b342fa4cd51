"""How far a value may lie from the referee's."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import windrow as wr
from tests.referee import answers, assert_same


def judged(aggregate: wr.Aggregate, values: list[object], wrong: object) -> None:
    """Compare an answer with one whose value was replaced."""
    table = pa.table({"t": list(range(len(values))), "x": values})
    query = wr.query(time="t", windows={"w": wr.tumbling(100)}, aggregates={"a": aggregate})
    expected = answers(query, table)
    actual = expected.table()
    column = pa.array([wrong], actual.schema.field("a").type)
    assert_same(expected, actual.set_column(actual.column_names.index("a"), "a", column))


def test_a_float_sum_may_be_two_ulp_off_and_no_more():
    judged(wr.sum("x"), [1.0, 2.0], 3.0 + 2 * math.ulp(3.0))
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.sum("x"), [1.0, 2.0], 3.0 + 3 * math.ulp(3.0))


def test_a_variance_of_equal_values_is_exactly_zero():
    judged(wr.variance("x"), [0.1, 0.1, 0.1], 0.0)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.variance("x"), [0.1, 0.1, 0.1], 1e-33)


def test_a_variance_may_be_off_by_its_rounding():
    judged(wr.variance("x"), [1e9, 1e9 + 1], 0.5 + 1e-10)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.variance("x"), [1.0, 2.0], 0.5 + 1e-6)


def test_quantiles_and_extremes_are_exact():
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.median("x"), [1.0, 2.0], 1.5 + math.ulp(1.5))
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.max("x"), [1.0, 2.0], 2.0 + math.ulp(2.0))


def test_a_sketch_is_held_to_its_error():
    judged(wr.approx_distinct("x"), list(range(50)), 51)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.approx_distinct("x"), list(range(50)), 60)
    judged(wr.kll_quantile("x", 0.5), list(range(50)), 25.0)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.kll_quantile("x", 0.5), list(range(50)), 40.0)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.bloom_filter("x"), [1, 2, 3], b"\x07" + bytes(1200))
