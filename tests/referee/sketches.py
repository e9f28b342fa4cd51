"""The referee of approximate aggregates: the exact answer, and the error that a sketch may make.

A Bloom filter has no exact
answer of its own, so the oracle gives an empty one and judges by asking the other for its values.
"""

from __future__ import annotations

import math
from typing import Any

from tests.referee.reference import Reference, Rows, column, exact_sum, order
from tests.referee.tolerance import near
from windrow.aggregates.base import Aggregate
from windrow.aggregates.bloom_filter import BloomFilter, might_contain
from windrow.aggregates.histogram import Histogram
from windrow.aggregates.hyperloglog import ApproxDistinct
from windrow.aggregates.kll import KllQuantile
from windrow.aggregates.moment_sketch import Moments
from windrow.aggregates.tdigest import TDigestQuantile
from windrow.testing.compare import same


def _approx_distinct(aggregate: ApproxDistinct, rows: Rows) -> int:
    return len({order(x) for x in column(rows)})


def _accepts_distinct(aggregate: ApproxDistinct, rows: Rows, expected: Any, actual: Any) -> bool:
    """Six standard errors, and one for luck with few values."""
    error = 6 * 1.04 / math.sqrt(2**aggregate.precision)
    return near(expected, actual, 1 + error * expected)


def _ranked(aggregate: KllQuantile | TDigestQuantile, rows: Rows) -> float | None:
    if not rows:
        return None
    ordered = sorted(column(rows), key=order)
    return float(ordered[round(aggregate.q * (len(ordered) - 1))])


def _rank_is_near(q: float, rows: Rows, actual: Any, error: float) -> bool:
    """Whether the ranks at which `actual` could stand come near `q * (n - 1)`."""
    if actual is None or not rows:
        return actual is None and not rows
    numbers = sorted(order(float(x)) for x in column(rows))
    at = order(actual)
    below, not_above = sum(x < at for x in numbers), sum(x <= at for x in numbers)
    wanted, slack = q * (len(numbers) - 1), error * len(numbers) + 1e-6
    return bool(numbers[0] <= at <= numbers[-1] and below - 1 - slack <= wanted <= not_above + slack)


def _accepts_kll(aggregate: KllQuantile, rows: Rows, expected: Any, actual: Any) -> bool:
    return _rank_is_near(aggregate.q, rows, actual, 0.05 * 200 / aggregate.k)


def _accepts_tdigest(aggregate: TDigestQuantile, rows: Rows, expected: Any, actual: Any) -> bool:
    ordinary = all(math.isfinite(x) for x in column(rows))
    if not ordinary and actual is not None and not math.isfinite(actual):
        return True
    return _rank_is_near(aggregate.q, rows, actual, 4 / aggregate.compression)


def _bloom_filter(aggregate: BloomFilter, rows: Rows) -> bytes | None:
    return b"" if rows else None


def _accepts_bloom_filter(aggregate: BloomFilter, rows: Rows, expected: Any, actual: Any) -> bool:
    """No value of the window is denied; of a thousand strangers not many more are let in than promised."""
    if expected is None or actual is None:
        return same(expected, actual)
    if not all(might_contain(actual, x) for x in column(rows)):
        return False
    strangers = [x + 0.5 for x in range(10**9, 10**9 + 1000)]
    let_in = sum(might_contain(actual, x) for x in strangers)
    return len(set(column(rows))) > aggregate.capacity or let_in <= 1000 * aggregate.error * 2 + 20


def _moments(aggregate: Moments, rows: Rows) -> list[float] | None:
    if not rows:
        return None
    numbers = [float(x) for x in column(rows)]
    exponents = range(1, aggregate.k + 1)
    powers = [_power_sum(numbers, i) for i in exponents]
    logs = _logs(numbers)
    more = [float(len(logs)), *(_power_sum(logs, i) for i in exponents)] if aggregate.logs else []
    return [float(len(numbers)), min(numbers, key=order), max(numbers, key=order), *powers, *more]


def _logs(numbers: list[float]) -> list[float]:
    """The logarithms of those that have one."""
    return [math.log(x) for x in numbers if x > 0]


def _power(x: float, exponent: int) -> float:
    """`x**exponent` by repeated multiplication, which overflows to infinity."""
    result = 1.0
    for _ in range(exponent):
        result *= x
    return result


def _power_sum(numbers: list[float], exponent: int) -> float:
    return float(exact_sum([_power(x, exponent) for x in numbers])) if numbers else 0.0


def _accepts_moments(aggregate: Moments, rows: Rows, expected: Any, actual: Any) -> bool:
    if expected is None or actual is None or len(actual) != len(expected):
        return same(expected, actual)
    numbers = [float(x) for x in column(rows)]
    if not all(near(e, a, 1e-15 * abs(e)) for e, a in zip(expected[:3], actual[:3], strict=True)):
        return False
    powers = slice(3, 3 + aggregate.k)
    if not _sums_are_near(numbers, expected[powers], actual[powers]):
        return False
    if not aggregate.logs:
        return True
    positive, *logs = expected[powers.stop :]
    return bool(positive == actual[powers.stop]) and _sums_are_near(
        _logs(numbers), logs, actual[powers.stop + 1 :]
    )


def _sums_are_near(numbers: list[float], expected: list[float], actual: list[float]) -> bool:
    """Whether the sums of powers of some numbers, the first power first, are near enough."""
    for exponent, (want, got) in enumerate(zip(expected, actual, strict=True), start=1):
        sizes = [abs(_power(x, exponent)) for x in numbers]
        overflows = all(map(math.isfinite, numbers)) and math.isinf(sum(sizes))
        bound = 1e-12 * sum(size for size in sizes if math.isfinite(size)) + 1e-300
        if not overflows and not near(want, got, bound):
            return False
    return True


def _histogram(aggregate: Histogram, rows: Rows) -> list[int] | None:
    if not rows:
        return None
    low, high, bins = aggregate.low, aggregate.high, aggregate.bins
    edges = [low + (high - low) * (i / bins) for i in range(bins)] + [high]
    counts = [0] * (bins + 2)
    for x in column(rows):
        counts[bins + 1 if math.isnan(x) else sum(edge <= float(x) for edge in edges)] += 1
    return counts


SKETCHES: dict[type[Aggregate], Reference] = {
    ApproxDistinct: Reference(_approx_distinct, _accepts_distinct),
    BloomFilter: Reference(_bloom_filter, _accepts_bloom_filter),
    Histogram: Reference(_histogram),
    KllQuantile: Reference(_ranked, _accepts_kll),
    Moments: Reference(_moments, _accepts_moments),
    TDigestQuantile: Reference(_ranked, _accepts_tdigest),
}
