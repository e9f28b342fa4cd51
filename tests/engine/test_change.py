"""A query that changes while it lives, embedded: what stays goes on, what is new says from when it is complete, what goes leaves.

That changed operators say what the reference says is in `conformance/test_interleavings`.
"""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from specimens import AGGREGATES, SEQUENCES, WINDOWS, fixed_stream

import windrow as wr
from windrow.engine.snapshot import description, format
from windrow.engine.snapshot.parts import Reader

COUNT = {"n": wr.count()}
TIMES = (1, 2, 7, 12, 13, 21)


def asked(windows, aggregates=None, **more):
    return wr.query(time="t", windows=windows, aggregates=aggregates or COUNT, **more)


def events(*times, **columns):
    return pa.table({"t": list(times), "x": [float(t) for t in times], **columns})


def running(query, *times, watermark=None, **options):
    operator = query.operator(**options)
    operator.process(events(*times))
    if watermark is not None:
        operator.advance(watermark)
    return operator


def rows(table):
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


# -- what stays ----------------------------------------------------------------------------------------


def of_stream(windows, aggregates, kinds):
    """A query, and a stream of two batches for it."""
    table = fixed_stream(kinds, size=60, span=40, seed=7)
    query = wr.query(time="time", key="key0", windows=windows, aggregates=aggregates)
    return query, (table.slice(0, 30), table.slice(30))


KEPT = wr.sliding(9, every=3)


def goes_on(full, kept, batches):
    """The windows of `kept` are the same, whether what else `full` has is removed by a restart or was never there."""
    before, never = full.operator(), kept.operator()
    for operator in (before, never):
        operator.process(batches[0])
    after = kept.restore(before.snapshot())
    assert after.query == kept
    for operator in (after, never):
        operator.process(batches[1])
    assert rows(after.finish()) == rows(never.finish())


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_window_that_depends_on_the_events_is_removed_by_a_restart(name):
    full, batches = of_stream({"kept": KEPT, "gone": SEQUENCES[name]}, COUNT, {})
    kept, _ = of_stream({"kept": KEPT}, COUNT, {})
    goes_on(full, kept, batches)


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_is_removed_by_a_restart(name):
    aggregate, kinds = AGGREGATES[name]
    full, batches = of_stream({"w": KEPT, "s": wr.session(3)}, COUNT | {"gone": aggregate}, kinds)
    kept, _ = of_stream({"w": KEPT, "s": wr.session(3)}, COUNT, kinds)
    goes_on(full, kept, batches)


@pytest.mark.parametrize("name", [*WINDOWS, *SEQUENCES, *AGGREGATES])
def test_what_is_built_in_is_rebuilt_as_it_was(name):
    windows, aggregates, kinds = {}, dict(COUNT), {}
    if name in WINDOWS:
        windows["gone"] = WINDOWS[name].window
    elif name in SEQUENCES:
        windows["gone"] = SEQUENCES[name]
    else:
        windows["gone"] = wr.tumbling(5)
        aggregates["gone"], kinds = AGGREGATES[name]
    full, batches = of_stream(windows, aggregates, kinds)
    operator = full.operator()
    if name not in WINDOWS:
        operator.process(batches[0])
    other = wr.query(time="time", key="key0", windows={"new": wr.tumbling(3)}, aggregates={"new": wr.count()})
    rebuilt = description.rebuilt(description.described(operator), other)
    assert set(rebuilt.windows) == set(windows)
    assert set(rebuilt.aggregates) == set(aggregates)
    written, again = description.described(operator), rebuilt
    for what in ("windows", "aggregates"):
        for known, spec in getattr(again, what).items():
            if "step" in vars(spec) or "evict" in vars(spec) or "lift" in vars(spec):
                assert spec.columns == getattr(full, what)[known].columns
            elif not any(vars(p).get("column") is None for p in getattr(spec, "predicates", {}).values()):
                assert spec == getattr(full, what)[known]
                assert str(spec) == written[what][known]["text"]


