"""How span events are carried over: trees of any height, the release delay, the arena as it grows and shrinks."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from both_tiers import plain_loops
from hypothesis import example, given
from hypothesis import strategies as st

import windrow as wr
from tests.referee import assert_same, oracle
from tests.referee.spans import learned_delay
from windrow.aggregates.extremes import PLAIN
from windrow.durations import parse_duration
from windrow.engine.aligned import edges
from windrow.engine.spanning import carry_over
from windrow.engine.spanning.carry_over import Crossings, Differences, Extent, crossed_by
from windrow.engine.spanning.placing import Ranges
from windrow.engine.spanning.release import Release
from windrow.measure import Measure
from windrow.planner import spanning
from windrow.testing import replay

SLICES = 40


def crossed(keys):
    found = Crossings(PLAIN["max", "i"], 1, np.dtype(np.int64))
    found.repack(np.empty(0, np.int64), SLICES, keys, slice(0, 0))
    return found


@given(st.data(), st.integers(1, 3), st.integers(1, 7))
def test_a_tree_of_any_height_folds_what_is_folded_at_each_start(data, keys, height):
    places = st.tuples(st.integers(0, SLICES - 1), st.integers(-1, SLICES), st.integers(0, keys - 1))
    rows = data.draw(st.lists(places, min_size=1, max_size=12))
    low = np.array([a for a, _, _ in rows])
    high = np.minimum(low + np.array([b for _, b, _ in rows]), SLICES - 1)
    key = np.array([k for _, _, k in rows])
    ranges = Ranges(np.arange(1, len(low) + 1), low, high, key, np.arange(SLICES) * keys, keys)
    values = [np.arange(len(rows)) * 7 % 5]
    plain, tree = crossed(keys), crossed(keys)
    plain.fold_at_each(ranges, values)
    extent = Extent(*crossed_by(low, high))
    if extent.runs:
        tree.fold_through_tree(ranges, values, extent, np.arange(keys), key, height)
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
    measure = Measure("t", pa.int64())
    release = Release(wr.learned(quantile), measure)
    starts = np.zeros(len(lengths), np.int64)
    release.note(release.lengths(starts, np.array(lengths)))
    # From the first instant to the last one, and one tick more to the end.
    exact = sorted(lengths)[int(np.ceil(quantile * len(lengths))) - 1] + 1
    assert exact <= release.delay <= exact + exact / 16
    assert release.delay == learned_delay([Fraction(n + 1) for n in lengths], quantile, measure)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20), st.floats(-1e300, 1e300))
@example([0.001], 0.0)
@example([0.25], -1e-20)
def test_a_learned_delay_of_floats_is_as_close(lengths, since):
    measure = Measure("t", pa.float64())
    release = Release(wr.learned(1.0), measure)
    starts = np.full(len(lengths), since)
    ends = np.maximum(since + np.array(lengths), np.nextafter(starts, np.inf))
    release.note(release.lengths(starts, np.nextafter(ends, -np.inf)))
    exact = [Fraction(end.item()) - Fraction(since) for end in ends]
    assert max(exact) <= Fraction(release.delay) <= max(exact) * 17 / 16
    assert release.delay == learned_delay(exact, 1.0, measure)


def test_the_length_that_no_int64_can_tell_is_learned():
    release = Release(wr.learned(1.0), Measure("t", pa.int64()))
    release.note(release.lengths(np.array([-6 * 10**18]), np.array([6 * 10**18 - 1])))
    assert 12 * 10**18 <= release.delay <= 12 * 10**18 * 17 // 16


@pytest.mark.parametrize("contributes", ["whole", "prorated", "start", "end"])
def test_a_release_is_learned_from_lengths_whatever_events_contribute(contributes):
    span = wr.span("since", "until", contributes=contributes, release=wr.learned(1.0))
    query = wr.query(time=span, windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.process(pa.table({"since": [0, 1], "until": [100, 101]}))
    assert operator.advance(109).num_rows == 0
    assert operator.advance(110).num_rows == (0 if contributes == "end" else 1)


def test_a_release_is_learned_from_events_in_two_rows_once_they_are_over():
    operator = asked(id="x", release=wr.learned(1.0)).operator()
    nothing = pa.array([None], pa.int64())
    operator.process(pa.table({"since": [0], "until": nothing, "x": [1]}))
    assert operator.span_input.release.delay == 0
    operator.process(pa.table({"since": nothing, "until": [100], "x": [1]}))
    assert operator.span_input.release.delay == 100


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
    assert "folded twice" in text
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


def test_the_slices_of_all_keys_count_before_a_long_span_takes_memory():
    query = wr.query(
        time=wr.span("since", "until"), key="x", windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()}
    )
    operator = query.operator(max_slices=30_000_000)
    with pytest.raises(
        wr.LimitError, match=r"cross up to 20,000,0\d\d slices of 2 keys.*max_slices=30,000,000"
    ):
        operator.process(pa.table({"since": [0, 0], "until": [20_000_000] * 2, "x": [1, 2]}))
    assert operator.metrics().bytes < 1_000_000


def steps_of(call) -> int:
    """How many lines of this package a call runs, with its loops as plain Python."""
    steps = 0

    def step(frame, event, _):
        nonlocal steps
        steps += event == "line"
        return step if frame.f_globals.get("__name__", "").startswith("windrow.") else None

    before = sys.gettrace()
    sys.settrace(step)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


def test_a_slice_costs_the_same_however_many_of_them_an_event_crosses(monkeypatch):
    # Behind so many edges they are found in another way.
    monkeypatch.setattr(edges, "ALWAYS", 1_000)
    query = wr.query(
        time=wr.span("since", "until"), windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()}
    )

    def work(slices: int) -> tuple[float, int]:
        """Lines for each slice; and numbers that NumPy sorts, which takes it no line."""
        numbers = 0

        def seen(function):
            def called(*arguments, **options):
                nonlocal numbers
                if options.get("kind") != "stable":  # that takes a step for each number of those that ascend
                    numbers += sum(map(np.size, arguments))
                return function(*arguments, **options)

            return called

        operator = query.operator()
        with plain_loops(), monkeypatch.context() as patched:
            for name in ("unique", "sort", "argsort", "lexsort", "union1d", "isin"):
                patched.setattr(np, name, seen(getattr(np, name)))
            steps = steps_of(lambda: operator.process(pa.table({"since": [0], "until": [slices]})))
            steps += steps_of(lambda: operator.advance(slices))
        return steps / slices, numbers

    few, _ = work(900)
    for many in (1_200, 10_000, 40_000):
        steps, numbers = work(many)
        assert steps < 1.2 * few
        assert numbers < 100


def test_events_far_apart_that_cross_very_many_slices_are_counted_in_each():
    query = wr.query(
        time=wr.span("since", "until"), windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()}
    )
    starts = np.array([0, 400_000, 400_001, 10**9, 10**9 + 600_000])
    ends = np.array([400_000, 900_000, 400_003, 10**9 + 600_001, 10**9 + 700_000])
    rows = query.run(pa.table({"since": starts, "until": ends}))
    assert rows.num_rows == 900_000 + 700_000
    assert rows["n"].to_numpy().sum() == (ends - starts).sum()
    more = rows.filter(pc.greater(rows["n"], 1))["start"].to_pylist()
    assert sorted(more) == [400_001, 400_002, 10**9 + 600_000]


def test_an_event_far_ahead_costs_only_its_own_slices():
    events = pa.table({"since": [0, 10**15], "until": [30, 10**15 + 30], "x": [1, 2]})
    answer = asked().run(events)
    assert_same(oracle(asked(), events), answer)


def test_a_limit_longer_than_any_event_is_none():
    events = pa.table({"since": [0], "until": [30], "x": [1]})
    assert_same(asked().run(events), asked(longest=2**70).run(events))
    days = pa.table({"since": pa.array([0], pa.timestamp("ns")), "until": pa.array([1], pa.timestamp("ns"))})
    span = wr.span("since", "until", longest="1000000 days")
    query = wr.query(time=span, windows={"w": wr.tumbling("1 day")}, aggregates={"n": wr.count()})
    assert query.run(days).num_rows == 1


def not_seven(total):
    if total == 7:
        raise ValueError("seven")
    return total


def test_an_advance_that_fails_leaves_open_events_as_they_were():
    own = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: a + b, lower=not_seven, identity=0, columns=["x"]
    )
    query = wr.query(
        time=wr.span("since", "until", id="who"),
        windows={"w": wr.tumbling(5)},
        aggregates={"n": wr.count(), "own": own},
    )
    operator = query.operator()
    nothing = pa.array([None], pa.int64())
    operator.process(pa.table({"since": [1], "until": nothing, "who": [1], "x": [7]}))
    before = operator.snapshot()
    with pytest.raises(wr.UserFunctionError, match="seven"):
        operator.advance(20)
    assert operator.snapshot() == before
    operator.process(pa.table({"since": nothing, "until": [3], "who": [1], "x": nothing}))
    assert operator.late().num_rows == 0


def test_keys_of_open_events_are_not_forgotten():
    many = 3_000
    query = wr.query(
        time=wr.span("since", "until", id="who"),
        key="who",
        windows={"w": wr.tumbling(5)},
        aggregates={"n": wr.count(), "all": wr.collect("who")},
    )
    operator = query.operator()
    nothing = pa.nulls(many, pa.int64())
    operator.process(pa.table({"since": [1] * many, "until": nothing, "who": np.arange(many)}))
    for watermark in (5, 10, 15):
        rows = operator.advance(watermark)
        assert rows["all"].to_pylist() == [[who] for who in rows["who"].to_pylist()]
        assert rows.num_rows == many


def test_open_events_keep_dictionaries_and_columns_that_some_batches_lack():
    def opening(who, letter, **more):
        columns = {"since": [1], "until": pa.array([None], pa.int64()), "who": [who]}
        return pa.table(columns | {"letter": pa.array([letter]).dictionary_encode()} | more)

    query = wr.query(
        time=wr.span("since", "until", id="who"),
        key="letter",
        windows={"w": wr.tumbling(5)},
        aggregates={"n": wr.count()},
    )
    operator = query.operator()
    operator.process(opening(1, "a", name=pa.array(["ann"], pa.string_view()), list=[[1]]))
    operator.process(opening(2, "b"))
    with pytest.raises(wr.QueryError, match="'list', which is not kept of the 2 events that are open"):
        operator.add_aggregate("lists", wr.count("list"))
    operator.add_aggregate("names", wr.concat("name"))
    operator = operator.query.restore(operator.snapshot())
    rows = operator.advance(10).to_pylist()[-2:]
    assert [(row["letter"], row["names"]) for row in rows] == [("a", "ann"), ("b", None)]


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64()], ids=str)
def test_explain_and_engine_agree_on_what_can_be_taken_out_again(type_):
    schema = pa.schema([("since", pa.int64()), ("until", pa.int64()), ("x", type_)])
    own = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: a + b, invert=lambda a, b: a - b, identity=0, columns=["x"]
    )
    query = wr.query(time=wr.span("since", "until"), windows={"w": wr.tumbling(5)}, aggregates={"own": own})
    operator = query.operator()
    operator.prepare(schema)
    engine = operator.engines[0]
    (own,) = engine.binding.in_order[1:]
    is_difference = isinstance(engine.spans.carry_overs[id(own)], Differences)
    assert ("folded twice" in query.explain(schema)) == is_difference
    assert is_difference == (type_ == pa.int64())
    assert "as its types allow" in query.explain()


def test_a_window_that_is_added_is_not_there_before_it_is_complete():
    """So an event that only such windows would have held is late if the others are final, and is not if there is none."""
    operator = asked().operator()
    operator.process(pa.table({"since": [14], "until": [19], "x": [1]}))
    assert operator.add_window("long", wr.sliding(40, every=5)) == 20
    operator.advance(40)
    early = pa.table({"since": [4], "until": [12], "x": [1]})
    operator.process(early)
    assert operator.late().equals(early)


def test_a_window_that_is_added_behind_a_watermark_emits_none_that_begins_before_it_is_complete():
    operator = asked().operator()
    operator.process(pa.table({"since": [2, 14], "until": [33, 19], "x": [1, 2]}))
    operator.advance(12)
    assert operator.add_window("more", wr.tumbling(10)) == 40
    operator.process(pa.table({"since": [21, 41], "until": [44, 52], "x": [4, 8]}))
    rows = operator.finish().filter(pc.field("window") == "more").to_pylist()
    assert [(row["start"], row["total"]) for row in rows] == [(40, 12), (50, 8)]


def test_a_window_can_be_added_when_all_others_are_over():
    query = wr.query(
        time=wr.span("since", "until"), windows={"w": wr.band(3, length=5)}, aggregates={"n": wr.count()}
    )
    operator = query.operator()
    operator.process(pa.table({"since": [4], "until": [9]}))
    operator.advance(60)
    operator.process(pa.table({"since": [61], "until": [64]}))
    assert operator.add_window("more", wr.tumbling(5)) == 65
    operator.process(pa.table({"since": [66], "until": [68]}))
    assert operator.finish()["n"].to_pylist() == [1]


def late_stream(history, calls):
    """Short spans of three keys, and in each later call one from the middle of the history."""
    random = np.random.default_rng(5)
    for call in range(calls + 1):
        count = history if call == 0 else 20
        since = np.arange(count) + (0 if call == 0 else history + 20 * call)
        if call:
            since[0] -= history // 2 + int(random.integers(0, 40))
        lasting = random.integers(1, 45, count)
        columns = {"since": since, "until": since + lasting, "k": random.integers(0, 3, count)}
        yield pa.table(columns | {"v": random.integers(0, 9, count)})


def span_query():
    windows = {"a": wr.tumbling(10), "b": wr.sliding(30, every=15)}
    aggregates = {"n": wr.count(), "x": wr.sum("v"), "m": wr.max("v")}
    return wr.query(time=wr.span("since", "until"), key="k", windows=windows, aggregates=aggregates)


def replayed(query, tables, **options):
    operator = query.operator(mode="update", **options)
    found = []
    for table in tables:
        operator.process(table)
        found.append(operator.advance(int(table["since"].to_numpy().max())))
    return replay(pa.concat_tables([*found, operator.finish()]))


@pytest.mark.parametrize("every", [1, 2, 7])
def test_what_goes_on_is_the_same_from_any_mark_on(every, monkeypatch):
    monkeypatch.setattr(carry_over, "MARK_CELLS", 1)
    monkeypatch.setattr(carry_over, "FEWEST_SLICES", every)
    query, tables = span_query(), list(late_stream(300, 12))
    assert_same(oracle(query, pa.concat_tables(tables)), replayed(query, tables, lateness=400))


def test_a_call_walks_through_few_slices_however_many_are_held(monkeypatch):
    monkeypatch.setattr(carry_over, "MARK_CELLS", 64)
    walked = []
    walk = Differences._walk

    def counted(self, total, starts, slots, keys):
        walked.append(len(slots))
        return walk(self, total, starts, slots, keys)

    monkeypatch.setattr(Differences, "_walk", counted)
    most = []
    for history in (1_000, 8_000):
        operator = span_query().operator(mode="update", lateness=2 * history)
        for call, table in enumerate(late_stream(history, 12)):
            operator.process(table)
            operator.advance(int(table["since"].to_numpy().max()))
            if call < 2:
                walked.clear()
        most.append(max(walked))
    assert most[1] <= most[0] + 64, most
