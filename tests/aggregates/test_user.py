"""Aggregates of the user's own: the types of their results, and integers that need more than 64 bits."""

from __future__ import annotations

import math
from functools import reduce

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
import windrow.policies as wp
from windrow.rolling import Rolling

pytestmark = pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
HIGHEST, LOWEST = 2**63 - 1, -(2**63)


def opaque(value):
    """A value that Numba cannot follow."""
    return eval("value")


def value_of(v):
    return v


def opaque_value_of(v):
    return opaque(v)


def add(a, b):
    return a + b


def subtract(a, b):
    return a - b


def multiply(a, b):
    return a * b


def negative(a):
    return -a


def opaque_negative(a):
    return opaque(-a)


LIFTS = {"compiled": value_of, "interpreted": opaque_value_of}
both_ways = pytest.mark.parametrize("lift", LIFTS.values(), ids=LIFTS)


def own(lift, combine=add, **options):
    return wr.aggregate(
        lift=lift, combine=combine, columns=["v"], **{"identity": 0, "name": "mine"} | options
    )


def query(aggregate, windows=None, **parts):
    return wr.query(
        time="ts", windows=windows or {"w": wr.tumbling(10)}, aggregates={"a": aggregate}, **parts
    )


def table(values, type_=None):
    return pa.table({"ts": range(len(values)), "v": pa.array(values, type_ or pa.int64())})


@both_ways
@pytest.mark.parametrize(
    ("combine", "values", "shown"),
    [
        (add, [2**62, 2**62], "9223372036854775808"),
        (add, [-(2**62), -(2**62), -1], "-9223372036854775809"),
        (multiply, [3, 2**62], "13835058055282163712"),
        (subtract, [HIGHEST, 2], "-9223372036854775809"),
    ],
    ids=["positive", "negative", "multiplied", "subtracted"],
)
def test_an_overflow_names_function_row_and_values_and_changes_nothing(lift, combine, values, shown):
    identity = 1 if combine is multiply else 0
    operator = query(own(lift, combine, identity=identity)).operator()
    operator.process(table(values[:1]))
    before = operator.snapshot()
    with pytest.raises(wr.UserFunctionError) as caught:
        operator.process(table(values[1:]))
    assert f"combine function '{combine.__name__}' of 'mine' raised OverflowError" in str(caught.value)
    assert f"at row {len(values) - 2} ({values[-1]}): {shown} does not fit in 64 bits" in str(caught.value)
    assert operator.snapshot() == before


@both_ways
def test_the_row_is_that_of_the_key_that_overflows(lift):
    rows = pa.table({"ts": [0, 0, 0, 0], "v": [2**62, 2**62, 2**61, 2**62], "k": [1, 2, 1, 2]})
    with pytest.raises(wr.UserFunctionError, match=r"at row 3 \(4611686018427387904\)"):
        query(own(lift), key="k").run(rows)


@pytest.mark.parametrize("lower", [negative, opaque_negative], ids=LIFTS)
def test_a_lower_that_overflows_is_named_with_its_window(lower):
    with pytest.raises(wr.UserFunctionError, match=r"raised OverflowError in window 'w' \[0, 10\).*64 bits"):
        query(own(value_of, lower=lower)).run(table([LOWEST]))


@both_ways
def test_a_lift_that_overflows_is_named_with_its_row(lift):
    def squared(v):
        return lift(v) * v

    with pytest.raises(wr.UserFunctionError, match=r"lift function 'squared'.*at row 1 \(4294967296\)"):
        query(own(squared)).run(table([5, 2**32]))


@both_ways
def test_slices_that_overflow_only_together_are_named_with_their_window(lift):
    windows = {"w": wr.tumbling(1), "v": wr.tumbling(2)}
    with pytest.raises(wr.UserFunctionError, match="raised OverflowError in window 'v'"):
        query(own(lift), windows).run(table([2**62, 2**62]))


@both_ways
def test_the_window_is_that_which_overflows_where_events_last(lift):
    """What goes on is added up and taken out from slice to slice, far beyond the first window."""
    rows = pa.table({"s": [3, 12, 32, 45], "e": [5, 24, 65, 58], "v": [1, 2, 2**62, 2**62]})
    asked = wr.query(
        time=wr.span("s", "e"),
        windows={"w": wr.tumbling(10)},
        aggregates={"a": own(lift, invert=subtract)},
    )
    assert asked.run(rows.slice(0, 3))["a"].to_pylist() == [1, 2, 2, *[2**62] * 4]
    with pytest.raises(wr.UserFunctionError, match=r"raised OverflowError in window 'w' \[40, 50\)"):
        asked.run(rows)


