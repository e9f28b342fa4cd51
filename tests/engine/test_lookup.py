"""The lookup table finds the place that a binary search finds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from windrow.engine.aligned.lookup import first_not_before, lookup

INTEGERS = st.integers(-1000, 1000) | st.sampled_from([-(2**62), 2**62, -(2**40), 2**40])
FLOATS = st.floats(-1e6, 1e6) | st.sampled_from([-1e300, 1e300, 1e-300, 0.1])


def check(values, points, dtype):
    values = np.unique(np.array(values, dtype))
    table = lookup(values, values[0], values[-1])
    for point in np.array([*points, *values.tolist()], dtype):
        assert first_not_before(values, point, *table) == np.searchsorted(values, point)


@examples(150)
@given(st.lists(INTEGERS, min_size=1, max_size=50), st.lists(INTEGERS, max_size=20))
def test_integers(values, points):
    check(values, points, np.int64)


@examples(150)
@given(st.lists(FLOATS, min_size=1, max_size=50), st.lists(FLOATS, max_size=20))
def test_floats(values, points):
    check(values, points, np.float64)


def test_values_at_both_ends_of_int64():
    check([-(2**63), -(2**63) + 1, 0, 2**63 - 2, 2**63 - 1], [-5, 5, 2**62], np.int64)


def test_many_values_bunched_at_one_end():
    check([*range(5000), 10**15], [-1, 2500, 10**14, 10**16], np.int64)
