"""The length of chunks: what the two theorems promise, and the numbers that the paper names."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.stores.chunks import chunk_of_rows, chunk_of_time

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