@both_ways
def test_slices_that_no_window_holds_together_may_overflow(lift):
    aggregate = own(lift, invert=subtract)
    values = [2**60] * 100
    result = query(aggregate, {"w": wr.sliding(4, every=1)}).run(table(values))
    assert [r["a"] for r in result.to_pylist() if 0 <= r["start"] <= 96] == [2**62] * 97


@both_ways
@given(st.lists(st.one_of(st.integers(LOWEST, HIGHEST), st.integers(-9, 9)), min_size=1, max_size=6))
def test_an_aggregate_agrees_with_integers_without_limit_or_raises_where_they_leave_64_bits(lift, values):
    def fold(combine, start):
        found = [start]
        for value in values:
            found.append(combine(found[-1], value))
        return found

    for combine, start in ((add, 0), (multiply, 1)):
        made = fold(combine, start)
        run = query(own(lift, combine, identity=start)).run
        if all(LOWEST <= x <= HIGHEST for x in made):
            assert run(table(values))["a"].to_pylist() == [reduce(combine, values, start)]
        else:
            with pytest.raises(wr.UserFunctionError, match="OverflowError"):
                run(table(values))


@both_ways
def test_integers_come_back_as_integers(lift):
    result = query(own(lift)).run(table([2**60, 1]))
    assert result["a"].type == pa.int64()
    assert result["a"].to_pylist() == [2**60 + 1]


@pytest.mark.parametrize("lower", [lambda a: a > 0, lambda a: opaque(a > 0)], ids=LIFTS)
def test_booleans_come_back_as_booleans(lower):
    windows = {"w": wr.tumbling(1)}
    for lift in LIFTS.values():
        result = query(own(lift, lower=lower), windows).run(table([5, -5, None]))
        assert result["a"].type == pa.bool_()
        assert result["a"].to_pylist() == [True, False, None]


def either(a, b):
    return a or b


def both(a, b):
    return a and b


def odd(a, b):
    return a ^ b


@both_ways
@pytest.mark.parametrize(
    ("combine", "identity", "expected"),
    [
        (either, False, [True, True, False]),
        (either, 0, [True, True, False]),
        (both, True, [True, False, False]),
        (max, False, [True, True, False]),
        (odd, False, [False, True, False]),
        (add, 0, [2, 1, 0]),
        (add, False, [2, 1, 0]),
    ],
)
@pytest.mark.parametrize("column", ["booleans", "numbers"])
def test_an_aggregate_of_booleans_gives_booleans(lift, combine, identity, expected, column):
    """In windows of every engine, from a column of booleans and from a comparison."""
    of_column = {"booleans": lift, "numbers": lambda v: lift(v > 3)}[column]
    values = {"booleans": [True, True, None, True, False, False], "numbers": [4, 9, None, 5, 3, -7]}[column]
    aggregate = own(of_column, combine, identity=identity)
    rows = pa.table({"ts": [0, 1, 2, 10, 11, 20], "v": values})
    q = query(aggregate, {"of time": wr.tumbling(10), "session": wr.session(5), "rows": wr.tumbling(rows=3)})
    operator = q.operator(lateness=5)
    operator.process(rows.slice(0, 4))
    operator = q.restore(operator.snapshot())
    operator.process(rows.slice(4))
    result = operator.finish()
    assert result.schema.field("a").type == (pa.int64() if combine is add else pa.bool_())
    answers = {
        name: result.filter(pc.field("window") == name)["a"].to_pylist() for name in ("of time", "session")
    }
    assert answers == {"of time": expected, "session": expected}
    assert Rolling(aggregate, rows=2).process(rows.slice(0, 2)).to_pylist() == expected[:1]


@both_ways
def test_booleans_can_be_taken_out_again(lift):
    aggregate = own(lift, odd, identity=False, invert=odd)
    rows = pa.table({"ts": range(100), "v": [i % 7 == 0 for i in range(100)]})
    result = query(aggregate, {"w": wr.sliding(20, every=1)}).run(rows)
    whole = [r for r in result.to_pylist() if 0 <= r["start"] <= 80]
    assert [r["a"] for r in whole] == [sum(i % 7 == 0 for i in range(s, s + 20)) % 2 == 1 for s in range(81)]


@both_ways
@pytest.mark.parametrize(
    "combine",
    [
        np.add,
        lambda a, b: np.add(a, b),
        lambda a, b: np.subtract(a, np.negative(b)),
        lambda a, b: np.multiply(a, b) if a else b,
        lambda a, b: np.power(a, 2) + b,
        lambda a, b: np.left_shift(a, 2) + b,
    ],
)
def test_what_numpy_makes_of_integers_raises_too(lift, combine):
    with pytest.raises(
        wr.UserFunctionError, match=r"raised OverflowError at row 1 .* does not fit in 64 bits"
    ):
        query(own(lift, combine)).run(table([2**62, 2**62]))
    assert query(own(lift, combine)).run(table([3])).schema.field("a").type == pa.int64()


