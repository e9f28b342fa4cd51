"""What each aggregate means, as a formula over a list of values: the referee's own arithmetic.

`EXACT` maps an aggregate class to a `Reference`, which is two functions:

    value(aggregate, rows)                      the answer, from scratch
    accepts(aggregate, rows, expected, actual)  whether another answer is as good

`rows` are the events of one window that have no null in the aggregate's columns, in event-time
order (arrival order among equals), each a tuple of the aggregate's columns. Exact aggregates accept
equality alone. Floating-point sums may be 2 ulp away, deviations a stated rounding error, sketches
the error that they promise (see `sketches`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import groupby, pairwise
from operator import and_, or_, xor
from typing import Any

import pyarrow as pa

from tests.referee import tolerance
from windrow.aggregates.argextremes import ArgExtreme
from windrow.aggregates.base import Aggregate
from windrow.aggregates.bits import Bits
from windrow.aggregates.count import Count
from windrow.aggregates.distinct import Distinct
from windrow.aggregates.distinct_values import CollectDistinct, SumDistinct
from windrow.aggregates.extremes import Extreme, ExtremeCount
from windrow.aggregates.first_last import FirstLast
from windrow.aggregates.geometric_mean import GeometricMean
from windrow.aggregates.increase import Increase
from windrow.aggregates.m4 import M4
from windrow.aggregates.mean import Mean
from windrow.aggregates.mode import Mode
from windrow.aggregates.pairs import Pair
from windrow.aggregates.quantile import IthSmallest, Quantile
from windrow.aggregates.regression import Regression
from windrow.aggregates.sequences import Collect, Concat, IthYoungest
from windrow.aggregates.shape import Shape
from windrow.aggregates.sum import Sum
from windrow.aggregates.top_k import TopK
from windrow.aggregates.truth import Truth
from windrow.aggregates.user import UserAggregate
from windrow.aggregates.value_range import Range
from windrow.aggregates.variance import Variance
from windrow.aggregates.weighted_mean import WeightedMean
from windrow.testing.compare import same

Rows = list[tuple[Any, ...]]
Value = Callable[[Any, Rows], Any]
Accepts = Callable[[Any, Rows, Any, Any], bool]


def equal(aggregate: Aggregate, rows: Rows, expected: Any, actual: Any) -> bool:
    """Accept the same answer and no other."""
    return same(expected, actual)


@dataclass(frozen=True)
class Reference:
    """How one aggregate class is computed by definition, and what counts as the same answer."""

    value: Value
    accepts: Accepts = equal


def order(value: Any) -> Any:
    """The sort key of a value: NaN after every number, strings by their bytes."""
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value + 0.0
    return value.encode() if isinstance(value, str) else value


def exact_sum(values: list[Any]) -> Any:
    """The sum without rounding on the way: integers, decimals, or floats by `math.fsum`."""
    if isinstance(values[0], Decimal):
        with localcontext(prec=100):
            return sum(values, Decimal(0))
    if not isinstance(values[0], float):
        return sum(values)
    odd = [v for v in values if not math.isfinite(v)]
    if odd:
        return sum(odd)
    try:
        return math.fsum(values)
    except OverflowError:
        return rounded(sum(map(Fraction, values), Fraction(0)))


def rounded(number: Fraction) -> float:
    """A fraction as the nearest float; beyond the largest one, infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def divided(top: float, bottom: float) -> float:
    """Division as IEEE 754 has it."""
    if bottom == 0.0:
        return math.nan if top == 0.0 or math.isnan(top) else math.copysign(math.inf, top)
    return top / bottom


def column(rows: Rows, position: int = 0) -> list[Any]:
    return [row[position] for row in rows]


def _count(aggregate: Count, rows: Rows) -> int:
    return len(rows)


def _sum(aggregate: Sum, rows: Rows) -> Any:
    if not rows:
        return None
    return exact_sum(column(rows))


def _mean(aggregate: Mean, rows: Rows) -> float | None:
    if not rows:
        return None
    total = exact_sum(column(rows))
    if isinstance(total, float):
        return total / len(rows)
    return rounded(Fraction(total) / len(rows))


def _geometric_mean(aggregate: GeometricMean, rows: Rows) -> float | None:
    if not rows:
        return None
    numbers = [float(x) for x in column(rows)]
    logs = [math.nan if x < 0 else -math.inf if x == 0 else math.log(x) for x in numbers]
    return math.exp(float(exact_sum(logs)) / len(rows))


def products(xs: list[Any], ys: list[Any]) -> Fraction:
    """The sum of products of deviations from the means, exactly."""
    a, b = [Fraction(x) for x in xs], [Fraction(y) for y in ys]
    mean_a, mean_b = sum(a, Fraction(0)) / len(a), sum(b, Fraction(0)) / len(b)
    return sum(((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)), Fraction(0))


