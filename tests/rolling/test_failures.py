"""Calls that fail leave all as it was, and to be able to costs no more than the call takes in. Interpreted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import interpreted
from profiles import examples

import windrow as wr
from windrow.rolling import Rolling, Several, counts, held, periods, rings
from windrow.stores import STORES


@pytest.fixture(autouse=True)
def _without_compiler(monkeypatch):
    monkeypatch.setattr(held, "compiled", interpreted)


def lift(x):
    if x == 99:
        raise ValueError("ninety-nine")
    return x, x


def later(a, b):
    """The first of all, and the last."""
    if a[1] == 98 and b[0] == 98:
        raise ValueError("twice ninety-eight")
    return (a[0] if a[0] >= 0 else b[0]), (b[1] if b[1] >= 0 else a[1])


ENDS = wr.aggregate(
    lift=lift,
    combine=later,
    lower=lambda a: a[0] * 100 + a[1],
    identity=(-1, -1),
    columns=["x"],
    commutative=False,
)
ANY_ORDER = [name for name, store in STORES.items() if store.needs is None]
VALUES = st.one_of(st.none(), st.integers(0, 5), st.sampled_from([98, 99]))
BATCHES = st.lists(st.lists(VALUES, min_size=1, max_size=25), max_size=8)


def table(values, first=0):
    times = np.cumsum([1 + (v or 0) % 3 for v in values]) + first
    return pa.table({"t": pa.array(times, pa.int64()), "x": pa.array(values, pa.int64())})


def check(make, batches):
    """A window that sees calls fail answers as one that sees only those that do not."""
    window, first = make(), 0
    passed = []
    for values in batches:
        batch = table(values, first)
        try:
            got = window.process(batch)
        except wr.UserFunctionError:
            continue
        passed.append((batch, got))
        first = batch["t"][-1].as_py()
    other = make()
    for batch, got in passed:
        assert other.process(batch) == got


@pytest.mark.parametrize("store", ANY_ORDER)
@examples(30)
@given(batches=BATCHES, rows=st.integers(1, 20), every=st.integers(1, 3))
def test_a_call_that_fails_leaves_windows_of_rows_as_they_were(store, batches, rows, every):
    check(lambda: Rolling(ENDS, rows=rows, every=every, store=store), batches)


@pytest.mark.parametrize("store", ANY_ORDER)
@examples(30)
@given(batches=BATCHES, period=st.integers(1, 30), every=st.integers(1, 5))
def test_a_call_that_fails_leaves_windows_of_time_as_they_were(store, batches, period, every):
    check(lambda: Rolling(ENDS, time="t", period=period, every=every, store=store), batches)


@examples(60)
@given(batches=BATCHES, rows=st.lists(st.integers(1, 30), min_size=1, max_size=3))
def test_a_call_that_fails_leaves_several_windows_as_they_were(batches, rows):
    check(lambda: Several(ENDS, rows=rows), batches)


WINDOWS = {
    "an exact sum": lambda: Rolling(wr.sum("x"), rows=1_000),
    "functions of one's own": lambda: Rolling(ENDS, rows=1_000),
    "slices": lambda: Rolling(ENDS, rows=4_000, every=4),
    "time": lambda: Rolling(ENDS, time="t", period=1_000, every=1),
    "several": lambda: Several(ENDS, rows=[1_000, 1_500]),
    "daba": lambda: Rolling(ENDS, rows=1_000, store="daba_lite"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_short_call_copies_about_as_much_as_it_takes_in(name, monkeypatch):
    copied = []

    def counting(arrays, where=rings.ALL):
        arrays = list(arrays)
        copied.append(sum(array[part].size for array in arrays for part in where))
        return rings.saved(arrays, where)

    for module in (held, counts, periods):
        monkeypatch.setattr(module, "saved", counting)
    window = WINDOWS[name]()
    values = [None, *range(5)] * 400
    window.process(table(values))
    copied.clear()
    for call in range(1_000):
        window.process(table([3, None], 10_000 + 10 * call))
    assert sum(copied) / 1_000 < 100
