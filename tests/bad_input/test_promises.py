"""Rows that promise something and do not keep it, and values that do not fit."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from bad_input.support import counts, query, times

import windrow as wr


def test_an_event_far_ahead_of_the_watermark_is_a_bad_row():
    operator = query().operator(max_ahead=100)
    operator.process(times([1]))
    operator.advance(5)
    with pytest.raises(wr.DataError, match="column 'ts', row 1, value 10000: is more than 100 ahead"):
        operator.process(times([6, 10_000]))
    assert counts(operator.finish()) == {(0, 10): 1}


def test_an_event_far_ahead_is_diverted():
    operator = query().operator(max_ahead=100, on_bad="divert")
    operator.advance(5)
    operator.process(times([6, 10_000, 7]))
    (bad,) = operator.bad().to_pylist()
    assert bad["ts"] == 10_000
    assert "more than 100 ahead of the watermark" in bad["bad_reason"]
    assert counts(operator.finish()) == {(0, 10): 2}


def test_an_event_out_of_order_breaks_a_promise():
    operator = query(ordered=True).operator()
    operator.process(times([1, 5]))
    with pytest.raises(wr.DataError, match=r"column 'ts', row 1, value 4.*ordered=True"):
        operator.process(times([6, 4]))
    with pytest.raises(wr.DataError, match=r"column 'ts', row 0, value 4.*ordered=True"):
        operator.process(times([4]))
    assert counts(operator.finish()) == {(0, 10): 2}


def test_an_event_out_of_order_is_diverted():
    operator = query(ordered=True).operator(on_bad="divert")
    operator.process(times([1, 5, 3, 5, 6]))
    assert operator.bad()["ts"].to_pylist() == [3]
    assert counts(operator.finish()) == {(0, 10): 4}


LARGE = [
    (pa.array([1, 2**63], pa.uint64()), 2**63),
    (pa.array([Decimal(1), Decimal(10**30)], pa.decimal128(38, 0)), Decimal(10**30)),
    (pa.array([Decimal(1), Decimal(-(10**30))], pa.decimal128(38, 0)), Decimal(-(10**30))),
]


@pytest.mark.parametrize(("values", "value"), LARGE, ids=["uint64", "decimal", "negative decimal"])
@pytest.mark.parametrize("aggregate", [wr.sum("x"), wr.max("x"), wr.median("x"), wr.collect("x")], ids=str)
def test_a_value_that_does_not_fit_is_a_bad_row(aggregate, values, value):
    table = pa.table({"ts": [1, 2], "x": values})
    q = query(aggregates={"a": aggregate, "n": wr.count()})
    with pytest.raises(wr.DataError, match=r"column 'x', row 1, value .*does not fit in 64 bits"):
        q.run(table)
    operator = q.operator(on_bad="divert")
    operator.process(table)
    (bad,) = operator.bad().to_pylist()
    assert bad["x"] == value
    assert bad["bad_reason"] == "column 'x': does not fit in 64 bits"
    assert operator.finish()["n"].to_pylist() == [1]


def test_an_integer_sum_that_overflows_names_the_window_and_the_key():
    table = pa.table({"ts": [1, 2], "k": ["a", "a"], "x": [2**62, 2**62]})
    with pytest.raises(wr.DataError, match=r"window 'w' \[0, 10\) of key \{'k': 'a'\} overflows int64"):
        query(key="k", aggregates={"a": wr.sum("x")}).run(table)
