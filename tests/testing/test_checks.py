"""The checks that users run on their own aggregates."""

from __future__ import annotations

import pyarrow as pa
import pytest
from functions import DIGITS
from hypothesis import strategies as st
from specimens import AGGREGATES

import windrow as wr
from windrow.testing import check_aggregate

NUMERIC = {
    name: aggregate for name, (aggregate, kinds) in AGGREGATES.items() if "string" not in kinds.values()
}


@pytest.mark.parametrize("name", sorted(NUMERIC))
def test_the_algebra_of_every_built_in_aggregate_is_what_it_says(name):
    check_aggregate(NUMERIC[name], examples=40)


@pytest.mark.parametrize("name", ["variance", "sum of floats", "weighted mean", "covariance", "correlation"])
def test_the_algebra_holds_for_floats_too(name):
    aggregate, kinds = AGGREGATES[name]
    number = st.floats(-1e3, 1e3)
    types = [pa.float64()] * len(kinds)
    check_aggregate(aggregate, st.tuples(*[number] * len(kinds)), types=types, examples=40)


def test_a_combine_that_depends_on_order_is_found():
    with pytest.raises(AssertionError, match="combine is not commutative"):
        check_aggregate(
            wr.aggregate(
                lift=lambda x: (x, 10),
                combine=lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
                lower=lambda a: a[0],
                identity=(0, 1),
                name="digits",
            )
        )
    check_aggregate(DIGITS)


def test_an_identity_that_is_not_neutral_is_found():
    with pytest.raises(AssertionError, match="the identity is not neutral"):
        check_aggregate(wr.aggregate(lift=lambda x: x, combine=lambda a, b: a + b, identity=1))


def test_a_combine_that_is_not_associative_is_found():
    mean = wr.aggregate(lift=lambda x: (x, 1), combine=lambda a, b: ((a[0] + b[0]) // 2, 1), identity=(0, 1))
    with pytest.raises(AssertionError, match=r"neutral|associative"):
        check_aggregate(mean)


def test_an_inverse_that_does_not_undo_is_found():
    wrong = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: a + b, invert=lambda a, b: a + b, identity=0, name="wrong"
    )
    with pytest.raises(AssertionError, match=r"wrong\(x\): invert does not undo combine"):
        check_aggregate(wrong)
