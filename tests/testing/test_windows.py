"""The check that users run on their own windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

import windrow as wr
from tests.referee.strategies import every_second_time, older_than_six, one_more, waves
from windrow.testing import check_window

STAMPS = {"time": pa.timestamp("us", "Europe/Berlin")}


@pytest.mark.parametrize(
    ("window", "given"),
    [
        (wr.deterministic(waves, state=0), {}),
        (wr.deterministic(waves, state=0), {"columns": {"time": pa.float64(), "v": pa.int8()}}),
        (wr.nondeterministic(evict=older_than_six, trigger=every_second_time, update=one_more), {}),
        (wr.threshold(lambda speed: speed > 1), {"columns": {**STAMPS, "speed": pa.float64()}}),
        (wr.punctuated(pc.field("mark")), {"columns": {"time": pa.date32(), "mark": pa.bool_()}}),
        (wr.session("gap"), {"values": {"gap": st.integers(1, 9)}}),
        (wr.session("5 minutes"), {"columns": STAMPS}),
        (wr.calendar("1 day", tz="Europe/Berlin"), {"columns": STAMPS, "within": "9 days"}),
        (wr.tumbling(rows=3), {"columns": {"time": pa.uint8()}}),
    ],
    ids=str,
)
def test_windows_that_keep_to_their_state_pass(window: Any, given: Any) -> None:
    check_window(window, **given, examples=15)


@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_a_function_that_remembers_what_is_not_its_state_is_found_with_the_events() -> None:
    seen = []

    def every_third(state, v):
        seen.append(v)
        return state, int(len(seen) % 3 == 0), 0

    with pytest.raises(
        AssertionError, match=r"(?s)^deterministic every_third\(v\): .*for the events\n  \{'time': "
    ):
        check_window(wr.deterministic(every_third, state=0))


def test_a_function_that_means_something_else_when_it_is_compiled_is_found() -> None:
    def shifts(state, v):  # compiled code widens small integers of NumPy
        return state, int((np.uint8(1) << np.uint8(8)) > v), 0

    with pytest.raises(
        AssertionError, match=r"shifts\(v\): as plain Python, not as in order and all at once: "
    ):
        check_window(wr.deterministic(shifts, state=0))


def test_an_error_that_only_one_way_of_running_has_is_found() -> None:
    def halves(state, v):
        return state + v / 2, 1, 0

    with pytest.raises(AssertionError, match=r"as plain Python: .*began as an integer"):
        check_window(wr.deterministic(halves, state=0))


def test_state_that_is_lost_by_a_restart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    query = type(wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}))
    monkeypatch.setattr(query, "restore", lambda self, state: self.operator(lateness=1000))
    with pytest.raises(AssertionError, match="saved and restored after each batch"):
        check_window(wr.tumbling(5))


def test_events_that_are_lost_because_they_are_late_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    query = type(wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}))
    operator = query.operator
    monkeypatch.setattr(
        query, "operator", lambda self, **options: operator(self, **options | {"lateness": 0})
    )
    with pytest.raises(
        AssertionError, match="out of order within the lateness, in append mode, not as in order"
    ):
        check_window(wr.tumbling(5))


def test_an_error_of_the_windows_own_is_shown_as_it_is() -> None:
    with pytest.raises(wr.DataError, match="gap"):
        check_window(wr.session("gap"))


def test_what_is_no_window_is_refused() -> None:
    with pytest.raises(wr.QueryError, match="3 is an int, and a window is needed"):
        check_window(3)  # type: ignore[arg-type]


def test_a_column_whose_values_cannot_be_guessed_is_refused() -> None:
    with pytest.raises(wr.QueryError, match=r"column 'due' is date32\[day\]: say in values=\{'due': ...\}"):
        check_window(wr.punctuated(lambda due: True), columns={"due": pa.date32()})
