"""Windows of several lengths in one pass give what each of them gives alone."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import interpreted

import windrow as wr
from windrow.errors import QueryError
from windrow.rolling import Rolling, answering, held
from windrow.rolling.multi_window import Several, groups
from windrow.stores.chunks import chunk_of_rows

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=5)
VALUES = st.lists(st.none() | st.integers(-99, 99), max_size=80)


@pytest.fixture
def without_compiler(monkeypatch):
    monkeypatch.setattr(held, "compiled", interpreted)


def one_by_one(aggregate, sizes, parts):
    found = []
    for size in sizes:
        window = Rolling(aggregate, rows=size, store="lazy")
        found.append([a for part in parts for a in window.process(part).to_pylist()])
    return found


def together(aggregate, sizes, parts):
    windows = Several(aggregate, rows=sizes)
    found = [windows.process(part) for part in parts]
    return [[a for part in found for a in part[k].to_pylist()] for k in range(len(sizes))]


def parts_of(values, cuts):
    edges = [0, *sorted(min(c, len(values)) for c in cuts), len(values)]
    return [pa.table({"x": pa.array(values[a:b], pa.int64())}) for a, b in itertools.pairwise(edges)]


@pytest.mark.usefixtures("without_compiler")
@pytest.mark.parametrize("aggregate", [wr.max("x"), wr.sum("x"), wr.first("x"), wr.collect("x"), wr.count()])
@given(values=VALUES, sizes=SIZES, cuts=st.lists(st.integers(0, 80), max_size=3))
def test_each_length_has_the_answers_that_it_has_alone(aggregate, values, sizes, cuts):
    parts = parts_of(values, cuts)
    assert together(aggregate, sizes, parts) == one_by_one(aggregate, sizes, parts)


def test_compiled_and_long():
    values = np.random.default_rng(0).integers(0, 10**6, 5000).tolist()
    sizes = [100, 1, 2048, 101, 700, 3]
    parts = parts_of(values, [1234, 1235, 4000])
    assert together(wr.max("x"), sizes, parts) == one_by_one(wr.max("x"), sizes, parts)


@given(sizes=SIZES)
def test_every_size_is_in_a_group_and_no_group_has_more_chunks_between_than_rows_in_one(sizes):
    found = groups(sizes)
    assert sorted(size for group in found for size in group) == sorted(set(sizes))
    assert all(group[-1] <= max(group[0], chunk_of_rows(group[0]) ** 2) for group in found)


def test_a_size_must_be_a_positive_number():
    with pytest.raises(QueryError, match="rows must be between 1 and"):
        Several(wr.max("x"), rows=[3, 0])


def test_a_sum_that_overflows_in_one_length_is_refused_for_all():
    windows = Several(wr.sum("x"), rows=[1, 40])
    good, bad = (pa.table({"x": [value] * 30}) for value in (1, 2**62))
    before = windows.process(good)
    with pytest.raises(wr.DataError, match="40 rows that end with row 9 overflows"):
        windows.process(bad)
    assert [len(answers) for answers in before] == [30, 0]
    assert [answers.to_pylist() for answers in windows.process(good)] == [[1] * 30, [40] * 21]


@pytest.mark.parametrize("aggregate", [wr.max("x"), wr.sum("x"), wr.variance("x")], ids=str)
def test_answers_that_the_loop_makes_itself_are_the_same(aggregate, monkeypatch):
    column = np.random.default_rng(8).integers(-50, 50, 700)
    sizes, cuts = [5, 7, 30, 100, 260], [3, 90, 91, 400]

    def found():
        windows = Several(aggregate, rows=sizes)
        return [windows.process(pa.table({"x": part})) for part in np.split(column, cuts)]

    apart = found()
    monkeypatch.setattr(answering, "LEAST_ANSWERS", 1)
    assert found() == apart


def test_a_sum_that_does_not_fit_is_named_where_the_loop_makes_the_answers(monkeypatch):
    monkeypatch.setattr(answering, "LEAST_ANSWERS", 1)
    windows, other = (Several(wr.sum("x"), rows=[2, 40]) for _ in range(2))
    before, after = pa.table({"x": range(100)}), pa.table({"x": range(50)})
    assert windows.process(before) == other.process(before)
    with pytest.raises(wr.DataError, match=r"row 1, .* the 2 rows that end with row 1 overflows int64"):
        windows.process(pa.table({"x": [2**62, 2**62, 1]}))
    assert windows.process(after) == other.process(after)
