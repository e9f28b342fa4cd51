"""How far an answer may lie from the referee's: nothing, some ulp, or a stated rounding error.

Values are compared as people would: NaN equals NaN, -0.0 equals 0.0, a null only a null. Where an
aggregate rounds, the bound is derived from the values themselves, because a fixed relative
tolerance is too strict where numbers cancel and too lax everywhere else.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from windrow.testing.compare import same

UNIT = 2.0**-52
Rows = list[tuple[Any, ...]]


def near(expected: Any, actual: Any, bound: float) -> bool:
    """Whether two numbers differ by at most `bound`; infinities, NaN and nulls must be the same."""
    if same(expected, actual):
        return True
    if expected is None or actual is None:
        return False
    return math.isfinite(expected) and math.isfinite(actual) and abs(expected - actual) <= bound


def within_ulps(expected: Any, actual: Any, ulps: float, *, slack: float = 0.0) -> bool:
    """Whether two floats differ by at most `ulps` units in the last place, or by `slack`.

    >>> within_ulps(1.0, 1.0 + 2**-52, 1), within_ulps(1.0, 1.0 + 2**-50, 1)
    (True, False)
    """
    bound = ulps * math.ulp(expected) if isinstance(expected, float) and math.isfinite(expected) else 0.0
    return near(expected, actual, max(bound, slack))


def _magnitude(rows: Rows, position: int = 0) -> float:
    """The sum of absolute values, infinite where it overflows."""
    return sum(abs(float(row[position])) for row in rows if math.isfinite(row[position]))


def float_sum(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """2 ulp of `math.fsum`, while the values cancel by less than 2**100 and do not overflow."""
    if not isinstance(expected, float):
        return same(expected, actual)
    size = _magnitude(rows)
    return math.isinf(size) or within_ulps(expected, actual, 2, slack=size * 2.0**-151)


def mean(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """As the sum, and one ulp for each division (a decimal is divided twice)."""
    if not rows:
        return same(expected, actual)
    size = _magnitude(rows)
    ulps = 4 if isinstance(rows[0][0], Decimal) else 3
    slack = size * 2.0**-151 if isinstance(rows[0][0], float) else 0.0
    return math.isinf(size) or within_ulps(expected, actual, ulps, slack=slack / len(rows))


def geometric_mean(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    return near(expected, actual, 1e-9 * abs(expected or 0.0))


def quantile(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Bit for bit; where a decimal is interpolated, one rounding more."""
    if rows and isinstance(rows[0][0], Decimal) and isinstance(expected, float):
        return within_ulps(expected, actual, 4, slack=2 * UNIT * max(abs(float(x)) for (x,) in rows))
    return same(expected, actual)