def test_an_operator_changes_as_it_runs():
    operator = running(asked({"w": wr.tumbling(5)}), *TIMES, watermark=12)
    operator.change(asked({"w": wr.tumbling(5), "s": wr.session(3)}, {"high": wr.max("x"), "n": wr.count()}))
    assert operator.complete_from() == {"aggregate high": 25, "window s": 25}
    operator.process(events(26, 27))
    found = operator.finish()
    assert found.column_names == ["window", "start", "end", "high", "n"]
    assert rows(found) == [
        ("s", 26, 30, 27.0, 2),
        ("w", 10, 15, None, 2),
        ("w", 20, 25, None, 1),
        ("w", 25, 30, 27.0, 2),
    ]


def test_a_window_and_the_only_one_before_it_change_places():
    operator = running(asked({"w": wr.tumbling(5)}), *TIMES)
    operator = asked({"long": wr.tumbling(10)}).restore(operator.snapshot())
    assert rows(operator.finish()) == [("long", 0, 10, 3), ("long", 10, 20, 2), ("long", 20, 30, 1)]


def test_an_operator_that_has_seen_nothing_changes():
    operator = asked({"w": wr.tumbling(5)}).operator()
    operator.change(asked({"long": wr.tumbling(10)}), mode="update")
    operator.process(events(*TIMES))
    assert rows(operator.finish())[0] == ("long", 0, 10, 3, "insert", 0)


def test_rows_that_nobody_has_fetched_keep_their_values_when_an_aggregate_comes_or_goes():
    query = asked({"w": wr.tumbling(5)}, COUNT, ordered=True)
    batches = [events(1, 2, 7), events(8, 3)]
    operator = query.operator()
    with pytest.raises(wr.DataError, match="comes after a later event"):
        operator.process(iter(batches))
    operator.add_aggregate("high", wr.max("x"))
    operator.remove_aggregate("n")
    assert operator.finish().to_pylist() == [
        {"window": "w", "start": 0, "end": 5, "high": None},
        {"window": "w", "start": 5, "end": 10, "high": None},
    ]


def test_a_new_aggregate_may_read_a_column_that_is_new():
    old, new = asked({"w": wr.tumbling(5)}), asked({"w": wr.tumbling(5)}, COUNT | {"y": wr.sum("y")})
    state = running(old, *TIMES).snapshot()
    with pytest.raises(wr.QueryError, match="'y'"):
        new.restore(state)
    later = events(26, 27, y=[1, 2])
    operator = new.restore(state, schema=later.schema)
    operator.process(later)
    assert ("w", 25, 30, 2, 3) in rows(operator.finish())


def test_late_rows_that_nobody_has_fetched_have_columns_that_are_new():
    old, new = asked({"w": wr.tumbling(5)}), asked({"w": wr.tumbling(5)}, COUNT | {"y": wr.sum("y")})
    operator = running(old, *TIMES, watermark=12)
    operator.process(events(3))
    operator = new.restore(operator.snapshot(), schema=events(3, y=[1]).schema)
    assert new.restore(operator.snapshot()).late().to_pylist() == [{"t": 3, "x": 3.0, "y": None}]


def test_a_column_that_was_not_read_for_a_while_may_come_back_with_another_type():
    without, late = asked({"w": wr.tumbling(5)}), ["a", "b"]
    operator = running(asked({"w": wr.tumbling(5)}, COUNT | {"x": wr.sum("x")}), *TIMES, watermark=12)
    operator.process(events(3))
    operator = without.restore(operator.snapshot())
    operator.process(pa.table({"t": [26, 27], "x": late}))
    again = pa.table({"t": [31, 32], "x": late})
    operator.change(asked({"w": wr.tumbling(5)}, {"x": wr.concat("x")}), schema=again.schema)
    operator.process(again)
    assert rows(operator.finish())[-1] == ("w", 30, 35, "ab")
    assert operator.late().to_pylist() == [{"t": 3, "x": None}]


