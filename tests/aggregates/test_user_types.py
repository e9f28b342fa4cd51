"""Integers of user functions stay integers where nothing can be tried, and have a sign."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.compiling.compiler import InterpretedWarning

BIG = {7: 2**53 + 1}


def run(aggregate: wr.Aggregate, values: list[int]) -> pa.ChunkedArray:
    q = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"a": aggregate})
    return q.run(pa.table({"t": range(len(values)), "x": values}))["a"]


def test_a_lift_that_fails_for_ones_keeps_the_kind_of_its_identity() -> None:
    total = wr.aggregate(lift=lambda x: BIG[x], combine=lambda a, b: a + b, identity=0)
    with pytest.warns(InterpretedWarning):
        assert run(total, [7, 7]).to_pylist() == [2 * (2**53 + 1)]


def test_a_lower_that_fails_for_ones_makes_integers_of_integers() -> None:
    total = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: a + b, lower=lambda a: BIG[a], identity=0, columns=["x"]
    )
    with pytest.warns(InterpretedWarning):
        assert run(total, [3, 4]).to_pylist() == [2**53 + 1]


def test_an_unsigned_result_is_an_integer_that_fits_or_an_error() -> None:
    doubled = wr.aggregate(
        lift=lambda x: x,
        combine=lambda a, b: a + b,
        lower=lambda a: np.uint64(a) * np.uint64(2),
        identity=0,
        columns=["x"],
    )
    with pytest.warns(InterpretedWarning):
        assert run(doubled, [3, 4]).to_pylist() == [14]
    with pytest.raises(wr.UserFunctionError, match="does not fit in 64 bits"):
        run(doubled, [2**62])


def test_an_identity_beyond_64_bits_is_refused() -> None:
    with pytest.raises(wr.QueryError, match="identity 9223372036854775808 does not fit in 64 bits"):
        wr.aggregate(lift=lambda x: x, combine=lambda a, b: min(a, b), identity=2**63)
