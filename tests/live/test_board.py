"""What is shown of an operator: the rows of now, in few points; and that watching changes nothing for the stream."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bokeh.document import Document
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.durations import parse_duration
from windrow.live.board import LENGTHS, MOST_ZOOMS, ZOOM, Dashboard, finest, zoom
from windrow.live.document import fill
from windrow.live.replay import batches, replay
from windrow.live.store import MOST_ROWS, Store, m4
from windrow.policies import VirtualClock

SECOND = 1_000_000
QUERY = wr.query(
    time="ts",
    key="k",
    windows={"10 minutes": wr.tumbling("10 minutes"), "1 hour": wr.sliding("1 hour", every="10 minutes")},
    aggregates={"n": wr.count(), "total": wr.sum("x"), "x": wr.m4("x")},
)


def events(count: int = 2_000, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 36_000, count)) * SECOND
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array(random.choice(["a", "b"], count)),
            "x": random.normal(size=count).round(3),
        }
    )


def listed(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def board(**options: Any) -> Dashboard:
    return Dashboard(QUERY.operator(**options), title="test")


@given(
    st.lists(st.tuples(st.integers(0, 999), st.integers(-5, 5)), min_size=1, max_size=200),
    st.integers(1, 50),
)
def test_four_points_in_a_column_are_its_first_last_lowest_and_highest(
    points: list[tuple[int, int]], columns: int
) -> None:
    points.sort(key=lambda point: point[0])
    x, y = (np.array(part, float) for part in zip(*points, strict=True))
    shown = m4(x, y, 0.0, 1000.0, columns)
    assert (np.diff(shown) > 0).all()
    column = np.floor(x * columns / 1000).astype(int)
    for c in np.unique(column):
        here = np.flatnonzero(column == c)
        chosen = shown[column[shown] == c]
        assert 1 <= len(chosen) <= 4
        assert {chosen[0], chosen[-1]} == {here[0], here[-1]}
        assert y[chosen].min() == y[here].min()
        assert y[chosen].max() == y[here].max()


def lines_by_hand(
    rows: list[dict[str, Any]], window: str, aggregate: str
) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, dict[Any, tuple[float, float]]] = {}
    for row in rows:
        if row["window"] == window:
            of_key = found.setdefault(row["k"], {})
            if row["op"] == "delete":
                del of_key[row["start"]]
            else:
                of_key[row["start"]] = ((row["end"] - EPOCH).total_seconds() * 1000, float(row[aggregate]))
    return {key: sorted(points.values()) for key, points in found.items()}


EPOCH = pa.scalar(0, pa.timestamp("us")).as_py()


@pytest.mark.parametrize("windows", [QUERY.windows, {"s": wr.session("7 minutes")}])
def test_lines_are_the_rows_of_now_however_often_they_were_revised(windows: Any) -> None:
    query = wr.query(time="ts", key="k", windows=windows, aggregates={"n": wr.count(), "total": wr.sum("x")})
    op, store, table = query.operator(mode="update", lateness="1 day"), Store(), events(400)
    shuffled = table.take(np.random.default_rng(3).permutation(len(table)))
    rows = []
    for low in range(0, len(table), 50):
        op.process(shuffled.slice(low, 50))
        changes = op.advance(max(t.as_py() for t in shuffled["ts"][: low + 50]))
        store.put(changes)
        if low % 100:
            store.drain()
        rows += changes.to_pylist()
    store.drain()
    for window in windows:
        for aggregate in ("n", "total"):
            lines = store.lines(window, aggregate, -1e12, 1e12, 10**9)
            drawn = {key: [*zip(x.tolist(), y.tolist(), strict=True)] for key, (x, y) in lines.items()}
            assert drawn == lines_by_hand(rows, window, aggregate)


def test_no_line_has_more_than_four_points_for_a_column_of_pixels() -> None:
    live, table = board(), events(20_000)
    live.process(table)
    live.finish()
    live.store.drain()
    for columns in (10, 30):
        lines = live.store.lines("1 hour", "total", live.store.low, live.store.high, columns)
        # A point on the right edge lies in a column of its own.
        assert all(len(x) <= 4 * (columns + 1) for x, _ in lines.values())
    zoomed = live.store.lines("1 hour", "total", 3_600_000 * 2, 3_600_000 * 3, 100)
    assert all(
        x.min() >= 3_600_000 * 2 - 600_000 and x.max() <= 3_600_000 * 3 + 600_000 for x, _ in zoomed.values()
    )


def test_rows_are_bounded_and_the_newest_stay() -> None:
    query = wr.query(time="ts", windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()})
    store, size = Store(), MOST_ROWS // 2
    for low in range(0, 3 * size, size):
        store.put(query.run(pa.table({"ts": np.arange(low, low + size)})))
        store.drain()
    assert store.size("w") == MOST_ROWS
    x, _ = store.lines("w", "n", -1e12, 1e12, 10**9)[""]
    assert x.max() == 3 * size


def test_rows_that_end_together_are_bounded_and_stay() -> None:
    store, size = Store(), MOST_ROWS + 1_000
    same = pa.array(np.zeros(size, np.int64))
    names = pa.DictionaryArray.from_arrays(same.cast(pa.int32()), ["w"])
    store.put(
        pa.table({"k": np.arange(size), "window": names, "start": same, "end": pc.add(same, 10), "n": same})
    )
    store.drain()
    assert store.size("w") == MOST_ROWS


def test_counters_are_read_however_windows_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.live.board.EVERY", 0.0)
    clock = VirtualClock()
    windows, aggregates = {"w": wr.tumbling("5 seconds")}, {"n": wr.count()}
    ordered = wr.query(time="ts", windows=windows, aggregates=aggregates, ordered=True)
    plain = wr.query(time="ts", windows=windows, aggregates=aggregates)
    table = pa.table({"ts": pa.array([1, 2, 7], pa.timestamp("s"))})
    for operator in (ordered.operator(), plain.operator(watermark=wr.watermark())):
        live = Dashboard(operator, title="test")
        assert live.process(table)["n"].to_pylist() == [2]
        assert live.state.events == 3
        assert live.state.watermark is not None
    following = plain.operator(watermark=wr.watermark(idle="10 seconds"), clock=clock.now)
    live = Dashboard(following, title="test")
    live.process(table)
    clock.advance("30 seconds")
    assert live.tick()["n"].to_pylist() == [1]
    assert live.state.watermark > table["ts"][-1].as_py()


def test_a_window_of_the_query_may_have_a_name_like_those_of_readers() -> None:
    names = {"w": wr.tumbling(5), "zoom out": wr.tumbling(10), "zoom 20": wr.session(20)}
    query = wr.query(time="ts", windows=names, aggregates={"n": wr.count()})
    live, plain, table = Dashboard(query.operator(), title="test"), query.operator(), pa.table({"ts": [1, 2]})
    reader = object()
    live.want(reader, {"zoom 20": 20, "zoom 50": 50})
    live.process(table)
    plain.process(table)
    assert live.state.zooms == {"zoom 50"}
    assert set(live.operator.query.windows) == {*names, "zoom 50"}
    live.attach(query.restore(live.operator.snapshot()))
    live.leave(reader)
    assert listed(live.finish()) == listed(plain.finish())
    assert live.operator.query == query


def test_the_note_says_from_which_day_on_windows_are_complete() -> None:
    query = wr.query(time="day", windows={"w": wr.tumbling("1 day")}, aggregates={"n": wr.count()})
    live = Dashboard(query.operator(), title="test")
    live.process(pa.table({"day": pa.array([1, 2, 9], pa.date32())}))
    live.advance(date(1970, 1, 9))
    live.want(object(), {"zoom 2 days": "2 days"})
    live.process(pa.table({"day": pa.array([10], pa.date32())}))
    live.store.drain()
    document = Document()
    fill(document, live)
    assert "complete: 2 days from 1970-01-" in document.get_model_by_name("note").text


def test_of_many_keys_only_those_that_are_drawn_are_worked_out() -> None:
    query = wr.query(time="ts", key="k", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    store = Store()
    store.put(query.run(pa.table({"ts": [1] * 50, "k": [f"k{i:02}" for i in range(50)]})))
    store.drain()
    every = store.lines("w", "n", -10, 10, 100)
    few = store.lines("w", "n", -10, 10, 100, most=8)
    assert list(few) == list(every)[:8]


def test_what_came_of_a_window_that_is_gone_is_forgotten() -> None:
    live, reader = board(mode="update", lateness="1 day"), object()
    name, length = zoom(3_600_000, is_time=True)
    live.want(reader, {name: length})
    live.process(events())
    live.advance(events()["ts"][-1])
    live.store.drain()
    before = live.store.size(name), live.store.version(name)
    assert before[0] > 0
    live.leave(reader)
    live.process(events(1))
    live.store.drain()
    assert (live.store.size(name), live.store.version(name)) == (0, 0)
    live.want(reader, {name: length})
    live.advance(events()["ts"][-1])
    live.advance(events()["ts"][-1])
    live.store.drain()
    assert live.store.size(name) == before[0]
    assert live.store.version(name) > before[1]


def test_small_numbers_are_not_shown_as_zeros() -> None:
    query = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"x": wr.sum("x")})
    live = Dashboard(query.operator(), title="test")
    live.process(pa.table({"ts": [1, 7, 12], "x": [0.0012, None, 12_345.0]}))
    live.finish()
    live.store.drain()
    document = Document()
    fill(document, live)
    shown = document.get_model_by_name("tables").text
    assert [value in shown for value in (">0.0012<", ">-<", ">12,345<")] == [True] * 3


def test_the_stream_gets_the_rows_that_it_would_get_unwatched() -> None:
    live, plain, table = (
        board(lateness="1 day", mode="update"),
        QUERY.operator(lateness="1 day", mode="update"),
        events(),
    )
    readers = [object(), object()]
    for number, batch in enumerate(batches(table, "ts", 20)):
        live.want(readers[number % 2], dict([zoom((number % 7 + 1) * 1e5, is_time=True)]))
        live.process(batch)
        plain.process(batch)
        assert listed(live.advance(batch["ts"][-1])) == listed(plain.advance(batch["ts"][-1]))
        assert any(name.startswith(ZOOM) for name in live.operator.query.windows)
    for reader in readers:
        live.leave(reader)
    assert listed(live.finish()) == listed(plain.finish())
    assert live.operator.query == QUERY


def test_windows_that_are_added_are_answered_from_slices_that_are_there() -> None:
    fine = wr.query(
        time="ts",
        key="k",
        windows=dict([*QUERY.windows.items(), finest("5 minutes")]),
        aggregates=QUERY.aggregates,
    )
    live, table = Dashboard(fine.operator(mode="update", lateness="10 days"), title="test"), events()
    live.process(table)
    first = live.advance(table["ts"][-1])
    assert set(first["window"].to_pylist()) == set(QUERY.windows)
    name, length = zoom(30 * 60_000, is_time=True)
    assert (name, length) == ("zoom 30 minutes", "30 minutes")
    live.want(object(), {name: length})
    assert len(live.advance(table["ts"][-1])) == 0
    live.store.drain()
    drawn = live.store.lines(name, "n", -1e12, 1e12, 10**9)
    alone = wr.query(
        time="ts", key="k", windows={"w": wr.tumbling("30 minutes")}, aggregates={"n": wr.count()}
    )
    rows = sorted(alone.run(table).to_pylist(), key=lambda row: row["start"])
    for key in ("a", "b"):
        counts = [row["n"] for row in rows if row["k"] == key and row["end"] <= table["ts"][-1].as_py()]
        assert drawn[key][1].tolist() == counts


def test_readers_share_windows_and_cannot_ask_for_too_many() -> None:
    live = board()
    one, two = object(), object()
    live.want(one, {f"{ZOOM}{i} minutes": f"{i} minutes" for i in range(1, 11)})
    live.want(two, {f"{ZOOM}{i} minutes": f"{i} minutes" for i in range(8, 20)})
    live.process(events(10))
    assert len(live.operator.query.windows) == 2 + MOST_ZOOMS
    live.leave(one)
    live.process(events(10))
    assert {f"{ZOOM}{i} minutes" for i in (8, 9, 10)} <= set(live.operator.query.windows)
    live.leave(two)
    live.process(events(10))
    assert live.operator.query == QUERY


def test_a_reader_who_asks_for_what_cannot_be_does_not_stop_the_stream() -> None:
    query = wr.query(time="ts", windows={"s": wr.session("5 seconds")}, aggregates={"n": wr.count()})
    live = Dashboard(query.operator(), title="test")
    live.process(pa.table({"ts": pa.array([1, 2], pa.timestamp("s"))}))
    live.want(object(), {"zoom 500 milliseconds": "500 milliseconds", "zoom 1 minute": "1 minute"})
    live.process(pa.table({"ts": pa.array([60], pa.timestamp("s"))}))
    assert set(live.operator.query.windows) == {"s", "zoom 1 minute"}
    assert live.finish()["n"].to_pylist() == [2, 1]


@pytest.mark.parametrize("length", [0.4, 1, 999, 60_000, 61_000, 3e6, 86_400_000 * 5, 1e15])
def test_windows_that_fit_a_zoom_are_as_long_as_asked_for_or_a_little_longer(length: float) -> None:
    name, text = zoom(length, is_time=True)
    assert name == ZOOM + text
    nanoseconds = parse_duration(text).nanoseconds
    assert nanoseconds in LENGTHS
    assert nanoseconds >= length * 1e6 * (1 - 1e-9) or nanoseconds == LENGTHS[-1]


def test_numbers_are_zoomed_by_ones_twos_and_fives() -> None:
    assert [zoom(length, is_time=False)[1] for length in (0.3, 1, 1.1, 2.5, 70, 100)] == [
        1,
        1,
        2,
        5,
        100,
        100,
    ]


def test_a_stream_that_is_started_again_goes_on_where_it_was() -> None:
    live, table = board(mode="update", lateness="1 day"), events()
    halves = table.slice(0, 1_000), table.slice(1_000)
    live.want(object(), dict([zoom(300_000, is_time=True)]))
    live.process(halves[0])
    live.advance(halves[0]["ts"][-1])
    saved = live.operator.snapshot()
    query = wr.query(
        time="ts",
        key="k",
        windows={**QUERY.windows, "zoom 5 minutes": wr.tumbling("5 minutes")},
        aggregates=QUERY.aggregates,
    )
    live.attach(query.restore(saved))
    live.process(halves[1])
    live.finish()
    live.store.drain()
    straight = board()
    straight.process(table)
    straight.finish()
    straight.store.drain()
    for key, (x, y) in straight.store.lines("1 hour", "total", -1e12, 1e12, 10**9).items():
        again = live.store.lines("1 hour", "total", -1e12, 1e12, 10**9)[key]
        assert x.tolist() == again[0].tolist()
        np.testing.assert_allclose(y, again[1])
    assert live.state.runs == 2


def test_a_replay_gives_all_events_in_the_order_of_their_time() -> None:
    live, table = board(), events(500)
    waits: list[float] = []
    replay(live, table.take(np.random.default_rng(0).permutation(500)), seconds=0.5, wait=waits.append)
    assert live.operator.metrics().events == 500
    assert live.operator.metrics().late == 0
    assert len(waits) == 10
