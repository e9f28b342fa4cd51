"""Handlers: what they see, what they may not do, and what is left when they raise."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.compared import SPECS, naive_for, rows_of, steps, told_by_handlers, window_for
from policies.support import HeldUpClock
from profiles import examples

from windrow import policies as wp
from windrow.errors import DataError, QueryError
from windrow.policies import spec as specs
from windrow.policies.events import NAMES

ROWS = pa.table({"k": ["a", "b", "a", "a", "b"], "x": [1, 2, 3, 4, 5]})


def sliding(**options):
    return wp.SlidingWindow(
        "sliding, count(2), count(1), partitioned", ROWS.schema, partition_by="k", **options
    )


def test_a_handler_gets_slices_of_columns():
    window, seen = sliding(), []
    window.on_trigger(lambda event: seen.append((event.partition, event.row, event.content["x"].to_pylist())))
    window.on_before_evict(lambda event: seen.append(("out", event.tuple["x"][0].as_py(), event.size)))
    window.insert(ROWS)
    assert seen == [
        ("a", 0, [1]),
        ("b", 1, [2]),
        ("a", 2, [1, 3]),
        ("out", 1, 2),
        ("a", 3, [3, 4]),
        ("b", 4, [2, 5]),
    ]


def test_several_handlers_of_one_event_are_called_in_order():
    window, seen = sliding(), []
    window.on_trigger(lambda event: seen.append(1))
    window.on_trigger(lambda event: seen.append(2))
    window.insert(ROWS.slice(0, 1))
    assert seen == [1, 2]


def test_what_handlers_wait_for_is_on_the_tape_only_if_it_is_recorded():
    window = sliding()
    window.on_trigger(lambda event: None)
    window.record("after_insert")
    assert {NAMES[k] for k in window.insert(ROWS).kind} == {"after_insert"}


@pytest.mark.parametrize(
    ("name", "kind"), [("before_flush", "sliding"), ("trigger", "tumbling"), ("before_evict", "tumbling")]
)
def test_events_of_the_other_kind_of_window_are_refused(name, kind):
    text = "tumbling, count(2)" if kind == "tumbling" else "sliding, count(2), count(1)"
    window = (wp.TumblingWindow if kind == "tumbling" else wp.SlidingWindow)(text, ROWS.schema)
    with pytest.raises(QueryError, match=f"no event of a {kind} window"):
        window.on(name, print)
    with pytest.raises(QueryError, match="no event of a window"):
        window.record("flushed")


@pytest.mark.parametrize("change", ["insert", "punctuate", "advance", "restore"])
def test_a_handler_that_changes_its_window_is_refused_and_the_window_is_unharmed(change):
    window, refused, seen = wp.TumblingWindow("tumbling, punct()", ROWS.schema), [], []

    def handler(event):
        calls = {
            "insert": lambda: window.insert(ROWS),
            "punctuate": window.punctuate,
            "advance": window.advance,
            "restore": lambda: window.restore(b""),
        }
        with pytest.raises(QueryError, match="but not change it") as raised:
            calls[change]()
        refused.append(raised.value)

    window.on_after_insert(handler)
    window.on_before_flush(lambda event: seen.append(event.content["x"].to_pylist()))
    window.insert(ROWS)
    window.punctuate()
    assert len(refused) == 5
    assert seen == [[1, 2, 3, 4, 5]]


class Stop(Exception):
    """What a handler of these tests raises."""


@examples(150)
@given(SPECS, steps(length=5), st.integers(0, 40))
def test_a_handler_that_raises_leaves_the_window_as_after_its_row(spec, made, fatal):
    """The naive model takes the rows that were taken; from there on both go the same way."""
    clock = HeldUpClock()
    window, told = window_for(spec, clock), []
    countdown = [fatal]

    def listen(event):
        countdown[0] -= 1
        if countdown[0] == 0:
            raise Stop

    for name in window.events - {"partition_selection"}:
        window.on(name, listen)
    expected = []
    naive = naive_for(spec, expected)
    for what, thing in made:
        if what == "rows":
            before = window.taken
            with suppress(Stop):
                window.insert(rows_of(thing))
            for row in thing[: window.taken - before]:
                naive.insert(row)
        elif what == "pass":
            clock.skip_to(clock.now() + thing)
            try:
                window.advance()
            except Stop:
                window.advance()
            naive.advance(naive.now + thing)
        elif isinstance(spec.eviction, specs.Punct):
            with suppress(Stop):
                window.punctuate()
            naive.punctuate()
    keys = window.partitions()["k"].to_pylist() if spec.partitioned else [None] * len(window.partitions())
    held = {key: window.content(key)["id"].to_pylist() for key in keys}
    assert held == {(k[0] if k else None): [r["id"] for r in s.rows] for k, s in naive.subwindows.items()}
    window._handlers.clear()
    told_by_handlers(window, told)
    expected.clear()
    more = [{"id": 1000 + i, "k": "abc"[i % 3], "d": 10**6 + i, "f": 1e6 + i} for i in range(9)]
    window.insert(rows_of(more))
    for row in more:
        naive.insert(row)
    assert told == expected


def test_the_note_of_an_exception_says_how_many_rows_were_taken():
    window = sliding()

    def fail(event):
        if event.row == 2:
            raise Stop("no more")

    window.on_trigger(fail)
    with pytest.raises(Stop, match="no more") as raised:
        window.insert(ROWS)
    assert raised.value.__notes__ == ["windrow: 3 of 5 rows were taken; the last of them is finished"]
    assert window.taken == 3
    assert window.content("a")["x"].to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("table", "column", "row", "words"),
    [
        ({"k": ["a", None], "d": [1, 2]}, "k", 1, "belongs to no partition"),
        (
            {"k": ["a", "b", "a"], "d": [5, 3, 4]},
            "d",
            2,
            "never go back in a partition, and this comes after 5",
        ),
        ({"k": ["b"], "d": [1]}, "d", 0, "this comes after 2"),
        ({"k": ["a"], "d": [None]}, "d", 0, "a value in each row"),
    ],
)
def test_a_bad_row_refuses_its_batch_as_a_whole(table, column, row, words):
    schema = pa.schema([("k", pa.string()), ("d", pa.int64())])
    window = wp.SlidingWindow("sliding, delta(d, 5), count(1), partitioned", schema, partition_by="k")
    window.insert(pa.table({"k": ["b"], "d": [2]}, schema))
    with pytest.raises(DataError, match=words) as raised:
        window.insert(pa.table(table, schema))
    assert (raised.value.column, raised.value.row) == (column, row)
    assert window.partitions()["k"].to_pylist() == ["b"]
    assert (len(window), window.taken) == (1, 1)
    window.insert(pa.table({"k": ["a", "b"], "d": [0, 2]}, schema))
    assert window.taken == 3


def test_differences_of_far_values_do_not_overflow():
    schema = pa.schema([("d", pa.int64())])
    window, seen = wp.TumblingWindow("tumbling, delta(d, 10)", schema), []
    window.on_before_flush(lambda event: seen.append(event.content["d"].to_pylist()))
    window.insert(pa.table({"d": [-(2**63), -(2**63) + 10, 2**63 - 1]}, schema))
    assert seen == [[-(2**63), -(2**63) + 10]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pa.table({"k": ["a"]}), "lack the column 'x'"),
        (pa.table({"k": ["a"], "x": [1.5]}), "these rows have double"),
        ([1, 2], "not list"),
    ],
)
def test_other_rows_than_expected_are_refused(rows, words):
    with pytest.raises(QueryError, match=words):
        sliding().insert(rows)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("sliding, count(2), count(1), partitioned", {}, "say by which columns"),
        ("sliding, count(2), count(1)", {"partition_by": "k"}, "is not partitioned"),
        ("sliding, count(2), count(1), partitioned", {"partition_by": "z"}, "there is no column 'z'"),
        ("sliding, delta(z, 2), count(1)", {}, "there is no column 'z'"),
        ("sliding, delta(k, 2), count(1)", {}, "has no differences"),
        ("sliding, delta(x, 2 seconds), count(1)", {}, "is not a time"),
        ("tumbling, count(2)", {}, "no sliding window"),
    ],
)
def test_a_window_that_does_not_fit_its_rows_is_refused(text, options, words):
    with pytest.raises(QueryError, match=words):
        wp.SlidingWindow(text, ROWS.schema, **options)


def test_punctuations_are_for_windows_that_use_them():
    with pytest.raises(QueryError, match="no use for punctuations"):
        sliding().punctuate()
