"""Cutty's Table 1 by counting: one periodic window of range r and slide s, an event per tick.

    technique    space (eager: with the tree)    update                         merge
    cutty        ceil(r/s) + 1                   1 per event, log per slice     log of the leaves, + 1
    pairs        2 ceil(r/s)                     1 per event                    fragments - 1
    panes        r / gcd(r, s)                   1 per event                    panes - 1
    RA           r tuples, r - 1 above them      log(r) per event               2 log(r)

What the table says of a lazy store is exact here; of an eager one it is a bound. A combine joins two partials: the
first event of a slice is lifted and not combined, so n events in k slices take n - k.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import ceil, gcd, log2

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from benchmarks import techniques

CASES = [(10, 3), (16, 1), (25, 10), (9, 9)]
EVENTS = 120


def running(technique, r, s):
    """The technique after each event, with the windows that the event's watermark completed."""
    query = wr.query(time="t", windows={"w": wr.sliding(r, every=s)}, aggregates={"n": wr.sum("t")})
    ours = technique(query)
    for t in range(EVENTS):
        ours.process(pa.table({"t": [t]}))
        before = ours.counters
        rows = ours.advance(t + 1).num_rows
        yield before, ours.counters, rows


@cache
def settled(technique, r, s):
    """As `running`, from the first window that began with the stream on: before it, windows are cut off."""
    return list(running(technique, r, s))[2 * r :]


