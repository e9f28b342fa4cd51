"""Counters at the bounds of 64 bits, and what texts say of aggregates."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

import windrow as wr

LEAST, MOST = -(2**63), 2**63 - 1


def over_all(aggregate: wr.Aggregate, values: list[float]) -> object:
    asked = wr.query(time="t", windows={"w": wr.tumbling(100)}, aggregates={"a": aggregate})
    return asked.run({"t": list(range(len(values))), "x": values})["a"][0].as_py()


@pytest.mark.parametrize(
    ("values", "grown"),
    [
        ([0, MOST], MOST),
        ([-1, MOST - 1], MOST),
        ([0, MOST, -1], MOST - 1),
        ([0, MOST, LEAST, -5], MOST + LEAST + (-5 - LEAST)),
        ([LEAST, -1], MOST),
        ([LEAST, LEAST], 0),
    ],
)
def test_an_increase_that_fits_64_bits_is_exact(values: list[int], grown: int) -> None:
    assert over_all(wr.increase("x"), values) == grown


@pytest.mark.parametrize(
    "values",
    [[-7 * 10**18, 7 * 10**18], [LEAST, MOST], [0, MOST, 0, 1], [0, -(2**62), -(2**62) - 1, -(2**62) - 2]],
)
def test_an_increase_beyond_64_bits_is_refused(values: list[int]) -> None:
    grown = sum(now if now < before else now - before for before, now in pairwise(values))
    assert not LEAST <= grown <= MOST
    with pytest.raises(wr.DataError, match=rf"{grown}.*increase\(x\) does not fit in 64 bits"):
        over_all(wr.increase("x"), values)


def test_a_shape_whose_powers_are_no_floats_is_unknown() -> None:
    assert math.isnan(over_all(wr.kurtosis("x"), [1e-100, 2e-100, 5e-100]))
    assert over_all(wr.kurtosis("x"), [1e-70, 2e-70, 5e-70]) == pytest.approx(-1.5)


@pytest.mark.parametrize(
    ("aggregate", "text"),
    [
        (wr.concat("s"), "concat(s)"),
        (wr.concat("s", separator=", "), "concat(s, separator=', ')"),
        (wr.covariance("x", "y"), "covariance(x, y)"),
        (wr.covariance("x", "y", ddof=0), "covariance(x, y, ddof=0)"),
        (wr.quantile("x", 0.30000001), "quantile(x, 0.30000001)"),
        (wr.kll_quantile("x", 0.30000001), "kll_quantile(x, 0.30000001, k=200)"),
        (wr.tdigest_quantile("x", 0.30000001), "tdigest_quantile(x, 0.30000001, compression=100)"),
    ],
)
def test_the_text_of_an_aggregate_says_what_makes_it_another_one(aggregate: wr.Aggregate, text: str) -> None:
    assert str(aggregate) == text