def finite(values: list[Any]) -> bool:
    return all(math.isfinite(v) for v in values)


def _variance(aggregate: Variance, rows: Rows) -> float | None:
    if len(rows) < 1 + aggregate.ddof:
        return None
    xs = column(rows)
    if not finite(xs):
        return math.nan
    value = rounded(products(xs, xs) / (len(xs) - aggregate.ddof))
    return math.sqrt(value) if aggregate.root else value


def _pair(aggregate: Pair, rows: Rows) -> float | None:
    if len(rows) < (2 if aggregate.ddof else 1):
        return None
    xs, ys = column(rows), column(rows, 1)
    if aggregate.name == "covariance":
        if not finite(xs + ys):
            return math.nan
        return rounded(products(xs, ys) / (len(xs) - aggregate.ddof))
    varies_x, varies_y = (not finite(v) or len(set(v)) > 1 for v in (xs, ys))
    if not varies_y or (aggregate.name == "correlation" and not varies_x):
        return None
    if not finite(xs + ys):
        return math.nan
    if aggregate.name == "slope":
        return rounded(products(xs, ys) / products(ys, ys))
    both = products(xs, ys)
    squared = both * both / (products(xs, xs) * products(ys, ys))
    return math.copysign(math.sqrt(squared), both)


def _weighted_mean(aggregate: WeightedMean, rows: Rows) -> float | None:
    if not rows:
        return None
    weight = float(exact_sum([float(w) for _, w in rows]))
    if weight == 0.0:
        return None
    return divided(float(exact_sum([float(x) * float(w) for x, w in rows])), weight)


def _extreme(aggregate: Extreme, rows: Rows) -> Any:
    if not rows:
        return None
    return (min if aggregate.which == "min" else max)(column(rows), key=order)


def _extreme_count(aggregate: ExtremeCount, rows: Rows) -> int | None:
    if not rows:
        return None
    orders = [order(x) for x in column(rows)]
    return orders.count((min if aggregate.which == "min" else max)(orders))


def _arg_extreme(aggregate: ArgExtreme, rows: Rows) -> Any:
    if not rows:
        return None
    best = (min if aggregate.which == "min" else max)(order(by) for _, by in rows)
    return next(x for x, by in rows if order(by) == best)


def _first_last(aggregate: FirstLast, rows: Rows) -> Any:
    if not rows:
        return None
    return rows[0 if aggregate.which == "first" else -1][0]


def _m4(aggregate: M4, rows: Rows) -> dict[str, Any] | None:
    if not rows:
        return None
    xs = column(rows)
    return {"min": min(xs, key=order), "max": max(xs, key=order), "first": xs[0], "last": xs[-1]}


def _quantile(aggregate: Quantile, rows: Rows) -> Any:
    if not rows:
        return None
    ordered = sorted(column(rows), key=order)
    position = aggregate.q * (len(ordered) - 1)
    if aggregate.interpolation == "nearest":
        return ordered[round(position)]
    below, above = math.floor(position), math.ceil(position)
    if aggregate.interpolation == "midpoint":
        position = (below + above) / 2
    elif aggregate.interpolation != "linear":
        return ordered[below if aggregate.interpolation == "lower" else above]
    low, high = float(ordered[below]), float(ordered[above])
    if below == above or low == high:
        return low
    return (above - position) * low + (position - below) * high


def _ith_smallest(aggregate: IthSmallest, rows: Rows) -> Any:
    ordered = sorted(column(rows), key=order)
    return ordered[aggregate.i - 1] if len(ordered) >= aggregate.i else None


def _distinct(aggregate: Distinct, rows: Rows) -> int:
    return len({order(x) for x in column(rows)})


def _top_k(aggregate: TopK, rows: Rows) -> list[dict[str, Any]] | None:
    if not rows:
        return None
    examples = {order(x): x for x in column(rows)}
    times = Counter(order(x) for x in column(rows))
    ranking = sorted(times, key=lambda value: (-times[value], value))[: aggregate.k]
    return [{"value": examples[value], "count": times[value]} for value in ranking]


def _collect(aggregate: Collect, rows: Rows) -> list[Any] | None:
    return column(rows) or None


def _concat(aggregate: Concat, rows: Rows) -> str | None:
    return aggregate.separator.join(column(rows)) if rows else None


def _ith_youngest(aggregate: IthYoungest, rows: Rows) -> Any:
    return rows[-aggregate.i][0] if len(rows) >= aggregate.i else None


def _truth(aggregate: Truth, rows: Rows) -> bool | None:
    if not rows:
        return None
    return (all if aggregate.name == "all" else any)(column(rows))


def _bits(aggregate: Bits, rows: Rows) -> int | None:
    operation = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}[aggregate.name]
    return reduce(operation, column(rows)) if rows else None


