"""Watermarks that go back, or are no point in time."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import numpy as np
import pandas
import pyarrow as pa
import pytest
from bad_input.support import counts, stream, times

import windrow as wr


def test_a_watermark_cannot_go_back():
    operator = stream()
    operator.process(times([1, 25]))
    operator.advance(20)
    with pytest.raises(wr.QueryError, match="watermark went back from 20 to 19"):
        operator.advance(19)
    assert counts(operator.finish()) == {(20, 30): 1}


def test_a_watermark_cannot_go_back_before_the_first_event():
    operator = stream()
    operator.advance(20)
    with pytest.raises(wr.QueryError, match="watermark went back from 20 to 19"):
        operator.advance(19)


@pytest.mark.parametrize("value", ["soon", None, math.nan, math.inf, True, datetime(2020, 1, 1)], ids=repr)
def test_a_watermark_that_is_no_point_of_the_measure_is_refused(value):
    operator = stream()
    operator.process(times([1]))
    with pytest.raises(wr.QueryError, match="watermark"):
        operator.advance(value)
    assert operator.metrics().watermark is None


def moments():
    operator = stream(windows={"w": wr.tumbling("1 minute")})
    operator.process(times([0, 120_000], pa.timestamp("ms")))
    return operator


def test_not_a_time_is_no_watermark():
    for value in (np.datetime64("NaT"), pandas.NaT):
        with pytest.raises(wr.QueryError, match="watermark"):
            moments().advance(value)


@pytest.mark.parametrize(
    "value",
    [
        datetime(1970, 1, 1, 0, 1),
        datetime(1970, 1, 1, 0, 1, tzinfo=UTC),
        np.datetime64("1970-01-01T00:01"),
        pa.scalar(60, pa.timestamp("s")),
        pa.scalar(60_000, pa.timestamp("ms")),
        pa.scalar(60_000_000_000, pa.timestamp("ns", "UTC")),
    ],
    ids=repr,
)
def test_a_watermark_may_be_of_another_unit(value):
    operator = moments()
    assert operator.advance(value)["n"].to_pylist() == [1]
    assert operator.metrics().watermark == datetime(1970, 1, 1, 0, 1)


@pytest.mark.parametrize(
    "value", [date(1970, 1, 2), pa.scalar(date(1970, 1, 2)), np.datetime64("1970-01-02")], ids=repr
)
def test_a_watermark_may_be_a_date(value):
    operator = moments()
    operator.advance(value)
    assert operator.metrics().watermark == datetime(1970, 1, 2)


def test_a_watermark_in_a_far_year_does_not_wrap():
    operator = moments()
    operator.advance(np.datetime64("2500-01-01"))
    assert operator.metrics().watermark == datetime(2500, 1, 1)


def test_an_early_watermark_that_does_not_fit_stays_an_error():
    operator = stream()
    operator.advance(datetime(2020, 1, 1))
    for _ in range(2):
        with pytest.raises(wr.QueryError, match="watermark"):
            operator.process(times([1]))


def test_early_watermarks_of_two_kinds_are_refused():
    operator = stream()
    operator.advance(5)
    with pytest.raises(wr.QueryError, match="watermark"):
        operator.advance(datetime(2020, 1, 1))


def test_an_operator_with_a_watermark_and_no_events_can_be_saved():
    operator = stream()
    operator.advance(20)
    restored = operator.query.restore(operator.snapshot())
    restored.process(times([1, 25]))
    assert restored.late().num_rows == 1


@pytest.mark.parametrize("end", ["finish", "advance"])
def test_events_after_the_end_of_time_are_late(end):
    operator = stream()
    operator.process(times([1]))
    operator.finish() if end == "finish" else operator.advance(2**63 - 1)
    operator.process(times([5, 10**15]))
    assert operator.late()["ts"].to_pylist() == [5, 10**15]
    assert operator.metrics().late == 2
    assert operator.finish().num_rows == 0
