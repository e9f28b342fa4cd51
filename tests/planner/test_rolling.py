"""The store of a rolling window: which ones are looked at, and which one costs least."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow.planner.rolling import LEAST_FOR_TWO_THREADS, estimates


@given(
    slices=st.integers(1, 10**6),
    exact=st.booleans(),
    row_by_row=st.booleans(),
    processors=st.integers(1, 4),
)
def test_the_cheapest_comes_first_of_those_that_can_do_it(slices, exact, row_by_row, processors):
    ranked = estimates(slices, exact=exact, row_by_row=row_by_row, processors=processors)
    costs = [estimate.nanoseconds for estimate in ranked]
    stores = {estimate.store for estimate in ranked}
    assert costs == sorted(costs)
    assert ("subtract_on_evict" in stores) == exact
    assert ("sba" in stores) == row_by_row
    assert ("pba" in stores) == (row_by_row and processors > 1 and slices >= LEAST_FOR_TWO_THREADS)


def best(slices, *, exact=False, row_by_row=True, processors=2, width=1):
    ranked = estimates(slices, exact=exact, row_by_row=row_by_row, processors=processors, width=width)
    return ranked[0].store


def test_short_windows_have_two_stacks_long_ones_chunks_and_very_long_ones_a_second_thread():
    stores = [best(slices) for slices in (2, 8, 64, LEAST_FOR_TWO_THREADS)]
    assert stores == ["two_stacks_lite", "two_stacks_lite", "sba", "pba"]
    assert best(LEAST_FOR_TWO_THREADS, processors=1) == "sba"


def test_what_has_an_exact_inverse_is_subtracted_whatever_the_window():
    assert {best(slices, exact=True) for slices in (4, 64, 10**6)} == {"subtract_on_evict"}


def test_wide_partials_cost_more_and_a_window_beyond_the_cache_has_chunks():
    one, three = (
        {
            e.store: e.nanoseconds
            for e in estimates(1_000, exact=False, row_by_row=True, processors=1, width=w)
        }
        for w in (1, 3)
    )
    assert all(three[store] > one[store] for store in one)
    assert best(8, width=3) == "two_stacks_lite"
    assert best(50_000, width=3, processors=1) == "sba"
