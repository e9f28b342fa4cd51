"""Windows over events in any order against a list that is sorted anew for each event."""

from __future__ import annotations

import statistics

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import NIGHTLY

import windrow as wr
from windrow.errors import DataError, QueryError
from windrow.rolling.out_of_order import OutOfOrder


def expected(times, values, period, answer):
    """What `answer` gives for the values of each window, in the order of time and then of arrival."""
    answers = []
    for i in range(len(times)):
        greatest = max(times[: i + 1])
        window = sorted((t, k) for k, t in enumerate(times[: i + 1]) if t > greatest - period)
        present = [values[k] for _, k in window if values[k] is not None]
        answers.append(answer(present) if present else None)
    return answers


AGGREGATES = {
    "max": (wr.max("x"), max),
    "first": (wr.first("x"), lambda values: values[0]),
}
if NIGHTLY:  # arithmetic that other tests have; compiling takes longest of all here
    AGGREGATES["mean"] = (wr.mean("x"), statistics.mean)
EVENTS = st.lists(st.tuples(st.integers(-60, 60), st.none() | st.integers(-9, 9)), max_size=80)


def process(window, times, values, type_=None):
    return window.process(
        pa.table({"t": pa.array(times, type_ or pa.int64()), "x": pa.array(values, pa.int64())})
    )


@pytest.mark.parametrize(("aggregate", "answer"), AGGREGATES.values(), ids=AGGREGATES)
@given(events=EVENTS, period=st.integers(1, 50), cut=st.integers(0, 80))
def test_each_event_is_answered_from_the_window_that_ends_with_the_greatest_time(
    aggregate, answer, events, period, cut
):
    times, values = [t for t, _ in events], [x for _, x in events]
    window = OutOfOrder(aggregate, time="t", period=period)
    answers = process(window, times[:cut], values[:cut]).to_pylist()
    answers += process(window, times[cut:], values[cut:]).to_pylist()
    assert answers == pytest.approx(expected(times, values, period, answer), nan_ok=True)


@given(events=EVENTS)
def test_times_may_be_floats(events):
    times, values = [t / 7 for t, _ in events], [x for _, x in events]
    window = OutOfOrder(wr.max("x"), time="t", period=2.5)
    assert process(window, times, values, pa.float64()).to_pylist() == expected(times, values, 2.5, max)


@given(events=EVENTS)
def test_a_count_is_the_number_of_values_in_the_window(events):
    times, values = [t for t, _ in events], [x for _, x in events]
    window = OutOfOrder(wr.count("x"), time="t", period=20)
    counts = expected(times, values, 20, len)
    assert process(window, times, values).to_pylist() == [n or 0 for n in counts]


def test_a_window_may_grow_beyond_the_room_that_it_began_with():
    rows = 30_000
    times = [(i * 7919) % rows for i in range(rows)]
    window = OutOfOrder(wr.sum("x"), time="t", period=rows)
    answers = process(window, times, [1] * rows).to_pylist()
    assert answers == list(range(1, rows + 1))


def test_times_at_the_lower_end_of_their_type_do_not_wrap():
    window = OutOfOrder(wr.max("x"), time="t", period=100)
    assert process(window, [-(2**63), -(2**63) + 1, 2**63 - 1], [3, 2, 1]).to_pylist() == [3, 3, 1]


def test_an_event_without_a_time_is_refused_and_changes_nothing():
    window = OutOfOrder(wr.max("x"), time="t", period=10)
    process(window, [1], [5])
    with pytest.raises(DataError, match="needs a time"):
        process(window, [2, None], [7, 8])
    assert process(window, [3], [1]).to_pylist() == [5]


def test_an_aggregate_that_keeps_all_values_is_refused():
    window = OutOfOrder(wr.median("x"), time="t", period=10)
    with pytest.raises(QueryError, match="use a query"):
        process(window, [1], [5])


@pytest.mark.parametrize("period", [0, -1, "0 seconds"])
def test_a_window_without_length_is_refused(period):
    with pytest.raises(QueryError, match="longer than zero"):
        OutOfOrder(wr.max("x"), time="t", period=period)
