"""Snapshots of earlier formats, as files that windrow wrote then: they are read, or refused in a sentence."""

from __future__ import annotations

import statistics
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr

GOLDEN = Path(__file__).parents[1] / "golden"
AGGREGATES = {"n": wr.count(), "x": wr.sum("v"), "m": wr.median("v"), "s": wr.first("s")}


def query(**windows: wr.Window) -> wr.Query:
    return wr.query(time="t", key="k", windows=windows, aggregates=AGGREGATES)


def test_windows_of_time_of_version_3_go_on():
    """Six events of keys x and y at 1, 2, 7, 12, 13 and 21, and two more at 12 and 13; update mode, watermark 14."""
    windows = query(a=wr.tumbling(5), b=wr.sliding(9, every=2))
    operator = windows.restore((GOLDEN / "version-3-windows-of-time.snapshot").read_bytes())
    rows = operator.finish().to_pylist()
    found = {(r["k"], r["start"]): (r["n"], r["x"], r["m"], r["s"]) for r in rows if r["window"] == "a"}
    assert found == {("x", 10): (2, 8, 4.0, "d"), ("y", 10): (2, 10, 5.0, "e"), ("x", 20): (1, 6, 6.0, "f")}


TIMES = [1, 2, 7, 12, 13, 30, 31, 36, 37, 12, 13, 29]
SESSIONS = {"a": wr.session(3), "b": wr.session(8), "g": wr.session("g"), "i": wr.snapshot()}


def sessions(windows: dict[str, wr.Window]) -> wr.Query:
    return wr.query(time="t", key="k", windows=windows, aggregates=AGGREGATES | {"c": wr.collect("v")})


def events(times: list[int]) -> pa.Table:
    """Events as the snapshots hold them."""
    numbers = range(len(times))
    keys, gaps = ["xy"[i % 3 == 2] for i in numbers], [4 + i % 3 for i in numbers]
    values, strings = [i + 1 for i in numbers], [chr(97 + i) for i in numbers]
    return pa.table({"t": times, "k": keys, "v": values, "s": strings, "g": gaps})


@pytest.mark.parametrize("mode", ["append", "update"])
def test_sessions_of_version_3_go_on(mode: str) -> None:
    """Nine events, a watermark that makes some sessions final, and three late events that change others."""
    query = sessions(SESSIONS)
    now = query.operator(mode=mode, lateness=25)
    now.process(events(TIMES[:9]))
    now.advance(34)
    now.process(events(TIMES[9:]))
    then = query.restore((GOLDEN / f"version-3-sessions-{mode}.snapshot").read_bytes())
    again = query.restore(then.snapshot())
    rows = sorted(map(str, now.finish().to_pylist()))
    assert rows
    assert sorted(map(str, then.finish().to_pylist())) == rows
    assert sorted(map(str, again.finish().to_pylist())) == rows


def test_a_session_of_version_3_goes_on() -> None:
    """Events of key x at 7, 12, 13 and 21, of key y at 13 and 13, with a watermark of 14."""
    operator = query(a=wr.session(5)).restore((GOLDEN / "version-3-session.snapshot").read_bytes())
    found = sorted(
        (r["k"], r["start"], r["end"], r["n"], r["x"], r["m"], r["s"]) for r in operator.finish().to_pylist()
    )
    assert found == [
        ("x", 7, 17, 3, 11, 4.0, "c"),
        ("x", 21, 26, 1, 6, 6.0, "f"),
        ("y", 13, 18, 2, 10, 5.0, "e"),
    ]


@pytest.mark.parametrize(
    ("name", "windows"),
    [("rows", {"r": wr.tumbling(rows=2)}), ("mixed", {"a": wr.session(3), "w": wr.tumbling(5)})],
)
def test_other_windows_of_version_3_are_refused(name: str, windows: dict[str, wr.Window]) -> None:
    with pytest.raises(wr.StateError, match="share slices as they do not any more"):
        sessions(windows).restore((GOLDEN / f"version-3-{name}.snapshot").read_bytes())


