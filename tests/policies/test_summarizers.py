"""Summarizers: windrow's aggregates and those of users, against the content that the naive model shows."""

from __future__ import annotations

import statistics

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.compared import SLIDING, SPECS, TUMBLING, naive_for, play, steps
from profiles import examples

import windrow as wr
from tests.referee.policies import NaiveWindow
from windrow import policies as wp
from windrow.errors import QueryError, UserFunctionError
from windrow.policies import spec as specs

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("d", pa.int64()),
        ("f", pa.float64()),
        ("x", pa.int64()),
        ("s", pa.string()),
    ]
)
AGGREGATES = {
    "rows": wr.count(),
    "n": wr.count("x"),
    "total": wr.sum("x"),
    "mean": wr.mean("x"),
    "least": wr.min("s"),
    "last": wr.last("x"),
}
HOLISTIC = {"total": wr.sum("x"), "median": wr.median("x"), "all": wr.collect("s")}


def with_values(made):
    """Rows with values: some null, strings that come in no order."""
    for what, thing in made:
        if what == "rows":
            for row in thing:
                row["x"] = None if row["id"] % 5 == 3 else (row["id"] * 37) % 11 - 5
                row["s"] = f"s{(row['id'] * 7) % 13:02}"
    return made


def naive_answer(rows, names):
    x = [row["x"] for row in rows if row["x"] is not None]
    s = [row["s"] for row in rows]
    answers = {
        "rows": len(rows),
        "n": len(x),
        "total": sum(x) if x else None,
        "mean": pytest.approx(sum(x) / len(x)) if x else None,
        "least": min(s) if s else None,
        "last": x[-1] if x else None,
        "median": statistics.median(x) if x else None,
        "all": s or None,
    }
    return {name: answers[name] for name in names}


def naive_answers(spec, made, names, partial):
    told = []

    def listen(happened):
        if happened.name in ("trigger", "before_flush"):
            key = {"k": happened.partition[0]} if happened.partition else {}
            told.append(key | naive_answer(happened.content, names))

    naive = naive_for(spec, [], partial=partial)
    naive._listener = listen
    play(naive, made)
    return told


def windrow_answers(spec, made, aggregates, partial, **asked):
    clock = wp.VirtualClock()
    kind = wp.TumblingWindow if isinstance(spec, specs.Tumbling) else wp.SlidingWindow
    by = "k" if spec.partitioned else None
    window = kind(spec, SCHEMA, partition_by=by, clock=clock, aggregates=aggregates, partial_windows=partial)
    if asked:
        window.record(*asked["record"])
    told = []
    window.on_tape(lambda tape: told.extend(tape.answers.to_pylist()))
    for what, thing in made:
        if what == "rows":
            told += window.insert(pa.Table.from_pylist(thing, SCHEMA)).answers.to_pylist()
        elif what == "pass":
            clock.advance_to(clock.now() + thing)
        elif isinstance(spec.eviction, specs.Punct):
            told += window.punctuate().answers.to_pylist()
    return told


@examples(150)
@given(SPECS, steps(), st.booleans())
def test_aggregates_are_those_of_the_content(spec, made, partial):
    made = with_values(made)
    assert windrow_answers(spec, made, AGGREGATES, partial) == naive_answers(spec, made, AGGREGATES, partial)


@examples(60)
@given(SPECS, steps(), st.booleans())
def test_aggregates_that_need_all_values_see_the_content(spec, made, partial):
    made = with_values(made)
    assert windrow_answers(spec, made, HOLISTIC, partial) == naive_answers(spec, made, HOLISTIC, partial)


@examples(60)
@given(SLIDING, steps())
def test_whoever_asks_for_single_rows_gets_the_same_answers_without_slices(spec, made):
    made = with_values(made)
    asked = windrow_answers(spec, made, AGGREGATES, True, record=["after_evict"])
    assert asked == windrow_answers(spec, made, AGGREGATES, True)


@pytest.mark.parametrize(
    ("text", "slices"),
    [
        ("sliding, count(100), count(10)", 10),
        ("sliding, count(100), count(30)", 10),
        ("sliding, time(1 hour), time(1 minute)", 61),
    ],
)
def test_a_sliding_window_keeps_slices_and_not_rows(text, slices):
    """Section 4.1.8: an hour by a minute keeps sixty summaries, and the one that is being filled."""
    rows = pa.table({"x": [1.0] * 10})
    clock = wp.VirtualClock()
    window = wp.SlidingWindow(
        text, rows.schema, clock=clock, aggregates={"mean": wr.mean("x"), "n": wr.count()}
    )
    most = 0
    for _ in range(100 * 60):
        window.insert(rows)
        clock.advance("1 second") if "time" in text else None
        most = max(most, len(window))
    assert most <= slices
    assert window.summary()["n"] in (100, 10 * 3600)


