"""Techniques for span events: against the referee, by counting, and by the paper's own examples."""

from __future__ import annotations

from functools import partial
from math import ceil, log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from techniques.support import periodic, several

import windrow as wr
from benchmarks import techniques
from benchmarks.techniques import spanning
from tests.referee import ReferenceOperator, assert_same
from tests.referee.span_strategies import span_streams
from tests.referee.strategies import in_ticks, length, schedules

SLICING = {
    "SE-Slicing": spanning.SeSlicing,
    "one level": partial(spanning.SeMultiLevelSlicing, height=1),
    "three levels": partial(spanning.SeMultiLevelSlicing, height=3),
}
RIVALS = {
    "aggregate buckets": spanning.AggregateBuckets,
    "tuple buckets": spanning.TupleBuckets,
    "sweeping": spanning.PlaneSweeping,
}
ALL = SLICING | RIVALS
COLUMNS = {"x": "int", "s": "string"}
FOLDED = {
    "n": wr.count(),
    "strings": wr.count("s"),
    "total": wr.sum("x"),
    "mean": wr.mean("x"),
    "top": wr.max("s"),
    "first": wr.first("x"),
}
KEYS = st.sampled_from([[], ["int"], ["string", "bool"]])
LATENESS = st.sampled_from([0, 5])
RELEASES = st.sampled_from([0, 3, 25])


def lasting(**changes: Any) -> Any:
    """A query over span events."""
    given: dict[str, Any] = {"windows": {"w": wr.sliding(15, every=5)}, "aggregates": {"n": wr.count()}}
    return wr.query(**{"time": wr.span("since", "until"), **given, **changes})


def agree(make: Any, query: Any, steps: list[tuple[str, Any]], lateness: Any) -> None:
    """Drive a technique and the referee by the same steps, and compare what each of them gives."""
    type_ = steps[0][1].schema.field("until").type
    query, lateness = in_ticks(query, type_), length(lateness, type_)
    ours, referee = make(query, lateness=lateness), ReferenceOperator(query, lateness=lateness)
    for number, (step, argument) in enumerate(steps):
        if step == "process":
            ours.process(argument)
            referee.process(argument)
        else:
            assert_same(referee.advance(argument), ours.advance(argument), note=f"step {number}")
    assert_same(referee.finish(), ours.finish(), note="at the end")
    assert ours.late().num_rows == referee.late().num_rows
    assert ours.counters.partials == ours.counters.tuples == 0