def test_span_events_of_version_3_go_on():
    """Events 0 to 39 and 30 to 59 of three keys, event i in [i, i + 1 + 7 i mod 23); update mode, watermark 50."""
    aggregates = {"n": wr.count(), "m": wr.median("x"), "s": wr.sum("x"), "c": wr.collect("name")}
    span = wr.span("since", "until")
    spans = wr.query(time=span, key="k", windows={"w": wr.sliding(20, every=5)}, aggregates=aggregates)
    operator = spans.restore((GOLDEN / "version-3-spans.snapshot").read_bytes())
    rows = operator.finish().to_pylist()
    events = [
        (i, i + 1 + i * 7 % 23, i % 3, i * i % 11, f"n{i % 5}") for i in sorted([*range(40), *range(30, 60)])
    ]
    for row in rows:
        here = [e for e in events if e[2] == row["k"] and e[0] < row["end"] and e[1] > row["start"]]
        values = [value for *_, value, _ in here]
        assert row["n"] == len(here)
        assert row["s"] == sum(values)
        assert row["m"] == statistics.median(values)
        assert row["c"] == [name for *_, name in here]
    # Windows that end at or before the watermark were emitted before the snapshot was taken, and no event comes after it.
    assert {(row["k"], row["start"]) for row in rows} == {
        (key, start)
        for start in range(35, 100, 5)
        for key in range(3)
        if any(e[2] == key and e[0] < start + 20 and e[1] > start for e in events)
    }


ORDERED = {
    "rows": wr.sliding(rows=3, every_rows=2),
    "km": wr.sliding(5, every=2, on="km"),
    "marks": wr.punctuated("mark"),
    "high": wr.threshold(pc.field("level") > 0),
    "delta": wr.delta("level", by=0.5, moves=2),
    "back": wr.slide_by_rows(6, every_rows=2),
    "latest": wr.latest(rows=3, every=5),
}


def events_in_order(since: int, count: int) -> pa.Table:
    """Two events at each tick; every fourth has no value, every sixth no level, every ninth no string."""
    numbers = range(since, since + count)
    columns = {
        "t": [i // 2 for i in numbers],
        "k": ["xyz"[i % 3] for i in numbers],
        "v": [None if i % 4 == 0 else i for i in numbers],
        "s": [None if i % 9 == 0 else f"s{i % 7}" for i in numbers],
        "km": [i // 2 + i % 3 for i in numbers],
        "mark": [i % 7 == 0 for i in numbers],
        "level": [None if i % 6 == 0 else float(i % 5 - 2) for i in numbers],
    }
    types = {"s": pa.string(), "level": pa.float64(), "mark": pa.bool_()}
    return pa.table(
        {n: pa.array(c, types.get(n, pa.string() if n == "k" else pa.int64())) for n, c in columns.items()}
    )


def test_windows_of_order_of_version_5_go_on_with_the_events_that_waited():
    """Seventy events up to 34 and three from 18 on; update mode, watermark 30, lateness 15."""
    windows = query(**ORDERED)
    anew = windows.operator(mode="update", lateness=15)
    anew.process(events_in_order(0, 70))
    anew.advance(30)
    anew.process(events_in_order(37, 3))
    operator = windows.restore((GOLDEN / "version-5-windows-of-order.snapshot").read_bytes())
    assert operator.metrics().pending == anew.metrics().pending > 30
    for each in (operator, anew):
        each.process(events_in_order(66, 8))
    assert sorted_rows(operator.advance(33)) == sorted_rows(anew.advance(33)) != []
    assert sorted_rows(operator.finish()) == sorted_rows(anew.finish())


def test_a_snapshot_that_does_not_describe_its_query_goes_on_with_that_query_and_then_changes() -> None:
    state = (GOLDEN / "version-5-windows-of-order.snapshot").read_bytes()
    fewer = query(rows=ORDERED["rows"])
    with pytest.raises(
        wr.StateError,
        match=r"format version 7 say which, and this one has 5: restore it with the query as it was",
    ):
        fewer.restore(state)
    changed = fewer.restore(query(**ORDERED).restore(state).snapshot())
    whole = query(**ORDERED).restore(state).finish()
    rows = whole.filter(pc.equal(whole["window"].cast(pa.string()), "rows"))
    assert sorted_rows(changed.finish()) == sorted_rows(rows) != []


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))
