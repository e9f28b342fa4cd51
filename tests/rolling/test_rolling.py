"""Rolling windows at their edges: sizes, batches, bad values, functions that fail."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import interpreted

import windrow as wr
from windrow.compiling.compiler import InterpretedWarning
from windrow.engine.at import answers as at_answers
from windrow.errors import DataError, QueryError, UserFunctionError
from windrow.rolling import Rolling, held
from windrow.stores import STORES
from windrow.testing.compare import same

PLAIN = [store.name for store in STORES.values() if store.needs is None]
FEW = ("lazy", "two_stacks_lite", "daba_lite", "flat_fit")


@pytest.fixture
def without_compiler(monkeypatch):
    monkeypatch.setattr(held, "compiled", interpreted)


def answers(aggregate, values, *, store="two_stacks_lite", type_=None, **window):
    table = pa.table({"x": pa.array(values, type_)})
    return Rolling(aggregate, store=store, **window).process(table).to_pylist()


@pytest.mark.usefixtures("without_compiler")
@pytest.mark.parametrize("store", PLAIN)
@given(values=st.lists(st.integers(-5, 5), max_size=40), size=st.integers(1, 12), every=st.integers(1, 15))
def test_any_size_goes_with_any_slide(store, values, size, every):
    found = answers(wr.max("x"), values, store=store, type_=pa.int64(), rows=size, every=every)
    assert found == [max(values[end - size : end]) for end in range(size, len(values) + 1, every)]


@pytest.mark.parametrize("store", FEW)
def test_a_window_of_one_row_is_that_row(store):
    assert answers(wr.max("x"), [3, None, 1], store=store, rows=1) == [3, None, 1]


@pytest.mark.parametrize("store", FEW)
def test_rows_between_windows_are_left_out(store):
    assert answers(wr.sum("x"), [1, 2, 30, 40, 5, 6, 70], store=store, rows=2, every=4) == [3, 11]


@pytest.mark.parametrize("store", FEW)
def test_a_window_may_end_within_a_slice(store):
    assert answers(wr.sum("x"), list(range(9)), store=store, rows=5, every=3) == [10, 25]


@pytest.mark.parametrize("store", [*FEW, "slick_deque", "flat_fat"])
def test_equal_values_and_nan_are_values_like_others(store):
    assert answers(wr.max("x"), [4.0] * 5, store=store, rows=3) == [4.0] * 3
    found = answers(wr.max("x"), [math.nan] * 4, store=store, rows=3)
    assert same(found, [math.nan] * 2)
    mixed = answers(wr.max("x"), [1.0, math.nan, 2.0, 3.0, 1.0], store=store, rows=2)
    assert same(mixed, [math.nan, math.nan, 3.0, 3.0])
    smallest = answers(wr.min("x"), [math.nan, math.nan, 2.0, math.nan, math.nan], store=store, rows=2)
    assert same(smallest, [math.nan, 2.0, 2.0, math.nan])


@pytest.mark.parametrize("aggregate", [wr.sum("x"), wr.max("x"), wr.median("x"), wr.count("x")], ids=str)
def test_a_window_of_nulls_alone_has_no_answer(aggregate):
    found = answers(aggregate, [None, None, 2], type_=pa.int64(), rows=2)
    assert found == ([0, 1] if str(aggregate) == "count(x)" else [None, 2])


@pytest.mark.parametrize("every", [1, 2])
def test_many_small_batches_are_one_big_one(every):
    values = [5, None, 3, 8, 8, 1, None, None, 4, 2, 7]
    table = pa.table({"x": values})
    whole = Rolling(wr.sum("x"), rows=3, every=every).process(table).to_pylist()
    rolling = Rolling(wr.sum("x"), rows=3, every=every)
    parts = [rolling.process(table.slice(i, 1)) for i in range(len(values))]
    assert [v for part in parts for v in part.to_pylist()] == whole
    assert Rolling(wr.sum("x"), rows=3, every=every).process(table.to_batches(2)).to_pylist() == whole


def test_nothing_comes_of_nothing():
    rolling = Rolling(wr.sum("x"), rows=2)
    assert len(rolling.process([])) == 0
    assert rolling.process(pa.table({"x": pa.array([], pa.int64())})).type == pa.int64()
    assert rolling.process(pa.table({"x": [1]})).to_pylist() == []
    assert rolling.process(pa.table({"x": pa.array([], pa.int64())})).to_pylist() == []
    assert rolling.process(pa.table({"x": [2]})).to_pylist() == [3]
    assert len(rolling.process([])) == 0


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()])
def test_strings_that_come_between_others_change_no_answer(kind):
    rolling = Rolling(wr.min("x"), rows=3, every=2)
    found = []
    for text in ["m", "z", "x", "a", "y", "b", None, "c", "zz"]:
        found += rolling.process(pa.table({"x": pa.array([text], pa.string()).cast(kind)})).to_pylist()
    assert found == ["m", "a", "b", "c"]


@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "3"])
def test_sizes_that_are_no_sizes_are_refused(value):
    with pytest.raises(QueryError, match="rows must be"):
        Rolling(wr.sum("x"), rows=value)
    with pytest.raises(QueryError, match="every must be"):
        Rolling(wr.sum("x"), rows=3, every=0 if value is None else value)


def test_a_missing_column_and_a_new_type_are_refused():
    rolling = Rolling(wr.sum("x"), rows=2)
    with pytest.raises(QueryError, match="'x'"):
        rolling.process(pa.table({"y": [1]}))
    assert rolling.process(pa.table({"x": [1, 2]})).to_pylist() == [3]
    with pytest.raises(QueryError, match="column 'x' was int64 before, and now is double"):
        rolling.process(pa.table({"x": [1.5]}))
    assert rolling.process(pa.table({"x": [3]})).to_pylist() == [5]


@pytest.mark.parametrize("store", ["two_stacks_lite", "subtract_on_evict"])
def test_a_sum_that_overflows_names_its_row_and_leaves_all_as_it_was(store):
    rolling = Rolling(wr.sum("x"), rows=2, store=store)
    assert rolling.process(pa.table({"x": [1, 2]})).to_pylist() == [3]
    with pytest.raises(DataError) as refused:
        rolling.process(pa.table({"x": [5, 2**62, 2**62, 1]}))
    assert (refused.value.column, refused.value.row, refused.value.value) == ("x", 2, 2**63)
    assert "the sum of the 2 rows that end with row 2 overflows int64" in str(refused.value)
    assert rolling.process(pa.table({"x": [10, 20]})).to_pylist() == [12, 30]


def test_a_sum_may_pass_through_what_does_not_fit():
    big = 2**63 - 1
    assert answers(wr.sum("x"), [big, big, -big, -big], rows=4, every=2) == [0]


def test_a_value_beyond_64_bits_is_refused():
    rolling = Rolling(wr.max("x"), rows=1)
    table = pa.table({"x": pa.array([1, 2**63], pa.uint64())})
    with pytest.raises(DataError, match="row 1, value 9223372036854775808: does not fit in 64 bits"):
        rolling.process(table)
    assert rolling.process(table.slice(0, 1)).to_pylist() == [1]


def test_a_user_function_that_fails_names_the_row_and_leaves_all_as_it_was():
    def inverse(x):
        if x == 0:
            raise ValueError("no inverse of zero")
        return 1.0 / x

    total = wr.aggregate(lift=inverse, combine=lambda a, b: a + b, identity=0.0, name="inverses")
    rolling = Rolling(total, rows=2)
    assert rolling.process(pa.table({"x": [1, 2]})).to_pylist() == [1.5]
    with pytest.raises(UserFunctionError, match=r"lift function 'inverse' of 'inverses' .* at row 2 .0.: no"):
        rolling.process(pa.table({"x": [4, None, 0, 4]}))
    assert rolling.process(pa.table({"x": [4, None]})).to_pylist() == [0.75, 0.25]


def test_a_lower_of_the_user_that_fails_names_the_window():
    def root(a):
        if a < 0:
            raise ValueError("negative")
        return math.sqrt(a)

    total = wr.aggregate(
        lift=lambda x: float(x), combine=lambda a, b: a + b, lower=root, identity=0.0, name="root"
    )
    rolling = Rolling(total, rows=2)
    with pytest.raises(UserFunctionError, match=r"lower function 'root' .* the 2 rows that end with row 2"):
        rolling.process(pa.table({"x": [8, 1, -2]}))
    assert rolling.process(pa.table({"x": [8, 1]})).to_pylist() == [3.0]


def test_what_cannot_be_compiled_runs_interpreted_with_one_warning():
    seen = {}

    def remembered(x):
        seen[x] = True
        return x

    largest = wr.aggregate(lift=remembered, combine=lambda a, b: max(a, b), identity=0, name="largest")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert answers(largest, [3, 1, 2, 0, 5], rows=3) == [3.0, 2.0, 5.0]
        assert answers(largest, [3, 1, 2, None, 5], rows=2, every=2) == [3.0, 2.0]
    assert [w.category for w in said] == [InterpretedWarning]
    assert "lift 'remembered'" in str(said[0].message)
    assert seen


def test_a_user_function_may_make_arrays():
    def through_an_array(x):
        box = np.zeros(2)
        box[0] = x
        return box.sum()

    total = wr.aggregate(lift=through_an_array, combine=lambda a, b: a + b, identity=0.0, name="boxed")
    assert answers(total, [1, 2, 3], rows=2) == [3.0, 5.0]


def test_an_aggregate_that_is_not_commutative_sees_rows_in_order():
    digits = wr.aggregate(
        lift=lambda x: (x, 10),
        combine=lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
        lower=lambda a: a[0],
        identity=(0, 1),
        commutative=False,
        name="digits",
    )
    for store in FEW:
        assert answers(digits, [1, 2, 3, 4, 5], store=store, rows=3) == [123.0, 234.0, 345.0]


def test_long_logs_are_sorted_in_blocks(monkeypatch):
    values = [5, 3, 8, 8, 1, 7, 2, 9, 4, 4, 6]
    wanted = answers(wr.top_k("x", 1), values, rows=5)
    assert wanted[0] == [{"value": 8, "count": 2}]
    monkeypatch.setattr(at_answers, "BLOCK_VALUES", 8)
    assert answers(wr.top_k("x", 1), values, rows=5) == wanted
