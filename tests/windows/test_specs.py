"""Window specs: frozen values that can be compared, hashed, pickled and read, and refuse nonsense."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow.windows import Window


def is_rush(speed, lanes):
    return speed > 80 and lanes < 3


def step(state, speed):
    return state, 0, 0


def few(rows):
    return 1 if rows > 10 else 0


def always(speed):
    return True


def count(state):
    return state + 1


# constructor, text, context, columns
SPECS = [
    (lambda: wr.session("30 minutes"), "session gap 30 minutes", "session", ()),
    (lambda: wr.session(timedelta(minutes=5)), "session gap 0:05:00", "session", ()),
    (lambda: wr.session("+5 minutes"), "session gap +5 minutes", "session", ()),
    (
        lambda: wr.session("0.5 seconds"),
        "session gap 0.5 seconds",
        "session",
        (),
    ),
    (lambda: wr.session("timeout"), "session gap from column 'timeout'", "session", ("timeout",)),
    (lambda: wr.tumbling(rows=100), "tumbling 100 rows", "forward context free", ()),
    (lambda: wr.tumbling(rows=np.int32(7)), "tumbling 7 rows", "forward context free", ()),
    (
        lambda: wr.sliding(rows=100, every_rows=10),
        "sliding 100 rows every 10 rows",
        "forward context free",
        (),
    ),
    (lambda: wr.tumbling(5, on="km"), "tumbling 5 on 'km'", "forward context free", ("km",)),
    (
        lambda: wr.sliding(10, every=2.5, on="km", offset=1),
        "sliding 10 every 2.5 on 'km' offset 1",
        "forward context free",
        ("km",),
    ),
    (lambda: wr.punctuated("mark"), "punctuated where mark", "forward context free", ("mark",)),
    (
        lambda: wr.punctuated(start=pc.field("gear") == 1, end=is_rush),
        "punctuated from (gear == 1) to is_rush(speed, lanes)",
        "forward context free",
        ("gear", "speed", "lanes"),
    ),
    (lambda: wr.delta("kelvin", by=0.5), "delta 'kelvin' by 0.5", "forward context free", ("kelvin",)),
    (
        lambda: wr.delta("kelvin", by=2, moves=3),
        "delta 'kelvin' by 2 over 3 moves",
        "forward context free",
        ("kelvin",),
    ),
    (
        lambda: wr.threshold(pc.field("speed") > 80, at_least="10 seconds", at_least_rows=3),
        "threshold (speed > 80) for at least 10 seconds for at least 3 rows",
        "forward context free",
        ("speed",),
    ),
    (
        lambda: wr.landmark(since=datetime(2024, 1, 1), every="1 day"),
        "landmark since 2024-01-01T00:00:00 every 1 day",
        "context free",
        (),
    ),
    (lambda: wr.landmark(since=5, every=2), "landmark since 5 every 2", "context free", ()),
    (lambda: wr.snapshot(), "snapshot", "context free", ()),
    (
        lambda: wr.slide_by_rows("10 minutes", every_rows=100),
        "the last 10 minutes every 100 rows",
        "forward context aware",
        (),
    ),
    (
        lambda: wr.latest(rows=10, every="5 seconds", offset="1 second"),
        "the latest 10 rows every 5 seconds offset 1 second",
        "forward context aware",
        (),
    ),
    (
        lambda: wr.deterministic(step, state=(0, 0.5)),
        "deterministic step(speed)",
        "forward context free",
        ("speed",),
    ),
    (
        lambda: wr.deterministic(step, state=0, columns=["v"], name="trips"),
        "deterministic trips(v)",
        "forward context free",
        ("v",),
    ),
    (
        lambda: wr.nondeterministic(evict=few, trigger=always, update=count),
        "nondeterministic evict few trigger always update count",
        "forward context aware",
        ("speed",),
    ),
]


@pytest.mark.parametrize(
    ("make", "text", "context", "columns"), SPECS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_spec_is_a_frozen_value(make, text, context, columns):
    window = make()
    assert isinstance(window, Window)
    assert str(window) == text
    assert window.context == context
    assert window.columns == columns
    assert window == make()
    assert hash(window) == hash(make())
    twin = pickle.loads(pickle.dumps(window))
    assert twin == window
    assert hash(twin) == hash(window)
    assert window.counts == (text.endswith("rows") and context == "forward context free" and not columns)
    with pytest.raises(AttributeError):
        window.columns = ()


def test_specs_that_differ_are_not_equal():
    windows = [make() for make, *_ in SPECS]
    windows += [wr.punctuated(pc.field("mark")), wr.punctuated(lambda mark: mark), wr.threshold("mark")]
    assert len(set(windows)) == len(windows)
    assert wr.punctuated(pc.field("x") > 1) == wr.punctuated(pc.field("x") > 1)
    assert wr.punctuated(pc.field("x") > 1) != wr.punctuated(pc.field("x") > 2)


def nothing():
    return True


def anything(*values):
    return True


WRONG = [
    (lambda: wr.session(0), "gap of a session must be longer than zero"),
    (lambda: wr.session("-5 minutes"), "longer than zero"),
    (lambda: wr.session("5 parsecs"), "unknown unit"),
    (lambda: wr.session(""), "not empty"),
    (lambda: wr.session(None), "must be a string, a timedelta or a number"),
    (lambda: wr.session(float("nan")), "must be finite"),
    (lambda: wr.tumbling(), "needs a length or a number of rows"),
    (lambda: wr.tumbling(rows=0), "rows must be between 1"),
    (lambda: wr.tumbling(rows=2.5), "rows must be a whole number"),
    (lambda: wr.tumbling(rows=True), "rows must be a whole number"),
    (lambda: wr.tumbling(rows=2**60), "rows must be between 1"),
    (lambda: wr.tumbling(5, rows=5), "either a length .5. or rows"),
    (lambda: wr.tumbling(rows=5, on="km"), "either counted in rows or measured on column 'km'"),
    (lambda: wr.tumbling(rows=5, offset=2), "takes no offset"),
    (lambda: wr.tumbling("5 minutes", on="km"), "must be a plain number"),
    (lambda: wr.tumbling(0, on="km"), "must be greater than zero"),
    (lambda: wr.tumbling(-1.5, on="km"), "must be greater than zero"),
    (lambda: wr.tumbling(float("inf"), on="km"), "must be finite"),
    (lambda: wr.tumbling(2**63 - 1, on="km"), "at most 2"),
    (lambda: wr.tumbling(2**70, on="km"), "beyond 64-bit integers"),
    (lambda: wr.tumbling(5, on=7), "given by the name of a column"),
    (lambda: wr.sliding(rows=5), "needs every_rows"),
    (lambda: wr.sliding(rows=5, every_rows=0), "every_rows must be between 1"),
    (lambda: wr.sliding(rows=5, every="5 seconds"), "use windrow.latest"),
    (lambda: wr.sliding("5 seconds", every_rows=5), "use windrow.slide_by_rows"),
    (lambda: wr.sliding("5 seconds"), "needs a length and every"),
    (lambda: wr.sliding(every=5), "needs a length and every"),
    (lambda: wr.sliding(rows=10**9, every_rows=1), "puts each event into"),
    (lambda: wr.sliding(10, every=1e-9, on="km"), "puts each event into"),
    (lambda: wr.punctuated(), "needs where=..., or both start=... and end="),
    (lambda: wr.punctuated(start="a"), "needs where=..., or both"),
    (lambda: wr.punctuated("a", end="b"), "not both"),
    (lambda: wr.punctuated(3), "must be the name of a boolean column"),
    (lambda: wr.punctuated(""), "name of a column"),
    (lambda: wr.punctuated(nothing), "has no parameters"),
    (lambda: wr.punctuated(anything), "has the parameter"),
    (lambda: wr.punctuated(pc.scalar(True)), "reads no column"),
    (lambda: wr.punctuated(pc.field(0) > 1), "cannot be found"),
    (lambda: wr.delta("x", by=-1), "must not be negative"),
    (lambda: wr.delta("x", by=float("nan")), "must be finite"),
    (lambda: wr.delta("x", by="5 seconds"), "must be a plain number"),
    (lambda: wr.delta("x", by=1, moves=0), "moves of a delta window must be between 1"),
    (lambda: wr.delta(1, by=1), "name of a column"),
    (lambda: wr.threshold("x", at_least=0), "must be longer than zero"),
    (lambda: wr.threshold("x", at_least_rows=0), "at_least_rows must be between 1"),
    (lambda: wr.threshold(None), "must be the name of a boolean column"),
    (lambda: wr.landmark(since="yesterday", every=1), "is not a point in time"),
    (lambda: wr.landmark(since=0, every=0), "must be longer than zero"),
    (lambda: wr.slide_by_rows(0, every_rows=1), "must be longer than zero"),
    (lambda: wr.slide_by_rows(5, every_rows=-1), "every_rows must be between 1"),
    (lambda: wr.latest(rows=0, every=1), "rows must be between 1"),
    (lambda: wr.latest(rows=1, every=0), "must be longer than zero"),
    (lambda: wr.latest(rows=1, every="1 second", offset=5), "both as durations or both as plain numbers"),
    (lambda: wr.deterministic(3, state=0), "must be a function"),
    (lambda: wr.deterministic(nothing, state=0), "needs a parameter for the state"),
    (lambda: wr.deterministic(step, state=()), "not an empty tuple"),
    (lambda: wr.deterministic(step, state="0"), "integers and floats only"),
    (lambda: wr.deterministic(step, state=True), "integers and floats only"),
    (lambda: wr.deterministic(step, state=2**64), "beyond 64-bit integers"),
    (lambda: wr.deterministic(step, state=0, columns=["a", "b"]), "has 1 parameters for columns"),
    (lambda: wr.deterministic(step, state=0, columns="a"), "must be a list of names"),
    (lambda: wr.deterministic(is_rush, state=0, columns=[7]), "name of a column"),
    (lambda: wr.deterministic(lambda s, a, b: s, state=0, columns=["x", "x"]), "names a column twice"),
    (lambda: wr.nondeterministic(evict=0, trigger=always), "evict must be a function"),
    (lambda: wr.nondeterministic(evict=few, trigger=anything), "has the parameter"),
    (lambda: wr.nondeterministic(evict=few, trigger=always, columns=["a", "b"]), "has 1 parameters"),
]


@pytest.mark.parametrize(("make", "problem"), WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_nonsense_is_refused_with_a_sentence(make, problem):
    with pytest.raises(wr.QueryError, match=problem):
        make()


def test_old_forms_of_tumbling_and_sliding_are_as_before():
    assert wr.tumbling("1 minute").length.nanoseconds == 60 * 10**9
    assert (
        str(wr.sliding("1 hour", every="1 minute", offset="5 seconds"))
        == "sliding 1 hour every 1 minute offset 5 seconds"
    )


def test_a_landmark_knows_its_point():
    assert (
        wr.landmark(since=datetime(1970, 1, 2, tzinfo=UTC), every="1 day").since.nanoseconds == 86_400 * 10**9
    )
    assert str(wr.landmark(since=datetime(2024, 1, 1, 0, 0, 0, 5), every=1)) == (
        "landmark since 2024-01-01T00:00:00.000005 every 1"
    )
    assert "3000-01-01T00:00:00 every" in str(wr.landmark(since=datetime(3000, 1, 1), every=1))


def test_columns_of_expressions_are_found_whatever_their_names():
    expression = (pc.field("a b") > 1) & (pc.field("it's") == "field_ref: 'no'") | pc.field(
        "s", "inner"
    ).is_null()
    assert wr.punctuated(expression).columns == ("a b", "it's", "s")
    assert wr.punctuated((pc.field("x") > 1) | (pc.field("x") < 0)).columns == ("x",)