@examples(60)
@given(TUMBLING, steps())
def test_a_summarizer_of_the_users_own_sees_the_rows_of_its_subwindow_once(spec, made):
    opened, closed = [], []

    class Ids(wp.Summarizer):
        def open(self, partition):
            self.partition, self.ids = partition, []
            opened.append(partition)

        def insert(self, rows):
            self.ids += rows["id"].to_pylist()

        def close(self):
            closed.append((self.partition, self.ids))

    clock, told = wp.VirtualClock(), []
    schema = pa.schema([f for f in SCHEMA if f.name not in ("x", "s")])
    window = wp.TumblingWindow(
        spec, schema, partition_by="k" if spec.partitioned else None, clock=clock, summarizer=Ids
    )
    window.on_before_flush(lambda event: told.append((event.partition, list(event.summary.ids))))
    expected = []
    naive = naive_for(spec, expected)
    for what, thing in made:
        if what == "rows":
            window.insert(pa.Table.from_pylist(thing, schema))
            for row in thing:
                naive.insert(row)
        elif what == "pass":
            clock.advance_to(clock.now() + thing)
            naive.advance(naive.now + thing)
        else:
            naive.punctuate()
            if isinstance(spec.eviction, specs.Punct):
                window.punctuate()
    flushed = [(key, ids) for name, key, ids, _ in expected if name == "before_flush"]
    evicted = [(key, ids) for name, key, ids, _ in expected if name == "partition_eviction" and ids]
    assert told == flushed
    assert sorted(closed) == sorted(flushed + evicted)
    for key, sub in naive.subwindows.items():
        if sub.rows:
            assert window.summary(*key).ids == [row["id"] for row in sub.rows]
    assert len(opened) == len(closed) + sum(bool(sub.rows) for sub in naive.subwindows.values())


def test_a_summary_is_there_while_the_window_fills():
    rows = pa.table({"k": ["a", "b", "a"], "x": [1, 2, 5]})
    window = wp.TumblingWindow(
        "tumbling, count(10), partitioned", rows.schema, partition_by="k", aggregates={"sum": wr.sum("x")}
    )
    window.insert(rows)
    assert window.summary("a") == {"sum": 6}
    assert window.summary("c") is None
    with pytest.raises(QueryError, match="keeps summaries and no rows"):
        window.content("a")


def test_aggregates_of_the_users_own_are_summarizers_too():
    spread = wr.aggregate(
        lift=lambda x: (x, x),
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
        lower=lambda a: a[1] - a[0],
        identity=(2**62, -(2**62)),
    )
    rows = pa.table({"x": [3, 9, 4, 1]})
    window = wp.TumblingWindow("tumbling, count(2)", rows.schema, aggregates={"spread": spread})
    assert window.insert(rows).answers["spread"].to_pylist() == [6, 3]


def test_a_sliding_window_has_no_summarizer():
    with pytest.raises(QueryError, match="needs a tumbling window"):
        wp.SlidingWindow("sliding, count(2), count(1)", SCHEMA, summarizer=wp.Summarizer)


def test_an_error_of_a_users_function_names_it():
    def lift(x):
        return 1 // x

    own = wr.aggregate(lift=lift, combine=lambda a, b: a + b, lower=lambda a: a, identity=0)
    rows = pa.table({"x": [3, 0]})
    window = wp.TumblingWindow("tumbling, count(2)", rows.schema, aggregates={"own": own})
    with pytest.raises(UserFunctionError, match="lift"):
        window.insert(rows)


@pytest.mark.parametrize(
    "text", ["sliding, count(3), count(1)", "sliding, count(4), count(2)", "tumbling, count(3)"]
)
@pytest.mark.parametrize("saved", range(5))
@pytest.mark.parametrize("listed", [False, True])
def test_nulls_may_come_when_a_window_has_long_begun_and_across_snapshots(text, saved, listed):
    """Values are counted one by one only from the first null on."""
    spec, schema = wp.parse(f"{text}, partitioned"), pa.schema([("k", pa.string()), ("x", pa.int64())])
    aggregates = {"n": wr.count("x"), "sum": wr.sum("x"), "rows": wr.count()}
    aggregates |= {"all": wr.collect("x")} if listed else {}

    def made():
        kind = wp.TumblingWindow if isinstance(spec, specs.Tumbling) else wp.SlidingWindow
        return kind(spec, schema, partition_by="k", aggregates=aggregates)

    def answer(happened):
        if happened.name in ("before_flush", "trigger"):
            present = [row["x"] for row in happened.content if row["x"] is not None]
            told = {
                "n": len(present),
                "sum": sum(present) if present else None,
                "rows": len(happened.content),
            }
            expected.append(told | ({"all": present or None} if listed else {}))

    window, given, expected = made(), [], []
    naive = NaiveWindow(spec, answer, partition_by=["k"])
    values = [[1, 2, 3, 4], [5, 6, 7], [8, None, 9], [None, None, None, None, None, 10], [11, 12, 13]]
    for number, xs in enumerate(values):
        if number == saved:
            state, window = window.snapshot(), made()
            window.restore(state)
        rows = [{"k": "ab"[i % 2], "x": x} for i, x in enumerate(xs)]
        given += window.insert(pa.Table.from_pylist(rows, schema)).answers.drop_columns("k").to_pylist()
        for row in rows:
            naive.insert(row)
    assert given == expected


@pytest.mark.parametrize(
    "text", ["tumbling, count(7)", "sliding, count(7), count(3)", "sliding, count(8), count(4)"]
)
@pytest.mark.parametrize("aggregate", [wr.min("s"), wr.last("s"), wr.collect("s")])
def test_strings_that_no_window_holds_are_forgotten(text, aggregate):
    schema, expected, given = pa.schema([("s", pa.string())]), [], []
    kind = wp.TumblingWindow if text.startswith("tumbling") else wp.SlidingWindow
    window = kind(text, schema, aggregates={"answer": aggregate})
    functions = {"min(s)": min, "last(s)": lambda words: words[-1], "collect(s)": list}

    def answer(happened):
        if happened.name in ("before_flush", "trigger"):
            expected.append(functions[str(aggregate)]([row["s"] for row in happened.content]))

    naive = NaiveWindow(wp.parse(text), answer)
    for number in range(12):
        words = [f"{i * 7919 % 10007:05d} {number}" for i in range(1000)]
        given += window.insert(pa.table({"s": words}, schema)).answers["answer"].to_pylist()
        for word in words:
            naive.insert({"s": word})
    assert given == expected
    assert window._machine.folding._inputs.strings("s") < 6000