def _range(aggregate: Range, rows: Rows) -> Any:
    if not rows:
        return None
    ordered = sorted(column(rows), key=order)
    return ordered[-1] - ordered[0]


def _mode(aggregate: Mode, rows: Rows) -> Any:
    best = _top_k(TopK(aggregate.columns, 1), rows)
    return best[0]["value"] if best else None


def _shape(aggregate: Shape, rows: Rows) -> float | None:
    xs = column(rows)
    if not rows or (finite(xs) and len(set(xs)) == 1):
        return None
    if not finite(xs):
        return math.nan if len(xs) > 1 else None
    exact = [Fraction(x) for x in xs]
    mean = sum(exact, Fraction(0)) / len(xs)
    second, third, fourth = (sum(((x - mean) ** k for x in exact), Fraction(0)) / len(xs) for k in (2, 3, 4))
    if aggregate.name == "kurtosis":
        return rounded(fourth / second**2 - 3)
    return math.copysign(math.sqrt(third**2 / second**3), third)


def _regression(aggregate: Regression, rows: Rows) -> dict[str, float] | None:
    ys, xs = column(rows), column(rows, 1)
    if len(rows) < 2 or (finite(xs) and len(set(xs)) == 1):
        return None
    if not finite(xs + ys):
        return dict.fromkeys(("slope", "intercept", "r2"), math.nan)
    slope, spread = products(ys, xs) / products(xs, xs), products(ys, ys)
    means = [sum(map(Fraction, v), Fraction(0)) / len(v) for v in (ys, xs)]
    fit = slope * products(ys, xs) / spread if spread else Fraction(1)
    return {"slope": rounded(slope), "intercept": rounded(means[0] - slope * means[1]), "r2": rounded(fit)}


def _collect_distinct(aggregate: CollectDistinct, rows: Rows) -> list[Any] | None:
    return [next(same_ones) for _, same_ones in groupby(sorted(column(rows), key=order), key=order)] or None


def _sum_distinct(aggregate: SumDistinct, rows: Rows) -> Any:
    values = list({order(x): x for x in column(rows)}.values())
    return exact_sum(values) if values else None


def _increase(aggregate: Increase, rows: Rows) -> Any:
    if len(rows) < 2:
        return None
    xs = [float(x) if isinstance(x, Decimal) else x for x in column(rows)]
    return sum(now if now < before else now - before for before, now in pairwise(xs))


def user_type(aggregate: UserAggregate, types: Sequence[pa.DataType], values: Sequence[Any]) -> pa.DataType:
    """The type of a user's results; where there are none, that for an event of ones."""
    ones = tuple(1.0 if pa.types.is_floating(type_) else 1 for type_ in types)
    kinds = {type(v) for v in values if v is not None} or {type(_user(aggregate, [ones]))}
    return (
        pa.bool_()
        if kinds == {bool}
        else pa.float64()
        if any(issubclass(k, float) for k in kinds)
        else pa.int64()
    )


def _user(aggregate: UserAggregate, rows: Rows) -> Any:
    if not rows:
        return None
    identity = aggregate.identity[0] if aggregate.bare else aggregate.identity
    return aggregate.lower(reduce(aggregate.combine, (aggregate.lift(*row) for row in rows), identity))


EXACT: dict[type[Aggregate], Reference] = {
    ArgExtreme: Reference(_arg_extreme),
    Bits: Reference(_bits),
    Collect: Reference(_collect),
    Concat: Reference(_concat),
    CollectDistinct: Reference(_collect_distinct),
    Count: Reference(_count),
    Distinct: Reference(_distinct),
    Extreme: Reference(_extreme),
    ExtremeCount: Reference(_extreme_count),
    FirstLast: Reference(_first_last),
    GeometricMean: Reference(_geometric_mean, tolerance.geometric_mean),
    Increase: Reference(_increase, tolerance.increase),
    IthSmallest: Reference(_ith_smallest),
    IthYoungest: Reference(_ith_youngest),
    M4: Reference(_m4),
    Mean: Reference(_mean, tolerance.mean),
    Mode: Reference(_mode),
    Pair: Reference(_pair, tolerance.pair),
    Quantile: Reference(_quantile, tolerance.quantile),
    Range: Reference(_range),
    Regression: Reference(_regression, tolerance.regression),
    Shape: Reference(_shape, tolerance.shape),
    Sum: Reference(_sum, tolerance.float_sum),
    SumDistinct: Reference(_sum_distinct, tolerance.plain_sum),
    TopK: Reference(_top_k),
    Truth: Reference(_truth),
    UserAggregate: Reference(_user, tolerance.user),
    Variance: Reference(_variance, tolerance.variance),
    WeightedMean: Reference(_weighted_mean, tolerance.weighted_mean),
}