# -- what may not be another one -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (asked({"w": wr.tumbling(7)}), r"window 'w' was tumbling 5, is tumbling 7"),
        (
            asked({"w": wr.tumbling(5)}, {"p": wr.quantile("x", 0.95)}),
            r"aggregate 'p' was quantile\(x, 0\.9\), is quantile\(x, 0\.95\)",
        ),
        (asked({"w": wr.tumbling(5)}, key="x"), "the key was nothing, is 'x'"),
        (asked({"w": wr.tumbling(5)}, ordered=True), "ordered was False, is True"),
        (
            wr.query(time="x", windows={"w": wr.tumbling(5)}, aggregates=COUNT),
            "the time was t, is x",
        ),
        (
            asked({"w": wr.tumbling(7)}, {"p": wr.quantile("x", 0.8)}),
            r"window 'w' was tumbling 5, is tumbling 7; aggregate 'p' was",
        ),
    ],
    ids=["window", "aggregate", "key", "order", "time", "two of them"],
)
def test_what_is_another_one_under_the_same_name_is_refused_with_the_difference(query, said):
    old = asked({"w": wr.tumbling(5)}, {"n": wr.count(), "p": wr.quantile("x", 0.9)})
    operator = running(old, *TIMES)
    with pytest.raises(wr.StateError, match=f"cannot go on with this query: .*{said}"):
        query.restore(operator.snapshot())
    with pytest.raises(wr.StateError, match=said):
        operator.change(query)
    assert operator.query == old


def test_a_function_with_other_code_is_another_one():
    def own(by):
        return wr.aggregate(
            columns="x", lift=lambda x: x * by, combine=lambda a, b: a + b, identity=0.0, name="own"
        )

    state = running(asked({"w": wr.tumbling(5)}, {"a": own(1.0)}), *TIMES).snapshot()
    assert asked({"w": wr.tumbling(5)}, {"a": own(1.0)}).restore(state).finish()["a"].to_pylist()
    with pytest.raises(wr.StateError, match=r"aggregate 'a' was own\(x\), is the same with other code"):
        asked({"w": wr.tumbling(5)}, {"a": own(2.0)}).restore(state)


def test_an_identity_of_another_type_is_another_one():
    def lift(x):
        return x

    def plus(a, b):
        return a + b

    def query(nothing):
        own = wr.aggregate(columns="t", lift=lift, combine=plus, identity=nothing)
        return asked({"w": wr.tumbling(5)}, {"a": own})

    operator = running(query(0), *TIMES)
    with pytest.raises(wr.StateError, match="the same with other code"):
        operator.change(query(0.0))
    assert operator.finish()["a"].type == pa.int64()


class Scale:
    """A function that is an object."""

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by


@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_an_object_that_is_called_counts_by_what_it_holds():
    def query(by):
        own = wr.aggregate(columns="x", lift=Scale(by), combine=lambda a, b: a + b, identity=0.0)
        return asked({"w": wr.tumbling(5)}, {"a": own})

    state = running(query(1.0), *TIMES).snapshot()
    assert query(1.0).restore(state).finish()["a"].to_pylist() == [3.0, 7.0, 25.0, 21.0]
    with pytest.raises(wr.StateError, match="the same with other code"):
        query(2.0).restore(state)


@pytest.mark.parametrize(
    "query",
    [
        asked({"w": wr.tumbling(5)}, {"s": wr.sum("x")}),
        asked({"w": wr.tumbling(5), "d": wr.delta("x", by=4)}),
    ],
    ids=["of all windows", "of one window"],
)
def test_a_column_of_another_type_is_refused_with_the_difference(query):
    operator = running(query, *TIMES)
    schema = pa.schema([pa.field("t", pa.int64()), pa.field("x", pa.int64())])
    with pytest.raises(wr.StateError, match="column 'x' was double, is int64"):
        operator.query.restore(operator.snapshot(), schema=schema)


def test_a_window_that_cannot_be_added_leaves_the_operator_as_it_was():
    old = asked({"w": wr.tumbling(5), "s": wr.session(3)})
    operator = running(old, *TIMES)
    before = operator.snapshot()
    gaps = asked({"w": wr.tumbling(5), "new": wr.tumbling(2), "gaps": wr.session("t"), "s": wr.session(3)})
    with pytest.raises(wr.QueryError, match="window 'gaps' cannot be added"):
        operator.change(gaps)
    assert operator.query == old
    assert rows(operator.finish()) == rows(old.restore(before).finish())