@both_ways
@pytest.mark.parametrize("total", [lambda x: x.sum(), np.sum, np.prod, lambda x: x.cumsum()[-1]])
def test_a_sum_that_nobody_can_check_is_refused(lift, total):
    def combine(a, b):
        return total(np.array([a, b]))

    total = numba.njit(total) if total not in (np.sum, np.prod) else total
    with pytest.raises(
        wr.QueryError, match=r"'combine' .* of an array of integers would wrap around in silence"
    ):
        query(own(lift, combine)).run(table([1, 2]))


def test_a_sum_that_nobody_can_check_is_refused_in_the_step_of_a_window():
    def step(state, v):
        return np.array([state, v]).sum(), 1, 1 if state > 0 else 0

    with pytest.raises(wr.QueryError, match=r"'step' cannot be used: the sum of an array of integers"):
        query(wr.sum("v"), {"w": wr.deterministic(step, state=0)}).run(table([1, 2]))


@pytest.mark.parametrize("lower", [lambda a: a / 2, lambda a: opaque(a / 2)], ids=LIFTS)
def test_floats_stay_floats(lower):
    for lift in LIFTS.values():
        assert query(own(lift, lower=lower)).run(table([3])).column("a").to_pylist() == [1.5]
        assert query(own(lift)).run(table([0.5, 1.0], pa.float64())).column("a").to_pylist() == [1.5]
        assert query(own(lift, identity=0.0)).run(table([1, 2])).schema.field("a").type == pa.float64()


def test_an_interpreted_function_that_turns_to_floats_is_told_what_to_do():
    def halved(v):
        return opaque(v) if v < 5 else v / 2

    told = r"'halved' of 'mine' at row 1 .* returned the partial 2.5.*begin with 0.0"
    with pytest.raises(wr.UserFunctionError, match=told):
        query(own(halved)).run(table([1, 5]))


@both_ways
@pytest.mark.parametrize("store", ["two_stacks_lite", "subtract_on_evict"])
def test_a_rolling_window_raises_too_and_gives_integers(lift, store):
    aggregate = own(lift, invert=subtract)
    rolling = Rolling(aggregate, rows=2, store=store)
    assert rolling.process(table([2**60, 1])).to_pylist() == [2**60 + 1]
    with pytest.raises(wr.UserFunctionError, match="raised OverflowError"):
        rolling.process(table([2**62, 2**62]))
    assert rolling.process(table([5])).to_pylist() == [6]


@both_ways
@pytest.mark.parametrize("spec", ["tumbling, count(2)", "sliding, count(2), count(2)"])
def test_a_policy_window_raises_too_and_gives_integers(lift, spec):
    make = wp.TumblingWindow if spec.startswith("tumbling") else wp.SlidingWindow
    window = make(spec, table([1]).schema, aggregates={"a": own(lift)})
    assert window.insert(table([2**60, 1])).answers["a"].to_pylist() == [2**60 + 1]
    with pytest.raises(wr.UserFunctionError, match="combine function 'add' of 'mine' raised OverflowError"):
        window.insert(table([2**62, 2**62]))
    assert window.insert(table([2, 3])).answers["a"].to_pylist() == [5]


def test_functions_that_the_user_compiled_raise_too():
    aggregate = own(numba.njit(value_of), numba.njit(add))
    with pytest.raises(
        wr.UserFunctionError, match="combine function 'add' of 'mine' raised OverflowError at row 1"
    ):
        query(aggregate).run(table([2**62, 2**62]))


def test_an_interpreted_lower_that_turns_to_floats_is_told_what_to_do():
    def halved(a):
        return opaque(a) if a < 5 else a / 2

    told = (
        r"lower function 'halved' of 'mine' in window 'w' \[0, 10\): returned the result 2.5, and an integer"
    )
    with pytest.raises(wr.UserFunctionError, match=told):
        query(own(value_of, lower=halved)).run(table([5]))


def test_a_negative_zero_as_the_identity_is_not_mistaken_for_a_zero():
    def lift(x):
        return x

    def plus(a, b):
        return a + b

    table = pa.table({"t": [1, 2, 3], "x": [-0.0, None, -0.0]})
    for nothing, sign in ((0.0, 1.0), (-0.0, -1.0)):
        own = wr.aggregate(columns="x", lift=lift, combine=plus, identity=nothing)
        found = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"a": own}).run(table)["a"]
        assert math.copysign(1.0, found[0].as_py()) == sign
