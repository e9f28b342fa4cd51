"""How events that last are noted: trees of any height, the release delay, the arena as it grows and shrinks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates.extremes import PLAIN
from windrow.durations import parse_duration
from windrow.engine.spanning.across import Crossed, Extent, survey
from windrow.engine.spanning.placing import Ranges
from windrow.engine.spanning.release import Release
from windrow.measure import Measure
from windrow.planner import spanning
from windrow.testing import assert_same, oracle, replay

SLICES = 40


def crossed(keys):
    found = Crossed(PLAIN["max", "i"], 1, np.dtype(np.int64))
    found.repack(np.empty(0, np.int64), SLICES, keys, slice(0, 0))
    return found


@given(st.data(), st.integers(1, 3), st.integers(1, 7))
def test_a_tree_of_any_height_notes_what_each_slice_notes(data, keys, height):
    places = st.tuples(st.integers(0, SLICES - 1), st.integers(-1, SLICES), st.integers(0, keys - 1))
    rows = data.draw(st.lists(places, min_size=1, max_size=12))
    low = np.array([a for a, _, _ in rows])
    high = np.minimum(low + np.array([b for _, b, _ in rows]), SLICES - 1)
    key = np.array([k for _, _, k in rows])
    ranges = Ranges(low, high, key, np.arange(SLICES) * keys, keys)
    values = [np.arange(len(rows)) * 7 % 5]
    plain, tree = crossed(keys), crossed(keys)
    plain.note_each(ranges, values)
    extent = Extent(*survey(low, high))
    if extent.events:
        tree.note_in_tree(ranges, values, extent, np.arange(keys), key, height)
    assert tree.n.tolist() == plain.n.tolist()
    assert tree.fields[0][tree.n > 0].tolist() == plain.fields[0][plain.n > 0].tolist()


def test_longer_events_ask_for_higher_trees_and_short_ones_for_none():
    heights = [spanning.height(10_000 * n, 10_000, slices=20_000, keys=1) for n in (1, 100, 10_000)]
    assert heights[0] == 0
    assert 0 < heights[1] < heights[2]


def test_many_keys_make_a_tree_too_dear():
    assert spanning.height(100_000, 1_000, slices=20_000, keys=1_000) == 0


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_a_learned_delay_is_never_shorter_than_its_share_of_events_and_hardly_longer(lengths, quantile):
    release = Release(wr.learned(quantile), Measure("t", pa.int64()))
    starts = np.zeros(len(lengths), np.int64)
    release.note(starts, np.array(lengths))
    # From the first instant to the last one, and one tick more to the end.
    exact = sorted(lengths)[int(np.ceil(quantile * len(lengths))) - 1] + 1
    assert exact <= release.delay <= exact + exact / 16 + 1


def test_a_fixed_delay_is_what_the_user_said():
    measure = Measure("t", pa.timestamp("us"))
    assert Release(parse_duration("2 seconds"), measure).delay == 2_000_000


def calls(lengths):
    ends = np.cumsum(np.full(len(lengths), 3))
    return pa.table({"since": ends - lengths, "until": ends, "x": np.arange(len(lengths)) % 10})


def asked(**options):
    return wr.query(
        time=wr.span("since", "until", **options),
        windows={"w": wr.sliding(20, every=5)},
        aggregates={"n": wr.count(), "total": wr.sum("x"), "most": wr.max("x")},
    )


def test_events_longer_than_a_learned_delay_revise_what_was_given_out():
    events = calls(np.array([2] * 40 + [90] + [2] * 40))
    query = asked(release=wr.learned(0.9))
    operator = query.operator(mode="update", lateness=200)
    changes = []
    for begin in range(0, events.num_rows, 10):
        part = events.slice(begin, 10)
        operator.process(part)
        changes.append(operator.advance(part["until"][-1].as_py()))
    changes.append(operator.finish())
    log = pa.concat_tables(changes)
    assert "update" in log["op"].to_pylist()
    assert_same(oracle(asked(), events), replay(log))


def test_state_stays_small_while_events_come_and_go():
    query = asked(release=50)
    operator = query.operator()
    sizes = []
    for round_ in range(60):
        part = calls(np.full(200, 40))
        shift = pa.scalar(600 * round_)
        moved = {n: pa.compute.add(part[n], shift) for n in ("since", "until")}
        operator.process(pa.table({**moved, "x": part["x"]}))
        operator.advance(600 * round_ + 600)
        sizes.append(operator.metrics().bytes)
    assert max(sizes[20:]) <= max(sizes[:20])


def test_explain_says_what_becomes_of_an_event():
    schema = pa.schema([("since", pa.int64()), ("until", pa.int64()), ("x", pa.int64())])
    text = asked(release=wr.learned(0.99)).explain(schema)
    assert "one pass over [since, until)" in text
    assert "count(), sum(x)" in text
    assert "noted twice" in text
    assert "through a tree" in text
    assert "99.0% of the events" in text


@pytest.mark.parametrize("contributes", ["prorated", "start", "end"])
def test_explain_knows_each_contribution(contributes):
    query = wr.query(
        time=wr.span("since", "until", contributes=contributes),
        windows={"w": wr.tumbling(5)},
        aggregates={"n": wr.count()},
    )
    assert spanning.CONTRIBUTIONS[contributes] in query.explain()


def test_a_span_over_more_windows_than_the_limit_is_refused_before_it_takes_memory():
    events = pa.table({"since": [0], "until": [2**62], "x": [1]})
    operator = asked().operator(max_slices=1_000)
    with pytest.raises(wr.LimitError, match="nothing of this batch was taken"):
        operator.process(events)
    assert operator.finish().num_rows == 0


def test_an_event_far_ahead_costs_only_its_own_slices():
    events = pa.table({"since": [0, 10**15], "until": [30, 10**15 + 30], "x": [1, 2]})
    answer = asked().run(events)
    assert_same(oracle(asked(), events), answer)
