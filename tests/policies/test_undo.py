"""What is left when something fails after rows were taken: the window as it was before them."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from policies.compared import SECOND, SPECS, steps
from policies.support import HeldUpClock
from profiles import examples

import windrow as wr
from windrow import policies as wp
from windrow.errors import DataError, UserFunctionError
from windrow.policies import spec as specs

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("d", pa.int64()), ("f", pa.float64())])
BAD = 7_777


def _lift(id):
    return 1 if id != BAD else 1 // (id - BAD)


def _add(a, b):
    return a + b


COUNTED = wr.aggregate(lift=_lift, combine=_add, lower=lambda a: a, identity=0)
FAILS = {"own": COUNTED, "sum": wr.sum("id"), "n": wr.count()}


def _window(spec, aggregates, clock):
    kind = wp.TumblingWindow if isinstance(spec, specs.Tumbling) else wp.SlidingWindow
    by = "k" if spec.partitioned else None
    return kind(spec, SCHEMA, partition_by=by, clock=clock, aggregates=aggregates)


def _play(window, clock, made, told, *, failing=()):
    """Take a window through steps; before each batch in `failing` comes one that fails."""
    for number, (what, thing) in enumerate(made):
        if what == "rows":
            if number in failing and thing:
                broken = [*thing, {**thing[-1], "id": BAD}]
                with pytest.raises(UserFunctionError, match=r"'_lift'.*raised ZeroDivisionError"):
                    window.insert(pa.Table.from_pylist(broken, SCHEMA))
            told += window.insert(pa.Table.from_pylist(thing, SCHEMA)).answers.to_pylist()
        elif what == "pass":
            clock.skip_to(clock.now() + thing)
        elif isinstance(window.spec.eviction, specs.Punct):
            told += window.punctuate().answers.to_pylist()
    if specs.uses_clock(window.spec):
        told += window.advance().answers.to_pylist()


@examples(120)
@given(SPECS, steps(), st.sets(st.integers(0, 7)))
def test_a_users_function_that_raises_leaves_the_window_as_before_its_batch(spec, made, failing):
    """A window through batches that fail, beside one that never saw them."""
    assume(spec.eviction != wp.count(0))  # folds nothing
    results = []
    for batches in (failing, ()):
        clock = HeldUpClock()
        window, told = _window(spec, FAILS, clock), []
        window.on_tape(lambda tape, told=told: told.extend(tape.answers.to_pylist()))
        _play(window, clock, made, told, failing=batches)
        held = window.partitions().to_pylist()
        summaries = [window.summary(subwindow.get("k")) for subwindow in held]
        results.append((told, window.taken, len(window), held, summaries))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("tumbling, count(2)", 3),
        ("tumbling, delta(d, 1)", 4),
        ("sliding, count(2), count(1)", 3),
        ("sliding, count(4), count(2)", 3),
        ("sliding, delta(d, 1), delta(d, 1)", 4),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_a_sum_that_overflows_names_its_row_and_leaves_the_window_as_it_was(text, row, kept):
    aggregates = {"sum": wr.sum("x")} | ({"middle": wr.median("x")} if kept else {})
    operators = [wp.Aggregate(text, aggregates) for _ in range(2)]
    fine = pa.table({"x": [1, 2, 3], "d": [1, 2, 3]})
    large = pa.table({"x": [1, -1, 2**62, 2**62, 0], "d": [10, 10, 12, 13, 16]})
    for operator in operators:
        operator.process(fine.slice(0, 2))
    with pytest.raises(DataError, match="overflows int64") as raised:
        operators[0].process(large)
    assert (raised.value.column, raised.value.row, raised.value.value) == ("x", row, 2**63)
    more = pa.table({"x": [5, 6, 7, 8], "d": [4, 5, 6, 9]})
    given, expected = (operator.process(more)[0].table.to_pylist() for operator in operators)
    assert given == expected


@pytest.mark.parametrize("text", ["tumbling, punct()", "tumbling, time(5)", "sliding, time(9), time(5)"])
def test_a_sum_that_overflows_without_a_row_blames_none_and_does_not_come_again(text):
    clock = HeldUpClock()
    window = _window(wp.parse(text), {"sum": wr.sum("id")}, clock)
    rows = pa.Table.from_pylist([{"id": 2**62}] * 2, SCHEMA)
    window.insert(rows)
    clock.skip_to(5 * SECOND)
    with pytest.raises(
        DataError, match=r"column 'id', value 9223372036854775808: sum.id. of the window"
    ) as raised:
        window.punctuate() if "punct" in text else window.advance()
    assert raised.value.row is None
    clock.skip_to(20 * SECOND)
    window.advance()
    answers = window.insert(pa.Table.from_pylist([{"id": 1}], SCHEMA)).answers
    assert answers.to_pylist() == []
    assert window.summary() == {"sum": 1}


def test_a_function_that_raises_in_a_handlers_summary_takes_no_row():
    window = _window(wp.tumbling(wp.count(9)), FAILS, None)
    window.on_after_insert(lambda event: event.summary)
    window.insert(pa.Table.from_pylist([{"id": 1}], SCHEMA))
    with pytest.raises(UserFunctionError) as raised:
        window.insert(pa.Table.from_pylist([{"id": 2}, {"id": BAD}, {"id": 3}], SCHEMA))
    assert raised.value.row == 1
    assert raised.value.__notes__ == ["windrow: none of 3 rows was taken"]
    assert window.summary() == {"own": 1, "sum": 1, "n": 1}
    assert window.taken == 1


def test_what_the_clock_made_happen_is_not_lost_with_the_rows_that_failed():
    clock, told = HeldUpClock(), []
    window = _window(wp.sliding(wp.time(10), wp.time(5)), FAILS, clock)
    window.on_tape(lambda tape: told.extend(tape.answers["n"].to_pylist()))
    window.insert(pa.Table.from_pylist([{"id": 1}, {"id": 2}], SCHEMA))
    clock.skip_to(5 * SECOND)
    with pytest.raises(UserFunctionError):
        window.insert(pa.Table.from_pylist([{"id": BAD}], SCHEMA))
    assert told == [2]
    assert window.insert(pa.Table.from_pylist([{"id": 3}], SCHEMA)).answers.num_rows == 0


@pytest.mark.parametrize("text", ["sliding, count(3), count(2)", "tumbling, count(3)"])
def test_groups_and_medians_with_a_function_that_raises_are_taken_back_too(text):
    operators = [wp.Aggregate(text, FAILS, group_by="k") for _ in range(2)]
    rows = [{"id": i, "k": "ab"[i % 2], "d": i, "f": 0.0} for i in range(5)]
    for operator in operators:
        operator.process(pa.Table.from_pylist(rows, SCHEMA))
    with pytest.raises(UserFunctionError, match="ZeroDivisionError"):
        operators[0].process(pa.Table.from_pylist([*rows, {**rows[0], "id": BAD}, *rows], SCHEMA))
    given, expected = (o.process(pa.Table.from_pylist(rows, SCHEMA))[0].table.to_pylist() for o in operators)
    assert given == expected


class Counting(wp.Summarizer):
    """Raises at a value, in one of its methods."""

    def __init__(self, where):
        self.where, self.ids = where, []

    def _maybe(self, where):
        if where == self.where:
            raise ZeroDivisionError(where)

    def open(self, partition):
        self._maybe("open" if partition == "bad" else None)

    def insert(self, rows):
        self._maybe("insert" if "bad" in rows["k"].to_pylist() else None)
        self.ids += rows["id"].to_pylist()

    def close(self):
        self._maybe("close" if 100 in self.ids else None)


@pytest.mark.parametrize("where", ["open", "insert", "close"])
def test_a_summarizer_that_raises_keeps_no_other_from_its_rows(where):
    window = wp.TumblingWindow(
        "tumbling, count(3), partitioned", SCHEMA, partition_by="k", summarizer=lambda: Counting(where)
    )

    def rows(*pairs):
        return pa.Table.from_pylist([{"id": i, "k": k} for i, k in pairs], SCHEMA)

    with pytest.raises(ZeroDivisionError, match=where) as raised:
        window.insert(rows((1, "a"), (2, "bad"), (3, "b"), (100, "c"), (5, "c"), (6, "c"), (7, "a")))
    assert "a summarizer raised" in raised.value.__notes__[0]
    assert window.taken == 7
    window.insert(rows((8, "b")))
    assert window.summary("a").ids == [1, 7]
    assert window.summary("b").ids == [3, 8]


def test_a_summarizer_that_is_none_is_refused():
    window = wp.TumblingWindow("tumbling, count(3)", SCHEMA, summarizer=lambda: None)
    with pytest.raises(wr.QueryError, match="a window needs a Summarizer"):
        window.insert(pa.Table.from_pylist([{"id": 1}], SCHEMA))


def test_text_is_right_at_events_of_the_clock_that_come_with_new_words():
    clock, seen = HeldUpClock(), []
    window = wp.SlidingWindow(
        "sliding, time(10), time(5)",
        pa.schema([("s", pa.string())]),
        clock=clock,
        aggregates={"first": wr.min("s")},
    )
    window.on_trigger(lambda event: seen.append(event.summary["first"]))
    window.insert(pa.table({"s": ["m", "z"]}))
    clock.skip_to(5 * SECOND)
    window.insert(pa.table({"s": ["a", "b"]}))
    assert seen == ["m"]


def test_a_handler_that_hides_what_a_function_raised_does_not_make_it_good():
    window = _window(wp.tumbling(wp.count(9)), FAILS, None)

    def look(event):
        with suppress(UserFunctionError):
            assert event.summary

    window.on_after_insert(look)
    with pytest.raises(UserFunctionError) as raised:
        window.insert(pa.Table.from_pylist([{"id": 2}, {"id": BAD}, {"id": 3}], SCHEMA))
    assert raised.value.row == 1
    assert window.summary() is None
    window.insert(pa.Table.from_pylist([{"id": 2}], SCHEMA))
    assert window.summary() == {"own": 1, "sum": 2, "n": 1}


@pytest.mark.parametrize("text", ["tumbling, count(2)", "sliding, count(4), count(2)"])
def test_an_interruption_in_the_middle_of_folding_is_not_gone_on_from(text, monkeypatch):
    window = _window(wp.parse(text), {"mean": wr.mean("f")}, None)
    rows = pa.Table.from_pylist([{"f": 1.0}] * 3, SCHEMA)
    window.insert(rows)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(window._machine.folding, "fold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        window.insert(rows)
    monkeypatch.undo()
    with pytest.raises(wr.StateError, match="interrupted half-way"):
        window.insert(rows)
