"""State: it shrinks as the watermark passes, survives restarts and changes of the query, and stays exact."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import answers, assert_same
from windrow.engine.emission import Ledger
from windrow.testing import replay


def batch(times, keys=None, values=None, texts=None):
    columns = {"ts": pa.array(times, pa.int64())}
    columns["k"] = pa.array(keys if keys is not None else ["a"] * len(times), pa.string())
    columns["x"] = pa.array(values if values is not None else list(range(len(times))), pa.int64())
    columns["s"] = pa.array(texts if texts is not None else ["s"] * len(times), pa.string())
    return pa.table(columns)


def query(windows, aggregates=None, **parts):
    return wr.query(time="ts", windows=windows, aggregates=aggregates or {"n": wr.count()}, **parts)


# -- shrinking -----------------------------------------------------------------------------------

MANY = 100_000
NAMES = [f"key {i}" for i in range(MANY)]


def test_keys_and_slices_go_when_the_watermark_passes():
    q = query({"w": wr.tumbling(10)}, {"total": wr.sum("x"), "first": wr.first("s")}, key="k")
    operator = q.operator()
    operator.process(batch([1] * MANY, NAMES, texts=NAMES))
    full = operator.metrics()
    assert (full.live_slices, full.keys) == (1, MANY)
    assert operator.advance(1000).num_rows == MANY
    empty = operator.metrics()
    assert (empty.live_slices, empty.keys) == (0, 0)
    assert empty.bytes < full.bytes / 50
    assert len(operator.snapshot()) < 10_000


@pytest.mark.parametrize(
    "aggregate",
    [wr.distinct("s"), wr.median("x"), wr.top_k("s", 2), wr.collect("s"), wr.min("s"), wr.m4("s")],
    ids=str,
)
@pytest.mark.parametrize("key", [(), ("k",)], ids=["no key", "key"])
def test_values_and_strings_go_when_the_watermark_passes(aggregate, key):
    operator = query({"w": wr.tumbling(10)}, {"a": aggregate}, key=key).operator()
    operator.process(batch([1] * MANY, ["a"] * MANY, texts=NAMES))
    full, saved = operator.metrics().bytes, len(operator.snapshot())
    operator.advance(1000)
    assert operator.metrics().bytes < max(full / 10, 100_000)
    assert len(operator.snapshot()) < max(saved / 10, 20_000)


def test_a_stream_of_new_keys_and_strings_stays_small():
    q = query({"w": wr.tumbling(10)}, {"kinds": wr.distinct("s"), "low": wr.min("s")}, key="k")
    operator = q.operator()
    sizes = []
    for step in range(30):
        names = [f"{step}-{i}" for i in range(3000)]
        operator.process(batch([step * 10] * 3000, names, texts=names))
        assert operator.advance(step * 10 + 10).num_rows == 3000
        sizes.append((operator.metrics().bytes, len(operator.snapshot()), operator.metrics().keys))
    assert max(s[0] for s in sizes[10:]) <= 1.5 * max(s[0] for s in sizes[:10])
    assert max(s[1] for s in sizes[10:]) <= 1.5 * max(s[1] for s in sizes[:10])
    assert sizes[-1][2] <= 9000


def test_a_window_that_emits_nothing_keeps_nothing():
    operator = query({"w": wr.sliding(2, every=100)}).operator()
    for start in range(0, 10_000, 100):
        operator.process(batch([start + 50]))
        assert operator.advance(start + 60).num_rows == 0
    assert operator.metrics().live_slices == 0


# -- coalescing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "update"])
def test_short_windows_beside_a_long_one_stay_small_and_exact(mode):
    day, step = 86_400, 3_600
    aggregates = {
        "n": wr.count(),
        "total": wr.sum("x"),
        "low": wr.min("x"),
        "first": wr.first("x"),
        "last": wr.last("s"),
        "middle": wr.median("x"),
        "kinds": wr.distinct("s"),
        "sketch": wr.approx_distinct("x"),
    }
    q = query({"second": wr.tumbling(1), "day": wr.tumbling(day)}, aggregates, key="k")
    operator = q.operator(mode=mode, lateness=600)
    rng = np.random.default_rng(3)
    tables, parts, largest = [], [], 0
    for start in range(0, day + 4 * step, step):
        times = start + rng.integers(-500, step, 200)
        keys = [f"k{i}" for i in rng.integers(0, 3, 200)]
        texts = [f"s{i}" for i in rng.integers(0, 50, 200)]
        table = batch(np.maximum(times, 0), keys, rng.integers(-100, 100, 200), texts)
        tables.append(table)
        operator.process(table)
        parts.append(operator.advance(start + step))
        largest = max(largest, operator.metrics().live_slices)
    parts.append(operator.finish())
    assert operator.late().num_rows == 0
    assert largest < 4_000, "slices of finished seconds were not joined"
    result = pa.concat_tables(parts)
    assert_same(answers(q, pa.concat_tables(tables)), replay(result) if mode == "update" else result)


def test_late_events_fall_into_coalesced_slices():
    q = query(
        {"second": wr.tumbling(1), "long": wr.tumbling(50_000)}, {"n": wr.count(), "last": wr.last("x")}
    )
    operator = q.operator()
    first = batch(list(range(10_000)))
    operator.process(first)
    parts = [operator.advance(9_000)]
    assert operator.metrics().live_slices < 3_000
    late = batch([17, 4_000, 8_999, 9_000, 3], values=[1, 2, 3, 4, 5])
    operator.process(late)
    assert operator.late().num_rows == 0, "the long window still takes them"
    parts.append(operator.finish())
    whole = pa.concat_tables([first, late])
    rows = {(r["window"], r["start"]): r["n"] for r in pa.concat_tables(parts).to_pylist()}
    assert rows["long", 0] == whole.num_rows
    assert rows["second", 9_000] == 2
    assert rows["second", 17] == 1


# -- queries that change -------------------------------------------------------------------------

WINDOWS = [
    wr.tumbling(7),
    wr.tumbling(10, offset=3),
    wr.sliding(12, every=5),
    wr.sliding(3, every=8),
    wr.cumulate(12, step=4),
    wr.tumbling(40),
    wr.band(20, length=30),
]
AGGREGATES = [
    wr.count(),
    wr.sum("x"),
    wr.mean("x"),
    wr.max("s"),
    wr.median("x"),
    wr.collect("x"),
    wr.last("s"),
]


@st.composite
def events(draw, low, high):
    size = draw(st.integers(1, 8))
    times = draw(st.lists(st.integers(low, high), min_size=size, max_size=size))
    keys = draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size))
    values = draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size))
    texts = draw(st.lists(st.sampled_from("pqrst"), min_size=size, max_size=size))
    return batch(times, keys, values, texts)


def until_end(operator, data, seen, *, clock, steps):
    """Random batches (none of them late) and watermarks; the rows, and the clock then."""
    parts = []
    for _ in range(steps):
        table = data.draw(events(clock, clock + 30))
        seen.append(table)
        operator.process(table)
        if data.draw(st.booleans()):
            clock += data.draw(st.integers(0, 15))
            parts.append(operator.advance(clock))
    return parts, clock


def rows_of_window(table, name, start):
    mask = pc.equal(table["window"].cast(pa.string()), name)
    return table.filter(pc.and_(mask, pc.greater_equal(table["start"], start)))


@examples(150)
@given(st.data())
def test_a_window_added_later_is_exact_from_where_it_says(data):
    aggregates = {"n": wr.count(), "total": wr.sum("x"), "all": wr.collect("x"), "high": wr.max("s")}
    q = query({"w": data.draw(st.sampled_from(WINDOWS))}, aggregates, key="k")
    operator, seen = q.operator(), []
    _, clock = until_end(operator, data, seen, clock=0, steps=data.draw(st.integers(0, 4)))
    added = data.draw(st.sampled_from(WINDOWS))
    start = operator.add_window("added", added)
    if data.draw(st.booleans()):
        operator = operator.query.restore(operator.snapshot())
    parts, _ = until_end(operator, data, seen, clock=clock, steps=data.draw(st.integers(0, 4)))
    parts.append(operator.finish())
    if not seen:
        return
    whole = pa.concat_tables(seen)
    only = query({"added": added}, aggregates, key="k")
    floor = -(10**9) if start is None else start
    expected = rows_of_window(only.run(whole), "added", floor)
    found = pa.concat_tables([p for p in parts if p.schema.field("start").type != pa.null()])
    if start is not None:
        found_before = found.num_rows - rows_of_window(found, "w", -(10**9)).num_rows
        assert found_before == rows_of_window(found, "added", floor).num_rows, "a window that is not complete"
    assert_same(expected, rows_of_window(found, "added", floor))


def test_events_that_were_in_no_window_are_missed_by_a_window_added_later():
    operator = query({"s": wr.sliding(3, every=8)}).operator()
    operator.process(batch([1, 5]))
    start = operator.add_window("t", wr.tumbling(4))
    assert start is not None, "the event at 5 was not kept, so [4, 8) is not complete"
    assert start >= 8


def test_a_late_event_is_never_lost_after_a_window_was_added():
    operator = query({"w": wr.tumbling(10)}).operator()
    operator.process(batch([1, 35]))
    operator.advance(30)
    operator.add_window("long", wr.tumbling(100))
    operator.advance(31)
    operator.process(batch([5]))
    operator.finish()
    assert operator.late()["ts"].to_pylist() == [5], "no row of the answer holds it"
    assert operator.metrics().late == 1


@examples(100)
@given(st.data())
def test_removing_a_window_leaves_the_others_exact(data):
    kept, gone = data.draw(st.sampled_from(WINDOWS)), data.draw(st.sampled_from(WINDOWS))
    aggregates = {"n": wr.count(), "total": wr.sum("x"), "first": wr.first("s")}
    operator, seen = query({"kept": kept, "gone": gone}, aggregates, key="k").operator(), []
    parts, clock = until_end(operator, data, seen, clock=0, steps=3)
    operator.remove_window("gone")
    if data.draw(st.booleans()):
        operator = operator.query.restore(operator.snapshot())
    more, _ = until_end(operator, data, seen, clock=clock, steps=3)
    parts += [*more, operator.finish()]
    expected = query({"kept": kept}, aggregates, key="k").run(pa.concat_tables(seen))
    assert_same(expected, rows_of_window(pa.concat_tables(parts), "kept", -(10**9)))


@examples(100)
@given(st.data())
def test_an_aggregate_added_later_is_exact_from_where_it_says(data):
    first, added = data.draw(st.sampled_from(AGGREGATES)), data.draw(st.sampled_from(AGGREGATES))
    windows = {"w": data.draw(st.sampled_from(WINDOWS)), "v": wr.tumbling(9)}
    operator, seen = query(windows, {"a": first}, key="k").operator(), []
    before, clock = until_end(operator, data, seen, clock=0, steps=data.draw(st.integers(0, 4)))
    start = operator.add_aggregate("b", added)
    if data.draw(st.booleans()):
        operator.remove_aggregate("a")
    if data.draw(st.booleans()):
        operator = operator.query.restore(operator.snapshot())
    parts, _ = until_end(operator, data, seen, clock=clock, steps=data.draw(st.integers(1, 4)))
    parts.append(operator.finish())
    found = pa.concat_tables(parts)
    whole = query(windows, {"b": added}, key="k").run(pa.concat_tables(seen))
    identity = ["k", "window", "start", "end"]
    values = {tuple(r[c] for c in identity): r["b"] for r in whole.to_pylist()}
    for row in found.to_pylist():
        wanted = values[tuple(row[c] for c in identity)]
        if start is not None and row["start"] < start:
            assert row["b"] is None
        else:
            assert row["b"] == wanted
    assert found.num_rows + sum(p.num_rows for p in before) == whole.num_rows


def test_partials_find_their_aggregates_after_one_was_removed_and_the_state_restored():
    q = query({"w": wr.tumbling(10)}, {"a": wr.sum("x"), "b": wr.sum("y"), "c": wr.mean("x")})
    operator = q.operator()
    operator.process(pa.table({"ts": [1], "x": [1], "y": [100]}))
    operator.remove_aggregate("a")
    restored = operator.query.restore(operator.snapshot())
    assert restored.finish().equals(operator.finish())


def test_sorted_values_of_slices_that_went_do_not_spoil_a_snapshot():
    q = query({"w": wr.tumbling(10)}, {"middle": wr.median("x")})
    operator = q.operator()
    operator.process(batch([1, 1, 12, 12, 25, 25], values=[9, 8, 5, 4, 2, 1]))
    operator.advance(20)
    assert q.restore(operator.snapshot()).finish()["middle"].to_pylist() == [1.5]


# -- restarts ------------------------------------------------------------------------------------


@examples(80)
@given(st.data())
def test_a_restart_keeps_rows_that_wait_to_be_fetched(data):
    windows = {"w": data.draw(st.sampled_from(WINDOWS)), "v": wr.tumbling(6)}
    q = query(windows, {"n": wr.count(), "all": wr.collect("s"), "kinds": wr.distinct("s")}, key="k")
    mode = data.draw(st.sampled_from(["append", "update"]))
    straight, restarted = (q.operator(mode=mode, lateness=5, on_bad="divert") for _ in range(2))
    clock = 0
    for _ in range(data.draw(st.integers(1, 6))):
        table = data.draw(events(max(0, clock - 25), clock + 20))
        if data.draw(st.booleans()):
            table = pa.concat_tables([table, batch([None])])
        for operator in (straight, restarted):
            operator.process(table)
        if data.draw(st.booleans()):
            restarted = q.restore(restarted.snapshot())
        if data.draw(st.booleans()):
            clock += data.draw(st.integers(0, 15))
            assert straight.advance(clock).equals(restarted.advance(clock))
    assert straight.late().to_pylist() == restarted.late().to_pylist()
    assert straight.bad().to_pylist() == restarted.bad().to_pylist()
    one, two = straight.metrics(), restarted.metrics()
    assert (one.events, one.late, one.bad, one.live_slices) == (
        two.events,
        two.late,
        two.bad,
        two.live_slices,
    )
    assert straight.finish().equals(restarted.finish())


@examples(60)
@given(st.data())
def test_changelogs_replay_to_the_append_result_while_keys_grow(data):
    q = query(
        {"w": wr.tumbling(10), "s": wr.sliding(20, every=5)}, {"n": wr.count(), "high": wr.max("s")}, key="k"
    )
    operators = {mode: q.operator(mode=mode, lateness=30) for mode in ("append", "update")}
    parts = {"append": [], "update": []}
    clock, fresh = 0, 0
    for _ in range(data.draw(st.integers(2, 6))):
        size = data.draw(st.integers(1, 40))
        times = data.draw(st.lists(st.integers(max(0, clock - 40), clock + 10), min_size=size, max_size=size))
        keys = [f"k{fresh + i // 2}" if i % 2 else f"k{i}" for i in range(size)]
        fresh += data.draw(st.integers(0, 1500))
        table = batch(times, keys, texts=[f"{fresh}-{i}" for i in range(size)])
        clock += data.draw(st.integers(0, 12))
        restart = data.draw(st.booleans())
        for mode, operator in operators.items():
            operator.process(table)
            parts[mode].append(operator.advance(clock))
            if restart:
                operators[mode] = q.restore(operator.snapshot())
    for mode, operator in operators.items():
        parts[mode].append(operator.finish())
    assert_same(pa.concat_tables(parts["append"]), replay(pa.concat_tables(parts["update"])))


def test_engines_that_share_their_keys_forget_them_together():
    operator = query({"w": wr.tumbling(10)}, {"n": wr.count(), "all": wr.collect("x")}, key="k").operator()
    operator.process(batch([0], ["first"]))
    operator.add_window("s", wr.session(25))
    seen, parts = [batch([0], ["first"])], []
    for step in range(1, 12):
        names = [f"{step}-{i}" for i in range(300)] + ["first", "first"]
        seen.append(batch([step * 10] * 301 + [step * 10 + 4], names))
        operator.process(seen[-1])
        if step == 6:
            operator = operator.query.restore(operator.snapshot())
        parts.append(operator.advance(step * 10))
        assert {id(engine.keys) for engine in operator.engines} == {id(operator.engines[0].keys)}
    assert operator.metrics().keys < 6 * 300, "a session of a key that is gone is final after three steps"
    parts.append(operator.finish())
    given = pa.concat_tables(parts)
    for name, window, start in (("w", wr.tumbling(10), 0), ("s", wr.session(25), 26)):
        expected = query({name: window}, {"n": wr.count(), "all": wr.collect("x")}, key="k")
        expected = rows_of_window(expected.run(pa.concat_tables(seen)), name, start)
        assert_same(expected, rows_of_window(given, name, start))


@pytest.mark.parametrize("windows", [{"w": wr.tumbling(10)}, {"w": wr.sliding(30, every=10)}])
def test_a_late_event_has_the_windows_over_its_slice_looked_at_and_no_others(windows):
    query = wr.query(time="t", windows=windows, aggregates={"n": wr.count()})
    operator = query.operator(mode="update", lateness=10_000)
    operator.process(pa.table({"t": list(range(0, 5_000, 5))}))
    operator.advance(5_000)
    (engine,) = operator.engines
    for time in (2_003, 2_004):
        operator.process(pa.table({"t": [time]}))
        looked_at = engine._revised(engine.horizon(5_000), engine.emission_point(5_000))
        assert set(looked_at.end.tolist()) == {row["end"] for row in operator.advance(5_000).to_pylist()}
        assert not engine.fresh.n.any()
    assert operator.advance(5_001).num_rows == 0


def test_revised_windows_are_forgotten_once_they_are_final():
    ledger = Ledger()
    for end in (30, 10, 20, 10):
        ledger.raise_for(("w", end - 10, end), np.array([1]), 2)
    ledger.drop("v")
    ledger.forget(10)
    assert sorted(end for _, _, end, _ in ledger.save()) == [20, 30]
    restored = Ledger()
    restored.load(ledger.save())
    restored.forget(20)
    assert [(name, start, end, row.tolist()) for name, start, end, row in restored.save()] == [
        ("w", 20, 30, [0, 1])
    ]
    assert restored.next_for(("w", 20, 30), np.array([0, 1])).tolist() == [1, 2]
