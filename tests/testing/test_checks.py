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
    if set(AGGREGATES[name][1].values()) == {"bool"}:
        check_aggregate(NUMERIC[name], st.tuples(st.booleans()), types=[pa.bool_()], examples=40)
    else:
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


def test_a_combine_that_is_wrong_only_for_what_it_has_made_itself_is_found():
    def add(a, b):
        return a[0] + b[0], a[1] - b[1] if a[0] > 2 and b[0] > 2 else a[1] + b[1]

    with pytest.raises(AssertionError, match=r"combine is not (associative|commutative)"):
        check_aggregate(wr.aggregate(lift=lambda x: (1, x), combine=add, identity=(0, 0)))


def test_integers_must_agree_to_the_last_one():
    def add(a, b):
        return a + b + (1 if a > 1_000_000_000 and b > 1_000_000_000 else 0)

    with pytest.raises(AssertionError, match="combine is not associative"):
        check_aggregate(
            wr.aggregate(lift=lambda x: x, combine=add, identity=0),
            st.sampled_from([600_000_000, 1_500_000_000]),
        )


def test_partials_of_many_events_may_differ_by_their_rounding():
    aggregate, _ = AGGREGATES["covariance"]
    large = st.floats(-1e6, 1e6)
    check_aggregate(aggregate, st.tuples(large, large), types=[pa.float64()] * 2)


@pytest.mark.parametrize(
    ("functions", "says"),
    [
        ({"combine": lambda a, b: a // b}, r"combine\(0, 0\) raised ZeroDivisionError"),
        ({"lift": lambda x: 1 // x}, r"lift\(0\) raised ZeroDivisionError"),
        ({"lower": lambda a: 1 // (a // 10**9)}, r"lower\(\d+\) raised ZeroDivisionError"),
        (
            {"combine": lambda a, b: {"sum": a + b}},
            r"is \{'sum': 0\}, which is no partial: the identity is 0",
        ),
        ({"combine": lambda a, b: (a, b)}, r"combine\(0, 0\) is \(0, 0\), which is no partial"),
    ],
)
def test_functions_that_raise_or_give_no_partial_are_found_with_what_they_were_given(functions, says):
    given = {
        "lift": lambda x: x,
        "combine": lambda a, b: a + b * (1 + a % 2),
        "identity": 0,
        "columns": ["x"],
    }
    with pytest.raises(AssertionError, match=says):
        check_aggregate(wr.aggregate(**(given | functions)))


def test_what_is_no_aggregate_is_refused():
    with pytest.raises(wr.QueryError, match=r"an aggregate is needed, .* not 3"):
        check_aggregate(3)


def test_an_inverse_is_refused_where_the_order_matters():
    with pytest.raises(wr.QueryError, match=r"invert .* commutative=False .* leave out one of the two"):
        wr.aggregate(
            lift=lambda x: (x % 10, 10),
            combine=lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
            invert=lambda t, b: ((t[0] - b[0]) // b[1], t[1] // b[1]),
            identity=(0, 1),
            lower=lambda a: a[0],
            commutative=False,
        )


def test_an_inverse_that_does_not_undo_is_found():
    wrong = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: a + b, invert=lambda a, b: a + b, identity=0, name="wrong"
    )
    with pytest.raises(AssertionError, match=r"wrong\(x\): invert does not undo combine"):
        check_aggregate(wrong)