# -- the definition ------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True], ids=["in order of end", "late"])
@pytest.mark.parametrize("name", ALL)
@examples(10)
@given(data=st.data())
def test_a_technique_agrees_with_the_referee(name, late, data):
    time = data.draw(st.sampled_from([pa.int64(), pa.timestamp("us", "UTC"), pa.date32()]))
    key = data.draw(KEYS)
    table = data.draw(span_streams(time=time, key=key, columns=COLUMNS))
    query = lasting(
        time=wr.span("since", "until", release=data.draw(RELEASES) if time == pa.int64() else 0),
        key=[f"key{i}" for i in range(len(key))],
        windows=data.draw(several(periodic())),
        aggregates=FOLDED,
    )
    if not late:
        table = table.sort_by("until")
    steps = data.draw(schedules(table, behind=8 if late else 0, times=("until",)))
    agree(ALL[name], query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("name", ALL)
@examples(8)
@given(data=st.data())
def test_a_measure_may_be_a_float(name, data):
    table = data.draw(span_streams(time=pa.float64(), columns={"x": "int"}))
    query = lasting(key="key0", windows=data.draw(several(periodic(0.25))))
    steps = data.draw(schedules(table, behind=8, times=("until",)))
    agree(ALL[name], query, steps, 0)


@pytest.mark.parametrize("name", [*SLICING, "aggregate buckets"])
@examples(8)
@given(data=st.data())
def test_how_often_the_largest_value_comes_is_not_counted_twice(name, data):
    table = data.draw(span_streams(time=pa.int64(), key=[], columns={"x": "count"}))
    query = lasting(windows=data.draw(several(periodic())), aggregates={"often": wr.max_count("x")})
    agree(ALL[name], query, data.draw(schedules(table, behind=8, times=("until",))), 0)


@examples(8)
@given(data=st.data())
def test_tuple_buckets_answer_quantiles_and_lists(data):
    table = data.draw(span_streams(time=pa.int64(), columns=COLUMNS))
    aggregates = {"median": wr.median("x"), "list": wr.collect("x"), "text": wr.concat("s", separator=",")}
    query = lasting(key="key0", windows=data.draw(several(periodic())), aggregates=aggregates)
    agree(spanning.TupleBuckets, query, data.draw(schedules(table, behind=8, times=("until",))), 0)


@pytest.mark.parametrize("name", ALL)
def test_an_event_of_no_length_is_a_point_if_asked_for(name):
    query = lasting(time=wr.span("since", "until", on_zero="point"), windows={"w": wr.tumbling(5)})
    ours = ALL[name](query)
    ours.process(pa.table({"since": [3, 5], "until": [3, 11]}))
    assert ours.finish()["n"].to_pylist() == [1, 1, 1]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("release", [50, wr.learned(0.9)], ids=["fixed", "learned"])
@pytest.mark.parametrize("name", ALL)
def test_a_long_stream_of_long_events_and_many_keys_agrees_with_the_engine(name, release):
    count = 5_000
    random = np.random.default_rng(3)
    until = np.arange(count) // 3 + random.integers(0, 20, count)
    since = until - np.where(random.random(count) < 0.1, 400, random.integers(1, 30, count))
    columns = {
        "since": since,
        "until": until,
        "key": random.integers(0, 7, count),
        "x": random.integers(0, 99, count),
    }
    table = pa.table({**columns, "s": pa.array(random.integers(0, 5, count)).cast(pa.string())})
    query = lasting(
        time=wr.span("since", "until", release=release),
        key="key",
        windows={
            "even": wr.sliding(60, every=12),
            "odd": wr.sliding(50, every=7),
            "gap": wr.sliding(3, every=11),
        },
        aggregates=FOLDED,
    )
    ours, engine = ALL[name](query), query.operator()
    for begin in range(0, count, 1_000):
        batch, watermark = table.slice(begin, 1_000), int(until[: begin + 1_000].max()) - 19
        ours.process(batch)
        engine.process(batch)
        assert_same(engine.advance(watermark), ours.advance(watermark))
    assert_same(engine.finish(), ours.finish())


# -- the paper's examples ------------------------------------------------------------------------

CALL = pa.table({"since": [16], "until": [34], "minutes": [18]})


def opened(make: Any, query: Any, first: int, last: int) -> tuple[Any, Any]:
    """A technique with empty slices first .. last, and what is behind it."""
    ours = make(query)
    ours._operator.prepare(CALL.schema)
    method = ours._operator.engines[0]
    method.make_room(np.array([first]), np.array([last]))
    return ours, method


def fill(method: Any, number: int, level: int, part: int, *fields: int) -> None:
    """Write the fields of a partial into a slice; the last one says of how many events it is."""
    (layer,) = method.layers
    slot = method.wheel.base[0] + (number & method.wheel.mask[0])
    cell = ((slot * layer.height + level) * layer.parts + part) * method.stride
    for column, value in zip(layer.cells, fields, strict=True):
        column[cell] = value


def minutes(**aggregates: Any) -> Any:
    """Every five minutes, over the last fifteen, released twenty minutes later."""
    return lasting(time=wr.span("since", "until", release=20), aggregates=aggregates)


def test_the_longest_call_of_section_3_2_1():
    ours, method = opened(spanning.SeSlicing, minutes(longest=wr.max("minutes")), 0, 6)
    for number, longest in enumerate([20, 63, 19, 33, 12, 47, 14]):
        fill(method, number, 0, 0, longest, 1)
    assert ours.slices["longest"].to_pylist() == [20, 63, 19, 33, 12, 47, 14]
    ours.process(CALL)
    assert ours.slices["start"].to_pylist() == [0, 5, 10, 15, 20, 25, 30]
    assert ours.slices["longest"].to_pylist() == [20, 63, 19, 33, 18, 47, 18]
    released = ours.advance(35).to_pylist()
    assert {row["start"]: row["longest"] for row in released}[0] == 63


def test_the_calls_of_section_3_2_2():
    ours, method = opened(spanning.SeSlicing, minutes(n=wr.count()), 0, 6)
    for number, ended in enumerate([8, 19, 15, 18, 14, 12, 16]):
        fill(method, number, 0, 0, ended)
    for number, going in enumerate([25, 18, 12, 14, 11, 19, 16]):
        fill(method, number, 0, 1, going)
    ours.process(CALL)
    assert ours.slices["n ends here"].to_pylist() == [8, 19, 15, 18, 14, 12, 17]
    assert ours.slices["n goes on"].to_pylist() == [25, 18, 12, 15, 12, 20, 16]
    released = ours.advance(35).to_pylist()
    assert {row["start"]: row["n"] for row in released}[0] == 54


# Of the slices from 50 to 80: by level, what ends in each and what goes on.
ENDED = {3: [4, 5, 5, 4, 4, 5], 2: [5, 7, 4, 3, 5, 4], 1: [5, 3, 6, 5, 5, 5]}
GOING = {3: [3, 6, 7, 3, 7, 6], 2: [2, 4, 5, 4, 4, 3], 1: [6, 5, 9, 7, 4, 5]}


def by_level(ours: Any, column: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {3: [], 2: [], 1: []}
    for row in ours.slices.to_pylist():
        found[row["level"]].append(row[column])
    return found


def test_the_levels_of_section_4_3_1():
    query = lasting(time=wr.span("since", "until", release=15))
    ours, method = opened(partial(spanning.SeMultiLevelSlicing, height=3), query, 10, 15)
    for part, known in enumerate((ENDED, GOING)):
        for level, counts in known.items():
            for i, count in enumerate(counts):
                fill(method, 10 + i, level - 1, part, count)
    assert by_level(ours, "n ends here") == ENDED
    assert by_level(ours, "n goes on") == GOING
    ours.process(pa.table({"since": [61], "until": [79], "minutes": [18]}))
    assert by_level(ours, "n ends here") == {**ENDED, 3: [4, 5, 5, 4, 4, 6]}
    assert by_level(ours, "n goes on") == {**GOING, 1: [6, 5, 10, 7, 4, 5]}
    released = ours.advance(80).to_pylist()
    assert {row["start"]: row["n"] for row in released}[50] == 91


@examples(8)
@given(data=st.data())
def test_one_level_is_slicing_without_levels(data):
    table = data.draw(span_streams(time=pa.int64(), key=[], columns=COLUMNS, min_size=1))
    query = lasting(windows=data.draw(several(periodic())), aggregates=FOLDED)
    flat, levels = spanning.SeSlicing(query), spanning.SeMultiLevelSlicing(query, height=1)
    for ours in (flat, levels):
        ours.process(table)
    assert flat.slices.equals(levels.slices)
    assert flat.counters == levels.counters


# -- what it costs (Table 4) ---------------------------------------------------------------------

EVENTS, RANGE, STEP, SIZE = 800, 40, 5, 23


def steady(size: int = SIZE) -> pa.Table:
    """An event ends at each tick."""
    until = np.arange(1_000, 1_000 + EVENTS)
    return pa.table({"since": until - size, "until": until, "x": until * 7919 % 1009})


def cost(make: Any, *, size: int = SIZE, step: int = STEP, **aggregates: Any) -> tuple[Any, Any, Any, int]:
    """The counters before and after all events, and after a few windows in the midst of them, with how many."""
    query = lasting(windows={"w": wr.sliding(RANGE, every=step)}, aggregates=aggregates or {"n": wr.count()})
    ours = make(query)
    ours.process(steady(size))
    ours.advance(1_000 + EVENTS // 3)
    before = ours.counters
    rows = ours.advance(1_000 + 2 * EVENTS // 3).num_rows
    fresh = make(query)
    fresh.process(steady(size))
    return fresh.counters, before, ours.counters, rows


def slices_of(size: int) -> np.ndarray:
    """How many slices of a step each event lies in."""
    until = np.arange(1_000, 1_000 + EVENTS)
    return (until - 1) // STEP - (until - size) // STEP + 1


@pytest.mark.parametrize("size", [1, SIZE, 200])
def test_an_event_is_inserted_once_per_slice_and_with_levels_once_per_height(size):
    covered = slices_of(size)
    inserted, *_ = cost(spanning.SeSlicing, size=size)
    assert inserted.combines + inserted.partials == covered.sum()
    for height in (2, 7, 20):
        inserted, *_ = cost(partial(spanning.SeMultiLevelSlicing, height=height), size=size)
        assert inserted.combines + inserted.partials == np.ceil(covered / height).sum()


@pytest.mark.parametrize("size", [1, SIZE, 200])
def test_buckets_take_an_event_once_per_window(size):
    windows = (slices_of(size) + RANGE // STEP - 1).sum()
    inserted, before, after, _ = cost(spanning.AggregateBuckets, size=size)
    assert inserted.combines + inserted.partials == windows
    assert after.combines == before.combines
    inserted, before, after, rows = cost(spanning.TupleBuckets, size=size)
    assert (inserted.combines, inserted.tuples) == (0, windows)
    assert after.combines - before.combines == rows * (RANGE + size - 2)


def test_a_release_reads_each_slice_of_the_window_once():
    _, before, after, rows = cost(spanning.SeSlicing)
    assert after.combines - before.combines == rows * RANGE // STEP
    _, before, after, rows = cost(spanning.SeSlicing, step=6)
    assert after.combines - before.combines == rows * (2 * (RANGE // 6) + 1)


@pytest.mark.parametrize("height", [2, 7, 20])
def test_a_release_reads_all_levels_of_the_window(height):
    _, before, after, rows = cost(partial(spanning.SeMultiLevelSlicing, height=height), size=200)
    most = height * (RANGE // STEP + height - 1) + height - 1
    assert rows <= after.combines - before.combines <= rows * most


@pytest.mark.parametrize("size", [1, SIZE, 200])
def test_sweeping_handles_each_endpoint_once_however_long_events_last(size):
    inserted, before, after, rows = cost(spanning.PlaneSweeping, size=size)
    assert (inserted.combines, inserted.tuples) == (0, EVENTS)
    assert after.combines - before.combines == 2 * rows * STEP


@pytest.mark.parametrize("size", [1, SIZE, 200])
def test_sweeping_selects_in_logarithmic_steps(size):
    _, before, after, rows = cost(spanning.PlaneSweeping, size=size, top=wr.max("x"))
    active = RANGE + size
    assert after.combines - before.combines <= 2 * rows * STEP * ceil(log2(active))


def test_slices_keep_a_few_partials_and_sweeping_keeps_events():
    kept = {name: cost(make)[0] for name, make in ALL.items()}
    slices = int(slices_of(EVENTS)[-1]) + SIZE // STEP + 1
    assert kept["SE-Slicing"].partials <= 2 * slices
    assert kept["three levels"].partials <= 3 * 2 * slices
    assert kept["aggregate buckets"].partials <= slices + RANGE // STEP
    assert kept["tuple buckets"].tuples > kept["sweeping"].tuples == EVENTS


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"time": "until"}, "time column 'until' .* it takes span events"),
        ({"time": wr.span("since", "until", contributes="prorated")}, "contribute 'prorated'"),
        ({"time": wr.span("since", "until", contributes="end")}, "contribute 'end'"),
        ({"time": wr.span("since", "until", id="call")}, "none that are open"),
        ({"windows": {"w": wr.session(4)}}, "window 'w' .* periodic windows of time"),
        ({"windows": {"w": wr.band(0, length=9)}}, "window 'w' .* periodic windows of time"),
    ],
)
def test_queries_that_a_technique_does_not_take_are_refused(name, changes, why):
    with pytest.raises(wr.QueryError, match=why):
        ALL[name](lasting(**changes))


@pytest.mark.parametrize("name", [n for n in ALL if n != "tuple buckets"])
def test_aggregates_that_need_events_are_refused_where_none_is_kept(name):
    with pytest.raises(wr.QueryError, match="aggregate 'm' cannot be answered"):
        ALL[name](lasting(aggregates={"m": wr.median("x")}))
    ordered = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: b, identity=0.0, commutative=False, columns=["x"]
    )
    with pytest.raises(wr.QueryError, match="aggregate 'm' cannot be answered"):
        ALL[name](lasting(aggregates={"m": ordered}))


def test_sweeping_refuses_what_it_can_neither_take_back_nor_select():
    with pytest.raises(wr.QueryError, match="neither invertible nor does it select"):
        spanning.PlaneSweeping(lasting(aggregates={"v": wr.variance("x")}))
    table = pa.table({"since": [1], "until": [2], "x": [0.5]})
    for aggregate in (wr.sum("x"), wr.m4("x")):
        with pytest.raises(wr.QueryError, match="neither exactly invertible nor does it select"):
            spanning.PlaneSweeping(lasting(aggregates={"a": aggregate})).process(table)


@pytest.mark.parametrize("height", [0, -1, 1.5, True, "2"])
def test_a_height_is_a_whole_number_of_levels(height):
    with pytest.raises(wr.QueryError, match="the height of slices is a whole number"):
        spanning.SeMultiLevelSlicing(lasting(), height=height)


def test_techniques_for_instants_refuse_events_that_last():
    for technique in (techniques.Pairs, techniques.TupleBuckets):
        with pytest.raises(
            wr.QueryError, match=r"\[since, until\) cannot be answered by .*spanning has those"
        ):
            technique(lasting())


@pytest.mark.parametrize("name", ALL)
def test_bad_rows_are_errors_and_nothing_of_their_batch_is_taken(name):
    ours = ALL[name](lasting())
    for since, until in ((5, None), (None, 5), (5, 5), (6, 5)):
        table = pa.table(
            {"since": pa.array([1, since], pa.int64()), "until": pa.array([2, until], pa.int64())}
        )
        with pytest.raises(wr.DataError, match="row 1"):
            ours.process(table)
    ours.process(pa.table({"since": [1], "until": [4]}))
    assert ours.finish()["n"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("name", [n for n in ALL if n != "sweeping"])
def test_an_event_in_more_windows_than_there_is_room_for_is_a_limit(name):
    ours = ALL[name](lasting(windows={"w": wr.tumbling(1)}))
    ours.process(pa.table({"since": [1], "until": [2]}))
    with pytest.raises(wr.LimitError, match="nothing of this batch was taken"):
        ours.process(pa.table({"since": [1], "until": [10**12]}))
    assert ours.finish()["n"].to_pylist() == [1]


def test_sweeping_leaps_over_a_time_without_events():
    ours = spanning.PlaneSweeping(lasting(windows={"w": wr.tumbling(1)}))
    ours.process(pa.table({"since": [1, 10**12], "until": [2, 10**12 + 2]}))
    assert ours.finish()["start"].to_pylist() == [1, 10**12, 10**12 + 1]


@pytest.mark.parametrize("name", ALL)
def test_nothing_comes_from_nothing(name):
    ours = ALL[name](lasting())
    assert ours.advance(3).num_rows == 0
    none = pa.array([], pa.int64())
    ours.process(pa.table({"since": none, "until": none}))
    assert ours.finish().num_rows == 0
    assert ours.counters == techniques.Counters(0, 0, 0)
