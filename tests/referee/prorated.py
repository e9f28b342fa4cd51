"""What an aggregate means where each event counts by its share: exact fractions, rounded once.

    event      |-----------------------|         lasts 6
    windows    |---------------|---------------|
    shares            4/6             2/6

A count is the sum of shares, a sum that of values times shares, a mean the one divided by the other. Rows
are those of `reference`, with the share as one more number at their end. An engine adds up rounded
products, so its answer may lie a few ulp of the sum of magnitudes away for each of them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tests.referee.events import Event
from tests.referee.reference import Reference, Rows, finite, rounded
from tests.referee.tolerance import UNIT, near
from windrow.aggregates.base import Aggregate
from windrow.aggregates.count import Count
from windrow.aggregates.mean import Mean
from windrow.aggregates.sum import Sum
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.span import Span
from windrow.spec import QuerySpec

# For each product and each addition; a share is itself made of two differences and a division.
ULPS = 16
SMALLEST = 2.0**-1074


def is_prorated(query: QuerySpec) -> bool:
    """Whether events count by the share of them that lies in a window."""
    return isinstance(query.time, Span) and query.time.contributes == "prorated"


def share(event: Event, start: Tick, end: Tick) -> Fraction:
    """How much of the event lies in `[start, end)`.

    >>> import pyarrow as pa
    >>> from tests.referee.events import Source
    >>> share(Event(2, 0, (), {}, 0, Source(pa.table({})), end=8), 0, 5)
    Fraction(1, 2)
    """
    assert event.end is not None
    inside = Fraction(min(event.end, end)) - Fraction(max(event.tick, start))
    return inside / (Fraction(event.end) - Fraction(event.tick))


def _count(aggregate: Count, rows: Rows) -> float:
    return rounded(sum((row[-1] for row in rows), Fraction(0)))


def _total(rows: Rows) -> Fraction | float:
    """The sum of values times shares; not a fraction where a value is no finite number."""
    if finite([x for x, _ in rows]):
        return sum((Fraction(x) * part for x, part in rows), Fraction(0))
    return sum(float(x) for x, _ in rows if not math.isfinite(x))


def _sum(aggregate: Sum, rows: Rows) -> float | None:
    if not rows:
        return None
    total = _total(rows)
    return rounded(total) if isinstance(total, Fraction) else total


def _mean(aggregate: Mean, rows: Rows) -> float | None:
    if not rows:
        return None
    total = _total(rows)
    return rounded(total / sum(part for _, part in rows)) if isinstance(total, Fraction) else total


def _magnitude(rows: Rows) -> float:
    """The sum of what is added up, without signs."""
    return rounded(sum((abs(Fraction(x)) * part for x, part in rows if math.isfinite(x)), Fraction(0)))


def _near_count(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    # An aggregate that was added later is null where it was not asked yet.
    return near(expected, actual, ULPS * len(rows) * UNIT * (expected or 0.0))


def _near_sum(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    size = _magnitude(rows)
    return math.isinf(size) or near(expected, actual, ULPS * len(rows) * (UNIT * size + SMALLEST))


def _near_mean(aggregate: Any, rows: Rows, expected: Any, actual: Any) -> bool:
    if not rows:
        return expected is actual
    size, weight = _magnitude(rows), rounded(sum((part for _, part in rows), Fraction(0)))
    error = 2 * ULPS * len(rows) * (UNIT * size + SMALLEST) / weight
    return math.isinf(size) or near(expected, actual, error)


PRORATED: dict[type[Aggregate], Reference] = {
    Count: Reference(_count, _near_count),
    Mean: Reference(_mean, _near_mean),
    Sum: Reference(_sum, _near_sum),
}


def prorated_reference(aggregate: Aggregate) -> Reference:
    """The reference of an aggregate over shares of events; an error if there can be none."""
    if type(aggregate) not in PRORATED:
        raise QueryError(f"{aggregate} has no meaning for a share of an event: count, sum and mean have one")
    return PRORATED[type(aggregate)]