def test_an_option_that_is_not_there_is_refused():
    operator = running(asked({"w": wr.tumbling(5)}), *TIMES)
    with pytest.raises(wr.QueryError, match=r"no option 'latenes'.*lateness"):
        operator.change(operator.query, latenes=3)
    with pytest.raises(wr.QueryError, match="lateness must not be negative"):
        operator.query.restore(operator.snapshot(), lateness=-1)


# -- options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window", [wr.tumbling(5), wr.session(2), wr.tumbling(rows=1)], ids=["time", "session", "rows"]
)
def test_what_is_final_stays_final_when_the_lateness_grows(window):
    operator = running(asked({"w": window}), *TIMES)
    given = rows(operator.advance(15))
    operator = operator.query.restore(operator.snapshot(), lateness=100)
    operator.process(events(3, 16))
    assert operator.late()["t"].to_pylist() == [3]
    operator = operator.query.restore(operator.snapshot())
    operator.process(events(4))
    assert operator.late()["t"].to_pylist() == [4]
    assert rows(operator.advance(50)) == []
    operator.process(events(17))
    given += rows(operator.finish())
    full = running(asked({"w": window}), *TIMES, 16, 17)
    assert sorted(given, key=repr) == rows(full.finish())


@pytest.mark.parametrize(
    "window", [wr.tumbling(5), wr.session(2), wr.tumbling(rows=1)], ids=["time", "session", "rows"]
)
def test_windows_come_with_the_next_watermark_when_the_lateness_shrinks(window):
    operator = running(asked({"w": window}), *TIMES, watermark=20, lateness=100)
    operator.change(operator.query, lateness=0)
    operator.process(events(8))
    assert operator.late().num_rows == 0
    given = rows(operator.advance(21))
    assert given
    operator.process(events(9))
    assert operator.late()["t"].to_pylist() == [9]
    full = running(asked({"w": window}), *TIMES, 8)
    assert sorted(given + rows(operator.finish()), key=repr) == rows(full.finish())


ALL_KINDS = {
    "time": {"w": wr.tumbling(5), "h": wr.sliding(8, every=3)},
    "session": {"w": wr.session(3)},
    "sessions": {"w": wr.session(2), "wide": wr.session(6), "snapshot": wr.snapshot()},
    "rows": {"w": wr.tumbling(rows=2), "d": wr.delta("x", by=4)},
}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_changelog_begins_with_the_windows_that_are_not_final(kind):
    query = asked(ALL_KINDS[kind])
    operator = running(query, *TIMES, lateness=10)
    final = rows(operator.advance(19))
    operator = query.restore(operator.snapshot(), mode="update")
    told = {}
    for table in (operator.advance(20), operator.process(events(11, 14)), operator.finish()):
        for row in table.to_pylist():
            identity = row["window"], row["start"], row["end"]
            told.pop(identity, None)
            if row["op"] != "delete":
                told[identity] = row["n"]
    expected = rows(running(query, *TIMES, 11, 14).finish())
    assert not {row[:3] for row in final} & told.keys()
    assert sorted([*final, *((*identity, n) for identity, n in told.items())], key=repr) == expected


@pytest.mark.parametrize("kind", ["time", "session", "rows"])
def test_windows_that_are_not_final_are_given_out_once_more_when_the_changelog_ends(kind):
    query = asked(ALL_KINDS[kind])
    operator = running(query, *TIMES, lateness=10, mode="update")
    operator.advance(13)
    operator.process(events(11))
    operator.advance(16)
    final = set(rows(running(query, *TIMES, 11, lateness=10).advance(16)))
    operator = query.restore(operator.snapshot(), mode="append")
    operator.process(events(14))
    expected = set(rows(running(query, *TIMES, 11, 14).finish()))
    found = rows(operator.finish())
    assert len(found) == len(set(found))
    assert final | set(found) == expected
    assert not final & set(found)


def test_modes_that_cannot_follow_each_other_are_refused():
    operator = running(asked(ALL_KINDS["sessions"]), *TIMES, mode="update")
    with pytest.raises(
        wr.StateError, match=r"the mode was update, is append: with the windows w, wide, snapshot it stays"
    ):
        operator.change(operator.query, mode="append")
    spans = wr.query(time=wr.span("t", "x"), windows={"w": wr.tumbling(5)}, aggregates=COUNT)
    lasting = spans.operator()
    lasting.process(pa.table({"t": [1], "x": [3]}))
    with pytest.raises(wr.StateError, match=r"the mode was append, is update: with events of \[t, x\)"):
        spans.restore(lasting.snapshot(), mode="update")


