"""Predicates over batches: columns, expressions and functions agree, and errors name what is wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow.compiling.compiler import InterpretedWarning
from windrow.engine.intake.predicates import Condition
from windrow.windows.predicate import parse_predicate

BATCH = pa.record_batch(
    {
        "x": pa.array([1, 5, None, 9, 3]),
        "y": pa.array([0.5, None, 2.0, float("nan"), 4.0]),
        "m": pa.array([True, None, False, True, True]),
        "s": pa.array(["a", "b", None, "c", "a"]),
        "when": pa.array([0, 1, 2, 3, None], pa.timestamp("s")),
        "day": pa.array([0, 1, 2, 3, 4], pa.date32()),
        "clock": pa.array([0, 1, 2, 3, 4], pa.time32("s")),
        "big": pa.array([0, 1, 2, 3, 4], pa.uint64()),
        "small": pa.array([0.5, 1.5, 2.5, 3.5, 4.5], pa.float32()),
        "inner": pa.array([{"z": 1}, {"z": 2}, {"z": None}, None, {"z": 3}]),
    }
)


def holds(value, batch=BATCH):
    found = Condition(parse_predicate(value, what="where"), batch.schema, what="where of window 'w'")(batch)
    assert found.dtype == np.bool_
    return found.astype(int).tolist()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("m", [1, 0, 0, 1, 1]),
        (pc.field("m"), [1, 0, 0, 1, 1]),
        (pc.field("x") > 2, [0, 1, 0, 1, 1]),
        ((pc.field("x") > 2) | pc.field("m"), [1, 1, 0, 1, 1]),
        (pc.field("s") == "a", [1, 0, 0, 0, 1]),
        (pc.field("s").is_null(), [0, 0, 1, 0, 0]),
        (pc.field("inner", "z") > 1, [0, 1, 0, 0, 1]),
        (pc.is_in(pc.field("x"), pa.array([1, 9])), [1, 0, 0, 1, 0]),
        (lambda x: x > 2, [0, 1, 0, 1, 1]),
        (lambda x, y: x > y, [1, 0, 0, 0, 0]),
        (lambda m, x: m and x > 1, [0, 0, 0, 1, 1]),
        (lambda y: not y > 1, [1, 0, 0, 1, 0]),
        (lambda when, day, clock: when == 2 and day == 2 and clock == 2, [0, 0, 1, 0, 0]),
        (lambda big, small: big + small > 4, [0, 0, 1, 1, 1]),
    ],
)
def test_a_predicate_holds_where_it_says_and_nowhere_without_a_value(value, wanted):
    assert holds(value) == wanted
    assert holds(value, BATCH.slice(1, 3)) == wanted[1:4]
    assert holds(value, BATCH.slice(0, 0)) == []


def test_expressions_keep_the_order_of_long_batches():
    x = np.random.default_rng(1).integers(0, 100, 300_000)
    batch = pa.record_batch({"x": x})
    assert np.array_equal(holds(pc.field("x") > 50, batch), x > 50)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("x", "where of window 'w': column 'x' is of type int64; a boolean column is needed"),
        ("nowhere", "there is no column 'nowhere'"),
        (pc.field("x") + 1, "gives int64; a boolean is needed"),
        (pc.field("s") > 1, "where of window 'w': "),
        (lambda x: x + 1, "returns int64; a boolean is needed"),
        (lambda s: s == "a", "reads column 's' of type string; numbers, times and booleans can be read"),
        (lambda x, gone: x > gone, "there is no column 'gone'"),
    ],
)
def test_what_is_not_a_condition_is_refused(value, problem):
    with pytest.raises(wr.QueryError, match=problem):
        holds(value)


def test_a_function_that_raises_is_named_with_its_row_and_values():
    def ratio(x, day):
        return 10 // (x - 9) > day

    with pytest.raises(wr.UserFunctionError, match="'ratio' raised ZeroDivisionError") as caught:
        holds(ratio)
    assert caught.value.row == 3
    assert "(x=9, day=3)" in str(caught.value)
    condition = Condition(parse_predicate(ratio, what="where"), BATCH.schema, what="where of window 'w'")
    with pytest.raises(wr.UserFunctionError, match="at noon") as caught:
        condition(BATCH, moment=lambda row: "noon")
    assert caught.value.row is None


def test_an_expression_that_raises_is_named():
    value = pc.divide(pc.scalar(1), pc.field("day").cast(pa.int32())) > 0
    with pytest.raises(wr.UserFunctionError, match="divide by zero"):
        holds(value)


def test_a_function_that_cannot_be_compiled_is_interpreted_with_one_warning():
    def odd(x):
        return eval("x % 2 == 1")

    predicate = parse_predicate(odd, what="where")
    with pytest.warns(InterpretedWarning, match="'odd'"):
        condition = Condition(predicate, BATCH.schema, what="where")
    assert condition(BATCH).astype(int).tolist() == [1, 1, 0, 1, 1]
    assert Condition(predicate, BATCH.schema, what="where")(BATCH).any()

    def unclear(x):
        return eval("x")

    with pytest.warns(InterpretedWarning, match="'unclear'"):
        condition = Condition(parse_predicate(unclear, what="where"), BATCH.schema, what="where")
    with pytest.raises(wr.QueryError, match="returns int; a boolean is needed"):
        condition(BATCH)
