"""The loops of `at`, by themselves: ranks, different values, exact sums, parts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.engine.at import answers
from windrow.engine.at.fixed_point import unit_of
from windrow.engine.at.ranks import count_different, longest_turn, select_in_ranges, sort_places

MANY = settings(max_examples=200, deadline=None, database=None, derandomize=True, print_blob=False)


@st.composite
def ranges(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, and ranges of them whose ends never go back."""
    values = draw(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
    count = draw(st.integers(1, 12))
    ends = st.lists(st.integers(0, len(values)), min_size=count, max_size=count).map(sorted)
    pairs = [(a, b) for a, b in zip(draw(ends), draw(ends), strict=True) if a < b]
    low, high = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    return np.array(values, np.int64), low, high


@MANY
@given(ranges(), st.randoms(use_true_random=False))
def test_ranks_are_those_of_each_range_when_it_is_sorted(drawn: Any, luck: Any) -> None:
    values, low, high = drawn
    below = np.array([luck.randrange(int(b - a)) for a, b in zip(low, high, strict=True)], np.int64)
    above = np.minimum(below + luck.randrange(2), high - low - 1)
    smaller, larger = np.empty(len(low), np.int64), np.empty(len(low), np.int64)
    places = np.arange(len(low))
    select_in_ranges(values, low, high, places, below, above, longest_turn(low, high), smaller, larger)
    ordered = [sorted(values[a:b]) for a, b in zip(low, high, strict=True)]
    assert smaller.tolist() == [each[k] for each, k in zip(ordered, below, strict=True)]
    assert larger.tolist() == [each[k] for each, k in zip(ordered, above, strict=True)]


@MANY
@given(ranges())
def test_different_values_are_counted(drawn: Any) -> None:
    values, low, high = drawn
    out = np.empty(len(low), np.int64)
    count_different(values + 5, low, high, np.arange(len(low)), np.zeros(11, np.int32), out)
    assert out.tolist() == [len(set(values[a:b].tolist())) for a, b in zip(low, high, strict=True)]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100, 333])
def test_places_are_sorted_by_value_and_place(count: int) -> None:
    values = np.random.default_rng(count).integers(0, 20, count + 7)
    rooms = [np.empty(count, np.int64) for _ in range(4)]
    sort_places(values, 7, count + 7, *rooms)
    assert rooms[0].tolist() == sorted(range(7, count + 7), key=lambda i: (values[i], i))
    assert rooms[1].tolist() == sorted(values[7:].tolist())


@MANY
@given(
    st.lists(
        st.floats(-1e9, 1e9, allow_subnormal=False).map(lambda x: float(np.float32(x))),
        min_size=1,
        max_size=30,
    )
)
def test_float_sums_are_rounded_once(values: list[float]) -> None:
    events = pa.table({"t": range(len(values)), "x": pa.array(values, pa.float64())})
    query = wr.query(
        time="t", windows={"w": wr.trailing(rows=7, closed="right")}, aggregates={"s": wr.sum("x")}
    )
    for row, found in enumerate(query.at(events)["s"].to_pylist()):
        held = values[max(0, row - 6) : row + 1]
        exact = float(sum(map(Fraction, held), Fraction(0)))
        if unit_of(np.array(values), len(values)) is None:
            assert abs(found - exact) <= 2 * math.ulp(exact)
        else:
            assert found == exact


def test_what_no_window_holds_leaves_no_trace_in_a_sum() -> None:
    for huge in (1e16, 1e300, math.inf, math.nan):
        events = pa.table({"t": [0, 10, 11, 12], "x": [huge, 0.1, 0.2, 0.3]})
        query = wr.query(
            time="t", windows={"w": wr.trailing(3, closed="right")}, aggregates={"s": wr.sum("x")}
        )
        assert query.at(events)["s"].to_pylist()[1:] == [
            0.1,
            math.fsum([0.1, 0.2]),
            math.fsum([0.1, 0.2, 0.3]),
        ]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_answers_do_not_depend_on_threads_or_parts(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    luck = np.random.default_rng(3)
    events = pa.table(
        {"ts": luck.integers(0, 300, 400), "k": luck.integers(0, 3, 400), "x": luck.normal(size=400)}
    )
    aggregates = {
        "s": wr.stddev("x"),
        "m": wr.median("x"),
        "d": wr.distinct("x"),
        "t": wr.sum("x"),
        "h": wr.max("x"),
    }
    query = wr.query(time="ts", key="k", windows={"w": wr.trailing(20)}, aggregates=aggregates)
    monkeypatch.setattr(answers, "PART", 64)
    expected = query.at(events, threads=1)
    assert query.at(events, threads=threads).equals(expected)
    monkeypatch.setattr(answers, "PART", 1 << 17)
    whole = query.at(events)
    for name in ("m", "d", "t", "h"):
        assert whole[name].equals(expected[name])
    assert np.allclose(whole["s"].to_numpy(), expected["s"].to_numpy(), equal_nan=True, rtol=1e-9)


FLOATS = st.floats(-1e3, 1e3) | st.integers(-(10**12), 10**12).map(lambda n: n / 10)


@MANY
@given(st.lists(FLOATS, min_size=1, max_size=20), st.integers(1, 6))
@example([-0.1, 0.1, -0.1396275080198039], 1)
def test_sums_and_means_of_floats_are_those_of_fsum(values: list[float], size: int) -> None:
    windows = {"w": wr.trailing(size, closed="right")}
    query = wr.query(time="t", windows=windows, aggregates={"s": wr.sum("x"), "m": wr.mean("x")})
    found = query.at(pa.table({"t": list(range(len(values))), "x": values}))
    held = [values[max(0, i + 1 - size) : i + 1] for i in range(len(values))]
    if unit_of(np.array(values), len(values)) is None:
        return
    assert found["s"].to_pylist() == [math.fsum(each) for each in held]
    assert found["m"].to_pylist() == [math.fsum(each) / len(each) for each in held]