def test_other_options_change():
    operator = running(asked({"w": wr.tumbling(5)}, {"n": wr.count(), "s": wr.max("x")}), *TIMES)
    operator = operator.query.restore(
        operator.snapshot(), on_bad="divert", max_slices=3, max_ahead=5, store="lazy"
    )
    operator.advance(20)
    operator.process(pa.table({"t": pa.array([22, None, 90]), "x": [1.0, 1.0, 1.0]}))
    assert operator.bad()["bad_reason"].to_pylist() == [
        "column 't': an event needs a time, and this one has none",
        "column 't': is more than 5 ahead of the watermark",
    ]
    with pytest.raises(wr.LimitError, match="max_slices=3"):
        operator.process(events(21, 31, 41, 51, 61)) if operator.change(
            operator.query, max_ahead=None
        ) is None else None
    with pytest.raises(wr.QueryError, match="has no inverse"):
        operator.change(operator.query, store="subtract_on_evict")


def test_windows_that_begin_at_a_moment_are_removed_by_a_restart():
    day, kept = dt.datetime(2026, 1, 1), {"days": wr.tumbling("1 day")}
    since = {"since": wr.landmark(since=day, every="1 day"), "all": wr.band(day, length="9 days")}
    operator = asked(kept | since).operator()
    operator.process(pa.table({"t": [dt.datetime(2026, 1, 2, 3)]}))
    assert asked(kept).restore(operator.snapshot()).finish()["n"].to_pylist() == [1]


def test_predicates_that_are_gone_hold_for_no_event():
    windows = {
        "kept": wr.tumbling(5),
        "fast": wr.threshold(pc.field("x") > 3),
        "odd": wr.punctuated(lambda x: x > 5),
    }
    operator = running(asked(windows), *TIMES)
    operator = asked({"kept": wr.tumbling(5)}).restore(operator.snapshot())
    assert [row[0] for row in rows(operator.finish())] == ["kept"] * 4


@pytest.mark.parametrize(
    ("what", "field", "value"),
    [
        ("own", "identity", "no number"),
        ("own", "lower", "import os"),
        ("since", "since", {"is": "Point", "fields": {"nanoseconds": None}}),
        ("since", "since", {"is": "Point", "fields": {"nanoseconds": None, "number": {"float": "nan"}}}),
        ("since", "every", {"is": "Duration", "fields": {"text": "5", "nanoseconds": None, "number": None}}),
        ("since", "every", {"is": "Duration", "fields": {"text": 5, "nanoseconds": None, "number": 5}}),
        ("since", "every", {"is": "Duration", "fields": {"text": "0", "nanoseconds": None, "number": 0}}),
        ("since", "every", {"is": "Predicate", "column": "x", "columns": ["x"]}),
        ("fast", "where", {"is": "Predicate", "column": 10**18, "columns": ["x"]}),
        ("bins", "bins", 2**70),
        ("bins", "columns", [7]),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(what, field, value):
    own = wr.aggregate(
        columns="x", lift=lambda x: (x, 1), combine=lambda a, b: a, lower=lambda a: a[0], identity=(0.0, 0)
    )
    windows = {
        "w": wr.tumbling(5),
        "since": wr.landmark(since=0, every=5),
        "fast": wr.threshold(pc.field("x") > 3),
    }
    full = asked(windows, COUNT | {"own": own, "bins": wr.histogram("x", low=0, high=9, bins=3)})
    state = running(full, *TIMES).snapshot()
    _, plan, body = format._parts(state)
    body = Reader(body)
    about = json.loads(body.text("about"))
    specs = about["query"]["windows"] | about["query"]["aggregates"]
    specs[what]["fields"][field] = value
    writer = format.Writer()
    writer._entries = [(name, *entry) for name, entry in body._entries.items() if name != "about"]
    writer.text("about", json.dumps(about))
    with pytest.raises(wr.StateError, match="snapshot"):
        asked({"w": wr.tumbling(5)}).restore(format.framed(plan, writer.body()))
