"""Functions of the user's own that raise: what is named, and that no trace is left."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
from bad_input.support import counts, query, stream

import windrow as wr
from windrow.compiling.compiler import InterpretedWarning


def lift_but_seven(x):
    if x == 7:
        raise ValueError("seven")
    return x


def plain(x):
    return x


def add(a, b):
    return a + b


def add_to_a_hundred(a, b):
    if a + b > 100:
        raise ValueError("a hundred")
    return a + b


def lower_to_a_hundred(a):
    if a > 100:
        raise ValueError("a hundred")
    return a


def own(lift=plain, combine=add, lower=None, **options):
    return wr.aggregate(
        lift=lift, combine=combine, lower=lower, identity=0, columns=["x"], name="mine", **options
    )


def test_a_lift_that_raises_is_named_with_its_row_and_leaves_no_trace():
    operator = stream(aggregates={"a": own(lift_but_seven), "total": wr.sum("x"), "last": wr.last("x")})
    operator.process(pa.table({"ts": [1, 12], "x": [1, 2]}))
    before = operator.metrics()
    with pytest.raises(
        wr.UserFunctionError, match="lift function 'lift_but_seven' of 'mine' raised ValueError at row 2"
    ):
        operator.process(pa.table({"ts": [3, 25, 4], "x": [5, 6, 7]}))
    assert operator.metrics() == before
    assert operator.finish().select(["a", "total", "last"]).to_pylist() == [
        {"a": 1.0, "total": 1, "last": 1},
        {"a": 2.0, "total": 2, "last": 2},
    ]


def test_a_combine_that_raises_is_named_with_its_row_and_leaves_no_trace():
    operator = stream(aggregates={"a": own(combine=add_to_a_hundred), "total": wr.sum("x")})
    operator.process(pa.table({"ts": [1], "x": [60]}))
    with pytest.raises(
        wr.UserFunctionError, match="combine function 'add_to_a_hundred' of 'mine' raised ValueError at row 1"
    ):
        operator.process(pa.table({"ts": [12, 13], "x": [60, 60]}))
    assert operator.finish().select(["start", "a", "total"]).to_pylist() == [
        {"start": 0, "a": 60.0, "total": 60}
    ]


def test_the_row_named_is_a_row_of_the_table_that_was_handed_in():
    table = pa.table({"ts": [9, 1, 5], "x": [7, 1, 2]})
    with pytest.raises(wr.UserFunctionError, match="at row 0 "):
        query(aggregates={"a": own(lift_but_seven)}).run(table)


@pytest.mark.parametrize("first", [None, 1], ids=["bad", "late"])
def test_rows_set_aside_do_not_shift_the_row_named(first):
    operator = query(aggregates={"a": own(lift_but_seven)}).operator(on_bad="divert")
    operator.process(pa.table({"ts": [50], "x": [1]}))
    operator.advance(40)
    table = pa.table({"ts": pa.array([first, first, 51, 52], pa.int64()), "x": [1, 1, 1, 7]})
    with pytest.raises(wr.UserFunctionError, match="at row 3 "):
        operator.process(table)
    assert (operator.metrics().late, operator.metrics().bad) == (0, 0)


def test_a_combine_that_raises_between_slices_is_named_with_the_window():
    windows = {"w": wr.tumbling(10), "v": wr.tumbling(20)}
    operator = query(windows=windows, aggregates={"a": own(combine=add_to_a_hundred)}).operator()
    operator.process(pa.table({"ts": [1, 12], "x": [60, 60]}))
    with pytest.raises(
        wr.UserFunctionError, match="combine function 'add_to_a_hundred' of 'mine' raised ValueError"
    ):
        operator.finish()
    assert operator.metrics().watermark is None


def test_a_lower_that_raises_is_named_with_the_window():
    operator = stream(aggregates={"n": wr.count(), "a": own(lower=lower_to_a_hundred)})
    operator.process(pa.table({"ts": [1, 12], "x": [60, 600]}))
    with pytest.raises(
        wr.UserFunctionError, match="lower function 'lower_to_a_hundred' of 'mine' raised ValueError"
    ) as caught:
        operator.finish()
    assert "10" in str(caught.value), "the window is not named"
    operator.remove_aggregate("a")
    assert counts(operator.finish()) == {(0, 10): 1, (10, 20): 1}


@pytest.mark.parametrize(
    ("function", "aggregate"),
    [
        ("lift_but_seven", own(lift_but_seven, commutative=False)),
        ("add_to_a_hundred", own(combine=add_to_a_hundred, commutative=False)),
        ("lower_to_a_hundred", own(lower=lower_to_a_hundred, commutative=False)),
    ],
    ids=["lift", "combine", "lower"],
)
def test_functions_in_event_time_order_are_named_too(function, aggregate):
    operator = stream(aggregates={"a": aggregate})
    operator.process(pa.table({"ts": [1, 2, 3], "x": [7, 60, 60]}))
    with pytest.raises(wr.UserFunctionError, match=f"function '{function}' of 'mine' raised ValueError"):
        operator.finish()


def test_a_combine_that_raises_while_slices_are_joined_loses_no_row():
    windows = {"s": wr.tumbling(1), "d": wr.tumbling(100_000)}
    operator = query(windows=windows, aggregates={"a": own(combine=add_to_a_hundred)}).operator()
    operator.process(pa.table({"ts": list(range(3000)), "x": [60] * 3000}))
    emitted = 0
    try:
        emitted = operator.advance(2500).num_rows
    except wr.UserFunctionError:
        assert operator.metrics().watermark is None
    else:
        assert emitted == 2500


def test_a_failed_advance_counts_no_revision():
    operator = query(aggregates={"n": wr.count(), "a": own(lower=lower_to_a_hundred)}).operator(
        mode="update", lateness=100
    )
    operator.process(pa.table({"ts": [1], "x": [1]}))
    operator.advance(10)
    operator.process(pa.table({"ts": [2], "x": [1000]}))
    for _ in range(2):
        with pytest.raises(wr.UserFunctionError):
            operator.advance(11)
    operator.remove_aggregate("a")
    (row,) = operator.advance(12).to_pylist()
    assert (row["op"], row["revision"], row["n"]) == ("update", 1, 2)


def test_a_function_that_cannot_be_compiled_is_interpreted_with_one_warning():
    def digits(x):
        return sum(int(digit) for digit in str(int(x)))

    aggregate = wr.aggregate(lift=digits, combine=add, identity=0, columns=["x"], name="digits")
    windows = {"w": wr.tumbling(10), "v": wr.tumbling(20)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = query(windows=windows, aggregates={"a": aggregate}).run(
            pa.table({"ts": [12, 1, 2], "x": [123, 45, 6]})
        )
    assert {(r["window"], r["start"]): r["a"] for r in result.to_pylist()} == {
        ("w", 0): 15.0,
        ("w", 10): 6.0,
        ("v", 0): 21.0,
    }
    mine = [w for w in caught if issubclass(w.category, InterpretedWarning)]
    assert len(mine) == 1, [str(w.message) for w in mine]
    assert "'digits'" in str(mine[0].message)


@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
@pytest.mark.parametrize(
    "aggregate",
    [own(lift=abs), own(combine=max), own(lower=float)],
    ids=["lift abs", "combine max", "lower float"],
)
def test_built_in_functions_of_python_are_functions_too(aggregate):
    table = pa.table({"ts": [1, 2], "x": [1, 2]})
    assert query(aggregates={"a": aggregate}).run(table)["a"].to_pylist()[0] in (2.0, 3.0)
