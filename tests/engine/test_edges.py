"""Edges against brute force: every multiple of every period, tried one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import answers, assert_same
from windrow.engine.aligned.edges import edges_around, edges_between, edges_in, neighbours
from windrow.measure import Measure
from windrow.planner.window_set import WindowSet, fuse

INTEGERS = Measure("t", pa.int64())
FLOATS = Measure("t", pa.float64())


@st.composite
def window_sets(draw, measure, bands=True):
    number = (
        st.integers(1, 12) if not measure.floating else st.sampled_from([0.5, 0.75, 1.0, 2.0, 2.5, 0.1, 0.7])
    )
    offset = st.integers(-9, 9) if not measure.floating else st.sampled_from([0.0, 0.25, -1.5, 0.1])
    kinds = [
        st.builds(lambda n, o: wr.tumbling(n, offset=o), number, offset),
        st.builds(lambda n, e, o: wr.sliding(n, every=e, offset=o), number, number, offset),
        st.builds(
            lambda n, k, o: wr.cumulate(n * k, step=n, offset=o), st.integers(1, 4), st.integers(1, 4), offset
        ),
    ]
    if bands:
        kinds.append(st.builds(lambda s, n: wr.band(s, length=n), st.integers(-30, 30), number))
    windows = draw(st.lists(st.one_of(*kinds), min_size=1, max_size=5))
    return WindowSet.of({f"w{i}": w for i, w in enumerate(windows)}, measure)


def all_edges(windows, low, high):
    """Every start and every end of a window in [low, high], by counting."""
    found = set()
    for every, offset, whole, rest in zip(
        windows.every, windows.offset, windows.whole, windows.rest, strict=True
    ):
        reach = int((high - low) / every) + int(whole) + 5
        middle = int((low - offset) // every)
        for k in range(middle - int(whole) - 5, middle + reach + 5):
            found.add((offset + k * every).item())
            found.add((offset + (k + whole) * every + rest).item())
    for _, placement in windows.irregular:
        found |= {placement.start, placement.end}
    return sorted(e for e in found if low <= e <= high)


def same_number(a, b):
    """On a float measure an edge may be reached by two sums that differ in the last bit."""
    return abs(a - b) <= 1e-9 * max(1.0, abs(a))


@examples(200)
@given(st.data())
def test_edges_between_are_all_edges_and_their_neighbours(data):
    windows = data.draw(window_sets(INTEGERS))
    low = data.draw(st.integers(-60, 60))
    high = low + data.draw(st.integers(0, 80))
    found = edges_between(windows, low, high).tolist()
    wanted = all_edges(windows, low, high)
    assert found == sorted(set(found))
    assert [e for e in found if low <= e <= high] == wanted
    assert found[0] <= low
    assert found[-1] > high
    near = all_edges(windows, low - 200, high + 200)
    before, after = [e for e in near if e <= low], [e for e in near if e > high]
    assert found[0] == (before[-1] if before else np.iinfo(np.int64).min)
    assert found[-1] == (after[0] if after else np.iinfo(np.int64).max)


@examples(150)
@given(st.data())
def test_edges_between_on_a_float_measure(data):
    windows = data.draw(window_sets(FLOATS))
    low = data.draw(st.floats(-20, 20))
    high = low + data.draw(st.floats(0, 30))
    found = edges_between(windows, low, high).tolist()
    wanted = all_edges(windows, low, high)
    assert found == sorted(set(found))
    assert found[0] <= low
    assert found[-1] > high
    inner = [e for e in found if low <= e <= high]
    assert set(inner) >= set(wanted) or all(any(same_number(e, w) for e in found) for w in wanted)
    assert all(any(same_number(e, w) for w in all_edges(windows, low - 1, high + 1)) for e in inner)


@examples(150)
@given(st.data())
def test_window_bounds_are_edges_bit_for_bit_on_a_float_measure(data):
    """A start or an end that is not exactly an edge would put an event at that instant into the wrong slice."""
    windows = data.draw(window_sets(FLOATS, bands=False))
    found = set(edges_between(windows, -10.0, 10.0).tolist())
    assert set(all_edges(windows, -10.0, 10.0)) <= found


def test_a_window_of_a_float_measure_does_not_take_the_slice_behind_its_end():
    query = wr.query(
        time="t", windows={"w": wr.sliding(1.1, every=0.75, offset=-0.3)}, aggregates={"n": wr.count()}
    )
    table = pa.table({"t": [3.5, 4.5, 4.6, 4.7]})
    assert_same(answers(query, table), query.run(table))


@examples(60)
@given(st.data())
def test_windows_of_a_float_measure_agree_with_the_oracle(data):
    number = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.75, 0.9, 1.1, 1.25, 2.0])
    offset = data.draw(st.sampled_from([0.0, 0.1, -0.3, 0.37]))
    length, every = data.draw(number), data.draw(number)
    query = wr.query(
        time="t",
        windows={"w": wr.sliding(length, every=every, offset=offset), "t": wr.tumbling(data.draw(number))},
        aggregates={"n": wr.count()},
    )
    bounds = [offset + k * every + side for k in range(-8, 9) for side in (0.0, length)]
    times = bounds + data.draw(st.lists(st.floats(-8, 8), max_size=30))
    table = pa.table({"t": times})
    assert_same(answers(query, table), query.run(table))


@examples(150)
@given(st.data())
def test_edges_around_enclose_each_time_tightly(data):
    measure = data.draw(st.sampled_from([INTEGERS, FLOATS]))
    windows = data.draw(window_sets(measure))
    time = st.integers(-300, 300) if not measure.floating else st.floats(-30, 30)
    times = np.array(data.draw(st.lists(time, min_size=1, max_size=20)), measure.dtype)
    edges = edges_around(windows, times)
    assert edges.tolist() == sorted(set(edges.tolist()))
    whole = edges_between(windows, times.min(), times.max())
    for t in times:
        at = np.searchsorted(edges, t, side="right")
        assert 0 < at < len(edges)
        place = np.searchsorted(whole, t, side="right")
        assert edges[at - 1] == whole[place - 1]
        assert edges[at] == whole[place]


@examples(100)
@given(st.data())
def test_neighbours_are_the_last_edge_before_and_the_first_after(data):
    windows = data.draw(window_sets(INTEGERS, bands=False))
    times = np.array(data.draw(st.lists(st.integers(-200, 200), min_size=1, max_size=10)))
    before, after = neighbours(windows, times)
    for t, b, a in zip(times.tolist(), before.tolist(), after.tolist(), strict=True):
        edges = all_edges(windows, t - 60, t + 60)
        assert b == max(e for e in edges if e <= t)
        assert a == min(e for e in edges if e > t)


@examples(200)
@given(st.lists(st.tuples(st.integers(1, 24), st.integers(0, 23)), min_size=1, max_size=8))
def test_fusing_keeps_exactly_the_union_of_edges(pairs):
    periods = np.array([p for p, _ in pairs])
    phases = np.array([s % p for p, s in pairs])
    kept, shifts, _ = fuse(periods, phases, 0 * phases)

    def union(ps, ss):
        return {s + k * p for p, s in zip(ps.tolist(), ss.tolist(), strict=True) for k in range(-200, 200)}

    def near(edges):
        return {e for e in edges if -150 <= e <= 150}

    assert near(union(kept, shifts)) == near(union(periods, phases))
    assert len(kept) <= len(set(zip(periods.tolist(), phases.tolist(), strict=True)))
    for i in range(len(kept)):
        for j in range(len(kept)):
            covered = kept[j] % kept[i] == 0 and (shifts[j] - shifts[i]) % kept[i] == 0
            assert i == j or not covered


@given(st.data())
def test_fusing_floats_loses_no_edge(data):
    number = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1.25, 2.5])
    pairs = data.draw(st.lists(st.tuples(number, st.sampled_from([0.0, 0.1, 0.25])), min_size=1, max_size=6))
    periods, phases = np.array([p for p, _ in pairs]), np.array([s for _, s in pairs])
    kept, shifts, _ = fuse(periods, phases, 0 * phases)
    fine = {
        Fraction(s + k * p)
        for p, s in zip(kept.tolist(), shifts.tolist(), strict=True)
        for k in range(-400, 400)
    }
    for period, phase in pairs:
        for k in range(-20, 20):
            edge = Fraction(phase + k * period)
            assert edge in fine, (period, phase, k)


@given(st.data())
def test_far_times_do_not_overflow(data):
    windows = data.draw(window_sets(INTEGERS, bands=False))
    low, high = windows.reach
    assume(low < high)
    for t in (low, high):
        before, after = neighbours(windows, np.array([t]))
        assert before[0] <= t < after[0]
        assert after[0] - before[0] <= windows.every.max()


def test_edges_of_a_range_longer_than_an_int64_are_all_there():
    events = pa.table({"t": [-6 * 10**18, 6 * 10**18]})
    query = wr.query(time="t", windows={"w": wr.tumbling(10**18)}, aggregates={"n": wr.count()})
    assert query.run(events)["start"].to_pylist() == [-6 * 10**18, 6 * 10**18]


@examples(60)
@given(st.data(), st.sampled_from([INTEGERS, FLOATS]))
def test_the_edges_of_stretches_are_those_of_each_of_them_once(data, measure):
    windows = data.draw(window_sets(measure))
    ends = sorted(data.draw(st.lists(st.integers(-60, 200), min_size=2, max_size=12, unique=True)))
    low, high = (np.array(ends[i : len(ends) // 2 * 2 : 2], measure.dtype) for i in range(2))
    expected = [edges_between(windows, a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    assert edges_in(windows, low, high).tolist() == np.unique(np.concatenate(expected)).tolist()
