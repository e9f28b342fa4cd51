"""The length of chunks: what the two theorems promise, and the numbers that the paper names."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import PlainQueue

import windrow as wr
from windrow.rolling import Rolling
from windrow.stores.chunks import chunk_of_rows, chunk_of_time
from windrow.stores.pba import PBA, chunk_in
from windrow.stores.sba import SBA

SIZES = st.integers(1, 5000)


@pytest.mark.parametrize(("power", "chunk"), [(5, 17), (10, 513), (17, 65_537), (20, 524_289)])
def test_a_window_that_slides_by_one_has_chunks_of_half_its_length_and_one(power, chunk):
    assert chunk_of_rows(2**power) == chunk == (2**power + 2) // 2


@pytest.mark.parametrize(
    ("size", "slide", "chunk"),
    [(16, 1, 9), (10, 2, 4), (10, 5, 2), (10, 3, 3), (11, 2, 4), (7, 1, 4), (3, 1, 2), (2, 1, 2), (1, 1, 1)],
)
def test_chunks_of_small_windows(size, slide, chunk):
    assert chunk_of_rows(size, slide) == chunk


@given(size=SIZES)
def test_a_slide_of_one_row_is_the_formula_of_the_complexity_analysis(size):
    assert chunk_of_rows(size) == (size + 2) // 2


@given(size=SIZES, slide=st.integers(1, 100))
def test_a_window_covers_one_whole_chunk_and_never_two(size, slide):
    assert max(1, size // slide) // chunk_of_rows(size, slide) == 1


@given(size=SIZES, slide=st.integers(1, 100), combine=st.fractions(Fraction(1, 10**6), 1000))
def test_so_does_a_window_of_time(size, slide, combine):
    assert max(1, size // slide) // chunk_of_time(size, slide, combine) == 1


@given(size=SIZES, slide=st.integers(1, 100), combine=st.floats(1e-9, 1e3))
def test_a_slower_combine_never_makes_chunks_longer(size, slide, combine):
    assert chunk_of_time(size, slide, 2 * combine) <= chunk_of_time(size, slide, combine)


@given(size=SIZES, slide=st.integers(1, 100))
def test_if_combining_takes_no_time_to_speak_of_a_chunk_is_a_window(size, slide):
    assert chunk_of_time(size, slide, 1e-12) == max(1, size // slide)


@given(size=SIZES, slide=st.integers(1, 100))
def test_the_longest_chunk_is_one_whose_lcs_is_ready_in_time(size, slide):
    """Until the first window that begins behind its boundary ends, at least as many rows come as `lcs` has steps."""
    slices, rest = divmod(size, slide)

    def waits(chunk):
        rows = (slices + 1 - chunk) * slide + rest
        return chunk - 1 > rows

    chunk = chunk_of_rows(size, slide)
    assert not waits(chunk) or slices < 2
    assert waits(chunk + 1) or chunk == max(1, slices)


@pytest.mark.parametrize("store", ["sba", "pba"])
def test_rolling_windows_have_the_chunks_of_the_theorems(store):
    for size, every in [(32, 1), (100, 3), (1_000, 100), (7, 9)]:
        window = Rolling(wr.max("x"), rows=size, every=every, store=store)
        window.process(pa.table({"x": [1]}))
        assert chunk_in(window._held.state) == max(1, chunk_of_rows(size, every))
    for period, every in [(3_600, 1), (100, 3), (1_000, 7)]:
        window = Rolling(wr.max("x"), time="t", period=period, every=every, store=store)
        window.process(pa.table({"t": [1], "x": [1]}))
        assert chunk_in(window._periods._held.state) == chunk_of_time(period, every, every)


@given(capacity=st.integers(1, 40), more=st.integers(0, 40), steps=st.lists(st.booleans(), max_size=150))
def test_any_longer_chunk_up_to_the_capacity_will_do(capacity, more, steps):
    chunk = min(capacity, chunk_of_rows(capacity) + more)
    for store in (SBA, PBA):
        chunked = replace(store, create=lambda c, identity, store=store: store.create(c, identity, chunk))
        words, queue = PlainQueue(chunked, capacity, "", lambda a, b: a + b), deque()
        for i, grows in enumerate(steps):
            if grows and len(queue) < capacity:
                queue.append(chr(97 + i % 26))
                words.insert(queue[-1])
            elif queue:
                queue.popleft()
                words.evict()
            assert words.query() == "".join(queue)