@pytest.mark.parametrize(("r", "s"), CASES)
def test_lazy_slicing_merges_all_slices_of_a_window_but_one(r, s):
    parts = {techniques.Panes: r // gcd(r, s), techniques.Pairs: 2 * (r // s) + 1 if r % s else r // s}
    for technique, slices in parts.items():
        for before, after, rows in settled(technique, r, s):
            assert after.combines - before.combines == rows * (slices - 1)


@pytest.mark.parametrize(("r", "s"), CASES)
def test_lazy_slicing_updates_with_one_combine_per_event_that_begins_no_slice(r, s):
    slices = {techniques.Panes: s // gcd(r, s), techniques.Pairs: 2 if r % s else 1}
    for technique, per_slide in slices.items():
        steps = settled(technique, r, s)
        updates = [b[0].combines - a[1].combines for a, b in pairwise(steps)]
        assert set(updates) <= {0, 1}
        whole = len(updates) // s * s
        assert sum(updates[:whole]) == whole - whole // s * per_slide


@pytest.mark.parametrize(("r", "s"), CASES)
def test_slices_take_the_space_of_the_table(r, s):
    most = {
        techniques.Panes: r // gcd(r, s) + s // gcd(r, s),
        techniques.Pairs: 2 * ceil(r / s) + 2,
        techniques.PairsPlus: 2 * (2 * ceil(r / s) + 2),
        techniques.Cutty: 2 * ceil(r / s) + 1,
    }
    for technique, space in most.items():
        found = [after.partials for _, after, _ in settled(technique, r, s)]
        assert max(found) <= space, technique


@pytest.mark.parametrize(("r", "s"), CASES)
def test_cutty_updates_once_per_event_and_by_a_path_per_slice(r, s):
    levels = ceil(log2(ceil(r / s) + 1)) + 1
    steps = settled(techniques.Cutty, r, s)
    updates = [b[0].combines - a[1].combines for a, b in pairwise(steps)]
    assert max(updates) <= levels + 1
    assert np.mean(updates) <= levels / s + 1


@pytest.mark.parametrize(("r", "s"), CASES)
def test_cutty_merges_in_logarithmic_steps(r, s):
    leaves = ceil(r / s) + 1
    for before, after, rows in settled(techniques.Cutty, r, s):
        assert after.combines - before.combines <= rows * (2 * ceil(log2(leaves)) + 1)


@pytest.mark.parametrize(("r", "s"), CASES)
def test_cutty_makes_fewer_slices_than_pairs_and_pairs_fewer_than_panes(r, s):
    cutty, plus, panes = (
        settled(t, r, s)[-1][1] for t in (techniques.Cutty, techniques.PairsPlus, techniques.Panes)
    )
    assert cutty.partials <= plus.partials
    # Where the slide divides the range, both cut at the same places.
    assert cutty.combines <= plus.combines or r % s == 0
    pairs = settled(techniques.Pairs, r, s)[-1][1]
    assert pairs.partials <= panes.partials + 1


@pytest.mark.parametrize(("r", "s"), CASES)
def test_a_reactive_aggregator_updates_a_path_per_event_over_all_tuples(r, s):
    steps = settled(techniques.ReactiveAggregator, r, s)
    levels = ceil(log2(r + s)) + 1
    updates = [b[0].combines - a[1].combines for a, b in pairwise(steps)]
    assert max(updates) <= levels
    assert min(updates) >= 1
    for before, after, rows in steps:
        assert after.combines - before.combines <= rows * 2 * levels
        assert r - s <= after.tuples <= r + s
        assert after.partials == max(0, after.tuples - 1)


def test_base_intervals_take_one_combine_per_event_in_the_long_run():
    steps = settled(techniques.BaseIntervals, 32, 8)
    updates = [b[0].combines - a[1].combines for a, b in pairwise(steps)]
    assert np.mean(updates) <= 1.1


def in_sessions(technique, times, gap):
    """The technique with these events in sessions of this gap, one event at a time, before the end and after it."""
    ours = technique(wr.query(time="t", windows={"w": wr.session(gap)}, aggregates={"n": wr.count()}))
    for t in times:
        ours.process(pa.table({"t": [t]}))
    live = ours.counters
    ours.finish()
    return live, ours.counters.combines


@pytest.mark.parametrize(
    ("times", "sessions"),
    [([1, 2, 3, 9, 10], 2), ([9, 10, 1, 2, 5], 2), ([1, 7, 13, 4, 10], 1), ([4, 1, 20], 2)],
)
def test_a_session_takes_a_combine_for_each_event_but_one_however_often_it_is_fused(times, sessions):
    for technique in (techniques.TupleBuffer, techniques.TupleBuckets, techniques.AggregateBuckets):
        live, combines = in_sessions(technique, times, 3)
        assert combines == len(times) - sessions
        held = (sessions, 0) if technique is techniques.AggregateBuckets else (0, len(times))
        assert (live.partials, live.tuples) == held


def test_sessions_of_a_tree_are_joined_in_logarithmic_steps():
    times = [t for begin in range(0, 10_000, 1_000) for t in range(begin, begin + 100)]
    for technique in (techniques.ReactiveAggregator, techniques.BaseIntervals):
        query = wr.query(time="t", windows={"w": wr.session(3)}, aggregates={"n": wr.count()})
        ours = technique(query)
        ours.process(pa.table({"t": times}))
        before = ours.counters
        assert ours.finish().num_rows == 10
        assert ours.counters.combines - before.combines <= 10 * 2 * ceil(log2(before.tuples))


@pytest.mark.parametrize(("r", "s"), CASES)
def test_buckets_and_buffers_combine_each_event_once_per_window(r, s):
    query = wr.query(time="t", windows={"w": wr.sliding(r, every=s)}, aggregates={"n": wr.count()})
    events = pa.table({"t": list(range(EVENTS))})
    sizes = np.array(query.run(events)["n"].to_pylist())
    for technique in (techniques.TupleBuffer, techniques.TupleBuckets, techniques.AggregateBuckets):
        ours = technique(query)
        ours.process(events)
        live = ours.counters
        ours.finish()
        assert ours.counters.combines == (sizes - 1).sum()
        kept = {techniques.TupleBuffer: EVENTS, techniques.TupleBuckets: sizes.sum()}
        assert live.tuples == kept.get(technique, 0)
        assert live.partials == (len(sizes) if technique is techniques.AggregateBuckets else 0)
