"""What a store says it will write is all that it writes, and not much more than it must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import PlainQueue
from profiles import examples

from windrow.rolling.rings import parts
from windrow.stores import STORES

TELLING = [store for store in STORES.values() if store.touched is not None]


def add(a: str, b: str) -> str:
    return a + b


def take_out(total: str, first: str) -> str:
    return total.removeprefix(first)


@pytest.mark.parametrize("store", TELLING, ids=lambda store: store.name)
@examples(150)
@given(
    capacity=st.integers(1, 40),
    calls=st.lists(st.lists(st.sampled_from("iiieee?"), max_size=30), max_size=12),
    unused=st.integers(0, 3),
)
def test_no_other_cell_is_written_by_so_many_calls(store, capacity, calls, unused):
    queue = PlainQueue(store, capacity, "", add, take_out)
    held = came = 0
    for call in calls:
        cells = queue._cells
        before = list(cells)
        ranges = store.touched(queue._state, call.count("i") + unused, call.count("e") + unused)
        for step in call:
            if step == "i" and held < capacity:
                queue.insert(chr(65 + came % 26))
                held, came = held + 1, came + 1
            elif step == "e" and held:
                queue.evict()
                held -= 1
            elif step == "?":
                queue.query()
        written = {i for i in range(len(cells)) if cells[i] is not before[i]}
        allowed = {i for part in parts(len(cells), ranges) for i in range(len(cells))[part]}
        assert written <= allowed


@pytest.mark.parametrize("store", TELLING, ids=lambda store: store.name)
def test_a_short_call_is_said_to_write_little_on_average(store):
    queue = PlainQueue(store, 256, "", lambda a, b: "x", lambda a, b: "x")
    said = []
    for row in range(2_000):
        evicts = int(row >= 256)
        ranges = store.touched(queue._state, 1, evicts)
        said.append(sum(high - low for low, high in ranges))
        if evicts:
            queue.evict()
        queue.insert("x")
    assert sum(said[256:]) / len(said[256:]) < 16
