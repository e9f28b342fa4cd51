"""Early rows: when they come, what they hold, and what cannot be meant. That they add up to the answer is in `conformance`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import QueryError, StateError
from windrow.testing.compare import assert_same

QUERY = wr.query(
    time="t",
    key="k",
    windows={"ten": wr.tumbling(10), "long": wr.sliding(60, every=20)},
    aggregates={"n": wr.count(), "total": wr.sum("x")},
)


def events(*times, key="a"):
    """An event of one for each time."""
    return pa.table({"t": list(times), "k": [key] * len(times), "x": [1] * len(times)})


def told(rows):
    """What rows say, in short."""
    return [(r["k"], r["window"], r["start"], r["n"], r["final"]) for r in rows.to_pylist()]


def test_a_look_comes_when_event_time_has_passed_a_multiple_of_the_period():
    op = QUERY.operator(mode="update", emit=wr.every(5))
    assert [op.process(events(t)).num_rows for t in (1, 3, 4, 5, 9, 8, 17)] == [0, 0, 0, 4, 0, 0, 5]


def test_a_look_comes_when_so_many_events_have_come():
    op = QUERY.operator(mode="update", emit=wr.every_rows(3))
    assert [op.process(events(*times)).num_rows for times in ((1, 1), (1,), (1, 1, 1, 1), (1,))] == [
        0,
        4,
        4,
        0,
    ]


def test_a_look_gives_out_what_has_changed_and_nothing_else():
    op = QUERY.operator(mode="update", emit=wr.each_batch())
    op.process(events(*range(0, 1000, 10)))
    op.process(events(*range(0, 1000, 10), key="b"))
    assert [row[:4] for row in told(op.process(events(995)))] == [
        ("a", "ten", 990, 2),
        ("a", "long", 940, 7),
        ("a", "long", 960, 5),
        ("a", "long", 980, 3),
    ]


def test_a_window_that_is_final_comes_once_more_though_nothing_has_changed():
    op = QUERY.operator(mode="update", emit=wr.each_batch(), lateness=5)
    op.process(events(3))
    assert told(op.advance(12)) == []
    assert told(op.advance(15)) == [("a", "ten", 0, 1, True)]


def test_a_condition_lets_windows_pass_that_it_holds_for():
    op = QUERY.operator(mode="update", emit=wr.when(lambda n: n > 2))
    assert told(op.process(events(1, 2))) == []
    assert {row[3] for row in told(op.process(events(5)))} == {3}
    assert [row[3] for row in told(op.process(events(25))) if row[1] == "ten"] == []
    assert ("a", "ten", 20, 1, True) in told(op.finish())


@given(
    batches=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=6), max_size=8),
    rows=st.integers(1, 6),
    lateness=st.integers(0, 30),
    back=st.integers(0, 9),
)
def test_rows_that_hold_what_came_since_the_last_one_add_up(batches, rows, lateness, back):
    adding = QUERY.operator(emit=wr.every_rows(rows, discarding=True), lateness=lateness)
    whole = QUERY.operator(lateness=lateness)
    found, expected = [], []
    for batch in batches:
        found.append(adding.process(events(*batch)))
        whole.process(events(*batch))
        mark = max(max(batch) - back, int(whole.metrics().watermark or 0))
        found.append(adding.advance(mark))
        expected.append(whole.advance(mark))
        adding = QUERY.restore(adding.snapshot())
    found.append(adding.finish())
    expected.append(whole.finish())
    if not batches:
        return
    names = ["k", "window", "start", "end"]
    sums = pa.concat_tables(found).group_by(names).aggregate([("n", "sum"), ("total", "sum")])
    sums = sums.rename_columns([*names, "n", "total"])
    assert_same(pa.concat_tables(expected), sums)
    assert adding.metrics().late == whole.metrics().late


def test_what_was_told_is_known_after_a_restart():
    op = QUERY.operator(mode="update", emit=wr.when(pc.field("n") > 1))
    op.process(events(1, 2))
    again = QUERY.restore(op.snapshot(), emit=wr.when(pc.field("n") > 1))
    rows = again.process(events(3)).to_pylist()
    assert {(row["op"], row["revision"]) for row in rows} == {("update", 1)}
    with pytest.raises(StateError, match="say emit= as it was"):
        QUERY.restore(op.snapshot())


def test_a_condition_that_is_text_is_in_the_snapshot():
    op = QUERY.operator(mode="update", emit=wr.when("n > 1 and total < 4"))
    assert told(op.process(events(1))) == []
    op = QUERY.restore(op.snapshot())
    assert {row[3] for row in told(op.process(events(3)))} == {2}
    assert {row["op"] for row in op.process(events(4)).to_pylist()} == {"update"}
    assert told(op.process(events(5))) == []
    with pytest.raises(QueryError, match="a condition is needed"):
        QUERY.operator(mode="update", emit=wr.when("n + 1")).process(events(1))


def test_a_running_operator_goes_on_with_other_looks():
    op = QUERY.operator(mode="update", emit=wr.each_batch())
    op.process(events(1))
    op.change(QUERY, emit=wr.every_rows(2))
    assert [op.process(events(t)).num_rows for t in (2, 3)] == [0, 4]
    op.change(QUERY, emit="close")
    assert "final" not in op.process(events(4)).column_names
    assert {row["op"] for row in op.finish().to_pylist()} == {"insert"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"emit": wr.each_batch()}, 'in mode "append" no row is: say mode="update", or discarding=True'),
        ({"mode": "update", "emit": wr.each_batch(discarding=True)}, 'need mode="append"'),
        ({"emit": "often"}, "made by every, every_rows, each_batch or when"),
        ({"mode": "update", "emit": wr.every("10 seconds")}, "emit: every"),
    ],
)
def test_looks_that_cannot_be_kept_are_refused(options, said):
    with pytest.raises(QueryError, match=said):
        QUERY.operator(**options).process(events(1))


def test_looks_that_make_no_sense_are_refused():
    for make in (
        lambda: wr.every(0),
        lambda: wr.every_rows(0),
        lambda: wr.every_rows(2.5),
        lambda: wr.when(7),
    ):
        with pytest.raises(QueryError):
            make()
    sessions = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()})
    with pytest.raises(QueryError, match="windows that time places"):
        sessions.operator(emit=wr.each_batch(discarding=True))
    named = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"final": wr.count()})
    with pytest.raises(QueryError, match="give yours another name"):
        named.operator(mode="update", emit=wr.each_batch())
    spans = wr.query(time=wr.span("t", "u"), windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    with pytest.raises(QueryError, match="an event that is not over"):
        spans.operator(mode="update", emit=wr.each_batch())
    with pytest.raises(QueryError, match="amount"):
        QUERY.operator(mode="update", emit=wr.when(pc.field("amount") > 1)).process(events(1))


def test_a_condition_that_fails_leaves_the_operator_as_it_was():
    def unlucky(n):
        return 1 // (n - 3) >= 0

    op = QUERY.operator(mode="update", emit=wr.when(unlucky))
    op.process(events(1, 2))
    before = op.snapshot()
    with pytest.raises(wr.UserFunctionError, match="condition of early rows"):
        op.process(events(3))
    after = QUERY.restore(before, emit=op.settings.emit)
    after.take_events(events(3))
    assert op.snapshot() == after.snapshot()
    assert ("a", "ten", 0, 4, False) in told(op.process(events(4)))


def test_a_condition_that_does_not_fit_is_refused_again_and_again():
    op = QUERY.operator(mode="update", emit=wr.when("amount > 1"))
    for _ in range(2):
        with pytest.raises(QueryError, match="amount"):
            op.process(events(1))
    assert op.metrics().events == 0


def test_from_early_rows_to_append():
    op = QUERY.operator(mode="update", emit=wr.each_batch())
    op.process(events(1))
    op.change(QUERY, mode="append", emit="close")
    assert op.finish()["n"].to_pylist() == [1, 1, 1, 1]


@pytest.mark.parametrize("condition", ["total > 1", pc.field("total") > 1, lambda total: total > 1])
def test_an_aggregate_that_a_condition_reads_stays(condition):
    op = QUERY.operator(mode="update", emit=wr.when(condition))
    op.process(events(1, 2))
    with pytest.raises(QueryError, match="'total' cannot be removed: rows come early when"):
        op.remove_aggregate("total")
    assert op.process(events(3)).num_rows > 0
    rest = wr.query(time="t", key="k", windows=QUERY.windows, aggregates={"n": wr.count()})
    op.change(rest, emit=wr.each_batch())
    assert "total" not in op.process(events(4)).column_names


def test_an_aggregate_that_came_behind_a_look_that_took_all_is_complete_from_the_next_window_on():
    q = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    for restarted in (False, True):
        op = q.operator(emit=wr.each_batch(discarding=True))
        op.process(events(1, 2))
        op = q.restore(op.snapshot()) if restarted else op
        assert op.add_aggregate("total", wr.sum("x")) == 10
        assert op.process(events(3))["total"].to_pylist() == [None]
        assert op.process(events(13))["total"].to_pylist() == [1]


def test_where_rows_add_up_the_operator_cannot_be_asked_at_points():
    op = QUERY.operator(emit=wr.every_rows(2, discarding=True))
    op.process(events(1, 2))
    with pytest.raises(QueryError, match="holds only what came since its last look"):
        op.at(pa.table({"t": [5], "k": ["a"]}))
