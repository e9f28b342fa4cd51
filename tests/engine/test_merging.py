"""Every store merges slices into the same windows, and the one that costs least is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.engine.aligned.cutting import Cells
from windrow.engine.partials import store_for
from windrow.engine.partials.merging import LOOPS
from windrow.engine.windows import ClosedWindows
from windrow.planner.merging import MANY_KEYS, Load, estimates
from windrow.stores import STORES

AGGREGATES = {
    "max": (wr.max("x"), pa.int64()),
    "sum": (wr.sum("x"), pa.int64()),
    "variance": (wr.variance("x"), pa.float64()),
    "sketch": (wr.approx_distinct("x", precision=4), pa.int64()),
}


def filled(aggregate, type_, slices, keys):
    """The partials of so many slices and keys, each of two values."""
    numbers = store_for(aggregate.bind((type_,)), np.dtype(np.int64))
    numbers.repack(np.empty(0, np.int64), slices, keys, slice(None))
    luck = np.random.default_rng(slices * 100 + keys)
    for _ in range(2):
        values = luck.integers(0, 1000, slices * keys)
        inputs = [values.astype(np.float64 if type_ == pa.float64() else np.int64)]
        numbers.fold(Cells(np.arange(slices * keys)), inputs, ())
    return numbers


@st.composite
def windows(draw, slices):
    """Windows over slices: some follow one another, others come in any order."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        begin, end = draw(st.integers(0, slices - 1)), 0
        for _ in range(draw(st.integers(1, 12))):
            end = max(begin + 1, min(slices, end + draw(st.integers(0, 6))))
            found.append((begin, end))
            begin = min(slices - 1, begin + draw(st.integers(0, 4)))
    first, last = (np.array(column, np.int64) for column in zip(*found, strict=True))
    return ClosedWindows(np.zeros(len(found), np.int64), first, last, first, last)


PAIRS = [(store, "sum" if STORES[store].needs == "inverse" else "max") for store in STORES]
PAIRS += [(store, name) for store in LOOPS for name in AGGREGATES if store != "subtract_on_evict"]


@pytest.mark.parametrize(("store", "name"), dict.fromkeys(PAIRS))
@pytest.mark.parametrize("keys", [1, 9])
@given(data=st.data())
def test_every_store_merges_as_lazy_does(store, name, keys, data):
    aggregate, type_ = AGGREGATES[name]
    numbers = filled(aggregate, type_, 24, keys)
    due = data.draw(windows(24))
    slots = np.arange(24)
    numbers.merging.store = "lazy"
    expected = [column.copy() for column in numbers.merge(due, slots, keys)[0]]
    counts = numbers.merge(due, slots, keys)[1].copy()
    numbers.merging.store = store
    fields, n = numbers.merge(due, slots, keys)
    np.testing.assert_array_equal(n, counts)
    for got, wanted in zip(fields, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_windows_that_share_nothing_are_merged_lazily():
    apart = Load(windows=100, covered=1_000, spread=1_000, queued=1_000)
    assert estimates(apart)[0].store == "lazy"


def test_windows_that_overlap_are_merged_by_what_shares_most():
    overlapping = Load(windows=10_000, covered=640_000, spread=10_064, queued=10_064)
    assert estimates(overlapping)[0].store == "subtract_on_evict"
    assert estimates(overlapping, ("lazy", "flat_fat", "two_stacks_lite"))[0].store == "two_stacks_lite"


def test_few_windows_are_merged_by_what_begins_at_once():
    few = Load(windows=15, covered=960, spread=290, queued=290)
    assert estimates(few)[0].store == "lazy"


def test_few_windows_of_large_partials_are_worth_a_queue():
    few = Load(windows=236, covered=15_104, spread=300, queued=300, width=64)
    assert estimates(few, ("lazy", "two_stacks_lite"))[0].store == "two_stacks_lite"


@given(
    slices=st.integers(1, 2_000),
    every=st.integers(1, 100),
    windows=st.integers(1, 5_000),
    keys=st.integers(1, 200),
)
def test_more_keys_never_cost_less(slices, every, windows, keys):
    load = Load(windows, windows * slices, windows * every + slices, windows * every + slices, keys)
    more = {e.store: e.nanoseconds for e in estimates(replace(load, keys=2 * keys))}
    for estimate in estimates(load):
        assert estimate.nanoseconds <= more[estimate.store] or keys < MANY_KEYS <= 2 * keys


def test_windows_of_many_kinds_far_apart_share_a_tree():
    kinds = Load(windows=1_000, covered=256_000, spread=2_000, queued=250_000)
    assert estimates(kinds, ("lazy", "flat_fat", "two_stacks_lite"))[0].store == "flat_fat"


@pytest.mark.parametrize(
    ("store", "aggregate", "words"),
    [
        ("subtract_on_evict", wr.max("x"), "max.x. has no inverse: use slick_deque"),
        ("subtract_on_evict", wr.sum("y"), "a float taken out leaves rounding errors"),
        ("slick_deque", wr.sum("x"), "that of sum.x. makes new ones"),
    ],
)
def test_a_store_that_cannot_do_it_is_refused_in_a_sentence(store, aggregate, words):
    query = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"a": aggregate})
    with pytest.raises(wr.QueryError, match=words):
        query.operator(store=store).process(pa.table({"ts": [1], "x": [1], "y": [1.0]}))


def test_an_unknown_store_is_refused():
    query = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="there is no store 'quick'; choose from lazy"):
        query.operator(store="quick")
