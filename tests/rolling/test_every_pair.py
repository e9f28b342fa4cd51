"""Every store with every aggregate that it may hold: all answers are as good as the referee's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import interpreted
from profiles import examples
from specimens import AGGREGATES

from tests.referee.registry import reference_of
from tests.referee.strategies import batchings, streams
from windrow.errors import QueryError
from windrow.rolling import Rolling, held
from windrow.stores import STORES
from windrow.testing.compare import plain_values

# Compiled together: one that has an inverse, and one that selects. The others differ in arithmetic alone.
COMPILED = ("sum of integers", "last of floats")


@pytest.fixture
def without_compiler(monkeypatch):
    monkeypatch.setattr(held, "compiled", interpreted)


def expected(aggregate, table, size, every):
    """For each window, the rows without a null in the columns of the aggregate."""
    columns = [plain_values(table[name]) for name in aggregate.columns]
    rows = list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
    windows = [rows[end - size : end] for end in range(size, len(rows) + 1, every)]
    return [[row for row in window if all(v is not None for v in row)] for window in windows]


def plain(answers):
    """Answers as plain values; times as ticks, in lists as well."""
    if pa.types.is_list(answers.type) and pa.types.is_temporal(answers.type.value_type):
        answers = answers.cast(pa.list_(pa.int64()))
    return plain_values(answers)


def check(name, table, size, every, batches):
    """What all stores say that take the aggregate; how many these are."""
    aggregate, _ = AGGREGATES[name]
    reference = reference_of(aggregate)
    rows = expected(aggregate, table, size, every)
    wanted = [reference.value(aggregate, window) for window in rows]
    taken = 0
    for store in STORES:
        try:
            rolling = Rolling(aggregate, rows=size, every=every, store=store)
            with np.errstate(all="ignore"):
                parts = [rolling.process(batch) for batch in batches]
        except QueryError:
            continue
        taken += 1
        found = [value for part in parts for value in plain(part)]
        assert len(found) == len(wanted)
        for window, want, got in zip(rows, wanted, found, strict=True):
            assert reference.accepts(aggregate, window, want, got), (store, size, every, window, want, got)
    return taken


def table_of(name, data, *, max_size=24, nulls=True):
    kinds = AGGREGATES[name][1] or {"x": "int"}
    return data.draw(streams(time=pa.int64(), key=(), columns=kinds, max_size=max_size, nulls=nulls))


@pytest.mark.usefixtures("without_compiler")
@pytest.mark.parametrize("name", AGGREGATES)
@examples(4)
@given(data=st.data(), size=st.integers(1, 7), every=st.sampled_from([1, 1, 2, 3, 5]))
def test_every_store_answers_as_the_referee_does(name, data, size, every):
    table = table_of(name, data)
    assert check(name, table, size, every, data.draw(batchings(table))) >= 8


@pytest.mark.parametrize("name", COMPILED)
@examples(6)
@given(data=st.data(), size=st.integers(1, 7), every=st.integers(2, 5))
def test_every_store_answers_as_the_referee_does_when_compiled(name, data, size, every):
    table = table_of(name, data, nulls=False)
    assert check(name, table, size, every, data.draw(batchings(table))) >= 8


@pytest.mark.usefixtures("without_compiler")
@pytest.mark.parametrize("name", ["min of floats", "sum of floats", "argmax", "m4 of strings", "quantile"])
def test_nulls_may_come_when_the_window_has_long_been_full(name):
    kinds = AGGREGATES[name][1]
    full = {"string": ["b", "c"], "float": [1.5, -2.0], "int": [3, 4]}
    late = {"string": ["a", None, "d"], "float": [float("nan"), None, 0.0], "int": [5, None, 1]}
    batches = [pa.table({c: part[kind] for c, kind in kinds.items()}) for part in (full, late)]
    table = pa.concat_tables(batches)
    assert check(name, table, 2, 1, batches) >= 8
