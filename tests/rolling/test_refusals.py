"""What rolling windows refuse, and what is left when a call ends in the middle. Stores are interpreted here."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from interpreted import interpreted
from store_queue import Queue

import windrow as wr
from windrow.rolling import OutOfOrder, Rolling, Several, held
from windrow.stores import STORES


@pytest.fixture(autouse=True)
def _without_compiler(monkeypatch):
    monkeypatch.setattr(held, "compiled", interpreted)


TABLE = pa.table({"t": [1, 2], "x": [1, 2]})
HUGE = {
    "rows": lambda: Rolling(wr.max("x"), rows=10**15).process(TABLE),
    "a period": lambda: Rolling(wr.max("x"), time="t", period=10**15, every=1).process(TABLE),
    "several": lambda: Several(wr.max("x"), rows=[2, 10**15]).process(TABLE),
    "a queue": lambda: Queue(wr.max("x"), [pa.int64()], store="lazy", capacity=10**15),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_window_for_which_there_is_no_room_is_a_limit(name):
    with pytest.raises(wr.LimitError, match=r"no room for a window of 1,000,000,000,000,00\d partials"):
        HUGE[name]()


def test_several_windows_that_found_no_room_find_none_again():
    windows = Several(wr.max("x"), rows=[2, 2**50])
    for _ in range(2):
        with pytest.raises(wr.LimitError):
            windows.process(TABLE)


def test_more_rows_than_can_be_counted_are_refused():
    with pytest.raises(wr.QueryError, match="every must be between 1 and"):
        Rolling(wr.max("x"), rows=2, every=2**70)
    with pytest.raises(wr.QueryError, match="a list of whole numbers, not 3"):
        Several(wr.max("x"), rows=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: Rolling(a, rows=2),
        lambda a: Several(a, rows=[2]),
        lambda a: OutOfOrder(a, time="t", period=2),
        lambda a: Queue(a, [pa.int64()], store="lazy", capacity=2),
    ],
    ids=["rolling", "several", "out of order", "queue"],
)
def test_what_is_no_aggregate_is_refused(make):
    with pytest.raises(wr.QueryError, match=r"an aggregate is needed, .* not 'x'"):
        make("x")


def test_batches_of_a_call_may_have_their_columns_in_any_order():
    parts = [pa.table({"x": [1, 2], "y": [0, 0]}), pa.table({"y": [0], "x": [3]}), pa.table({"x": [4]})]
    assert Rolling(wr.max("x"), rows=2).process(parts).to_pylist() == [2, 3, 4]
    assert Rolling(wr.count(), rows=2).process(parts).to_pylist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (pa.table({"y": [1]}), "there is no column 'x'"),
        (pa.table({"x": [1.5]}), "column 'x' was int64 before, and now is double"),
        (pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), "column 'x' occurs 2 times"),
    ],
    ids=["missing", "of another type", "twice"],
)
def test_a_batch_that_does_not_go_with_the_others_of_its_call_is_refused(second, message):
    window = Rolling(wr.max("x"), rows=2)
    with pytest.raises(wr.QueryError, match=message):
        window.process([pa.table({"x": [1, 2]}), second])
    assert window.process(pa.table({"x": [5, 6]})).to_pylist() == [6]


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_no_window_ends_at_infinity(value):
    window = OutOfOrder(wr.max("x"), time="t", period=10.0)
    with pytest.raises(wr.DataError, match=r"column 't', row 1, value -?inf: is not a point in time"):
        window.process(pa.table({"t": [1.0, value], "x": [1, 2]}))
    assert window.process(pa.table({"t": [2.0], "x": [3]})).to_pylist() == [3]


# -- functions of the user's own -----------------------------------------------------------------


def subtract(a, b):
    if b == 55:
        raise ValueError("fifty-five")
    return a - b


def add(a, b):
    if a + b > 100:
        raise ValueError("a hundred")
    return a + b


SUM = wr.aggregate(lift=lambda x: x, combine=add, invert=subtract, identity=0, columns=["x"], name="mine")


def test_an_inverse_that_raises_is_named_and_leaves_all_as_it_was():
    window = Rolling(SUM, rows=2, store="subtract_on_evict")
    window.process(pa.table({"x": [1, 2]}))
    with pytest.raises(
        wr.UserFunctionError, match=r"'add' or invert function 'subtract' of 'mine' .*fifty-five"
    ):
        window.process(pa.table({"x": [55, 1, 2]}))
    assert window.process(pa.table({"x": [3]})).to_pylist() == [5.0]


def test_a_combine_that_raises_names_no_row_as_it_may_be_any_of_the_window():
    window = Rolling(SUM, rows=3, store="lazy")
    with pytest.raises(wr.UserFunctionError) as caught:
        window.process(pa.table({"x": [30, 30, 30, 30, 50, 1]}))
    assert str(caught.value) == "combine function 'add' of 'mine' raised ValueError: a hundred"


# -- calls that are interrupted ------------------------------------------------------------------

COLUMN = np.random.default_rng(5).integers(0, 100, 200)


def interrupting(loop, store, given):
    """Loops after which somebody presses Ctrl-C."""
    run = interpreted(loop, store, given)

    def interrupted(*arguments):
        run(*arguments)
        raise KeyboardInterrupt

    return interrupted


def interrupted(window, column, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(held, "compiled", interrupting)
        with pytest.raises(KeyboardInterrupt):
            window.process(pa.table({"x": column}))


@pytest.mark.parametrize("store", [name for name, store in STORES.items() if store.needs != "inverse"])
def test_a_long_call_that_is_interrupted_leaves_all_as_it_was(store, monkeypatch):
    monkeypatch.setattr(held, "ROWS_PER_COPY", 0)
    window, other = (Rolling(wr.max("x"), rows=30, store=store) for _ in range(2))
    for each in (window, other):
        each.process(pa.table({"x": COLUMN[:70]}))
    interrupted(window, COLUMN[70:150], monkeypatch)
    rest = pa.table({"x": COLUMN[150:]})
    assert window.process(rest) == other.process(rest)


def test_what_a_short_call_has_left_that_was_interrupted_is_refused(monkeypatch):
    window = Rolling(wr.max("x"), rows=30, store="sba")
    window.process(pa.table({"x": COLUMN[:70]}))
    interrupted(window, COLUMN[70:75], monkeypatch)
    for _ in range(2):
        with pytest.raises(wr.StateError, match=r"a call was interrupted, .* begin anew"):
            window.process(pa.table({"x": COLUMN[75:]}))