def user(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """The grouping of `combine` is free, so floats may round differently."""
    size = sum(_magnitude(rows, i) for i in range(len(aggregate.columns)))
    return near(expected, actual, 1e-9 * (abs(expected or 0.0) + (size if math.isfinite(size) else 0.0)))


def _deviations(rows: Rows, position: int = 0) -> tuple[float, float, float]:
    """Sum of squared deviations, the largest magnitude, and the rounding error of the first."""
    xs = [Fraction(row[position]) for row in rows]
    middle = sum(xs, Fraction(0)) / len(xs)
    squares = _float(sum(((x - middle) ** 2 for x in xs), Fraction(0)))
    top = max(abs(float(row[position])) for row in rows)
    step = 16 * UNIT * top
    return (
        squares,
        top,
        1e-9 * squares + step * math.sqrt(len(xs)) * math.sqrt(squares) + len(xs) * step * step,
    )


def _float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _finite(rows: Rows) -> bool:
    return all(math.isfinite(x) for row in rows for x in row)


def variance(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Exactly 0 where all values are equal; else the rounding error of a mean that is rounded too."""
    if expected is None or not rows or not _finite(rows):
        return same(expected, actual)
    if len({x for (x,) in rows}) == 1:
        return same(expected, actual)
    squares, _, error = _deviations(rows)
    if squares > 1e300:
        return actual is not None and not actual < 1e140
    bound = error / (len(rows) - aggregate.ddof) + 1e-300
    if aggregate.root:
        bound = min(math.sqrt(bound), bound / expected if expected > 0 else math.inf) + 1e-12 * expected
    return near(expected, actual, bound)


def pair(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Rounding errors of both columns; anything where a column hardly varies or squares overflow."""
    if expected is None or not rows or not _finite(rows):
        return same(expected, actual)
    (xx, top_x, error_x), (yy, top_y, error_y) = _deviations(rows), _deviations(rows, 1)
    if max(xx, yy, top_x * top_y) > 1e290:
        return True
    step = 16 * UNIT
    error = 1e-9 * math.sqrt(xx) * math.sqrt(yy)
    error += step * math.sqrt(len(rows)) * (top_x * math.sqrt(yy) + top_y * math.sqrt(xx))
    error += len(rows) * (step * top_x) * (step * top_y) + 1e-300
    if aggregate.name == "covariance":
        return near(expected, actual, error / (len(rows) - aggregate.ddof))
    if min(xx, yy) < 1e-280 or error_x > 1e-6 * xx or error_y > 1e-6 * yy:
        return True
    if aggregate.name == "correlation":
        return near(expected, actual, error / (math.sqrt(xx) * math.sqrt(yy)) + error_x / xx + error_y / yy)
    return near(expected, actual, error / yy + abs(expected) * error_y / yy)


def weighted_mean(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    if expected is None or not rows or not _finite(rows):
        return same(expected, actual)
    weights = [float(w) for _, w in rows]
    total = abs(math.fsum(weights))
    spread = sum(abs(float(x) * w) for (x, _), w in zip(rows, weights, strict=True))
    if not math.isfinite(spread) or total <= 1e-13 * sum(map(abs, weights)):
        return True
    return near(expected, actual, 1e-9 * abs(expected) + 1e-13 * spread / total)


def shape(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Anything where the column hardly varies; else six digits."""
    if expected is None or not rows or not _finite(rows):
        return same(expected, actual)
    squares, _, error = _deviations(rows)
    if squares < 1e-70 or error > 1e-6 * squares:
        return True
    return near(expected, actual, 1e-6 * (1.0 + abs(expected)))


def regression(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Rounding errors of both columns; anything where `x` hardly varies, and any fit where `y` does."""
    if expected is None or actual is None or not _finite(rows):
        return same(expected, actual)
    (yy, top_y, error_y), (xx, top_x, error_x) = _deviations(rows), _deviations(rows, 1)
    if max(xx, yy, top_x * top_y) > 1e290 or xx < 1e-280 or error_x > 1e-6 * xx:
        return True
    bound = 1e-6 * (abs(expected["slope"]) + math.sqrt(yy / xx)) + UNIT * 64 * len(rows) * top_y / math.sqrt(
        xx
    )
    fits = yy < 1e-280 or error_y > 1e-6 * yy or near(expected["r2"], actual["r2"], 1e-6)
    slack = bound * (1.0 + top_x) + 1e-9 * top_y
    return (
        near(expected["slope"], actual["slope"], bound)
        and near(expected["intercept"], actual["intercept"], slack)
        and (fits or (yy == 0.0 and same(expected["r2"], actual["r2"])))
    )


def plain_sum(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Floats are added one after the other."""
    if not isinstance(expected, float):
        return same(expected, actual)
    size = _magnitude(rows)
    return math.isinf(size) or size > 1e300 or near(expected, actual, UNIT * len(rows) * size)


def increase(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    """Exact for integers; floats may be added in another order."""
    if not isinstance(expected, float):
        return same(expected, actual)
    return near(expected, actual, 1e-12 * len(rows) * max(abs(float(x)) for (x,) in rows))
