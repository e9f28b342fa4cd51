"""The moments sketch: count, extremes and power sums, from which a distribution can be rebuilt.

A handful of numbers per slice, merged by addition, tell mean, variance, skewness and kurtosis, and
let a solver of maximum entropy estimate any quantile: Gan, Ding, Tai, Sharan, Bailis: Moment-Based
Quantile Sketches for Efficient High Cardinality Aggregation Queries (VLDB 2018). windrow keeps and
returns the sketch; solving is left to its reader.

    result    [ count, min, max, sum x, sum x**2, ..., sum x**k ]
    logs      [ .. the same .. , positive, sum ln x, sum (ln x)**2, ..., sum (ln x)**k ]

A long tail shows in logarithms better than in powers, so the sketch of the paper has both. A value that is not
greater than 0 has no logarithm: `positive` counts those that have one. The paper's solver uses logarithms where all
values have one, that is where `positive` equals `count`.

Each power sum is carried with what its roundings lost (Neumaier). At most 16 powers: beyond that
float64 holds no more information on the shape (section 4.3.2 of the paper). The sums follow IEEE
arithmetic, so an infinity or a NaN shows in the sums of the windows that hold it, and in no other;
in `min` and `max` NaN is the greatest number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Sketch,
    columns_read,
    lists_of,
    numeric_kind,
    scale_of,
    whole_number,
)
from windrow.aggregates.numerics import greater, two_sum
from windrow.errors import QueryError
from windrow.expressions import ColumnLike


def add_powers(powers, lost, value):  # type: ignore[no-untyped-def]
    power = 1.0
    for i in range(len(powers)):
        power *= value
        powers[i], error = two_sum(powers[i], power)
        lost[i] += error


def join_powers(powers, lost, other_powers, other_lost):  # type: ignore[no-untyped-def]
    for i in range(len(powers)):
        powers[i], error = two_sum(powers[i], other_powers[i])
        lost[i] += other_lost[i] + error


def insert(least, greatest, powers, lost, x):  # type: ignore[no-untyped-def]
    value = float(x) + 0.0
    if greater(least[0], value):
        least[0] = value
    if greater(value, greatest[0]):
        greatest[0] = value
    add_powers(powers, lost, value)


def absorb(  # type: ignore[no-untyped-def]
    least, greatest, powers, lost, other_least, other_greatest, other_powers, other_lost
):
    if greater(least[0], other_least[0]):
        least[0] = other_least[0]
    if greater(other_greatest[0], greatest[0]):
        greatest[0] = other_greatest[0]
    join_powers(powers, lost, other_powers, other_lost)


def absorb_with_logs(  # type: ignore[no-untyped-def]
    least, greatest, powers, lost, positive, logs, lost_logs,
    other_least, other_greatest, other_powers, other_lost, other_positive, other_logs, other_lost_logs,
):  # fmt: skip
    absorb(least, greatest, powers, lost, other_least, other_greatest, other_powers, other_lost)
    positive[0] += other_positive[0]
    join_powers(logs, lost_logs, other_logs, other_lost_logs)


def fields_of(k: int) -> tuple[Field, ...]:
    """NaN is neutral in a minimum, because it is the greatest."""
    return (
        Field("least", "f", float("nan"), width=1),
        Field("greatest", "f", float("-inf"), width=1),
        Field("powers", "f", 0.0, width=k),
        Field("lost", "f", 0.0, width=k),
    )


@cache
def partial(k: int) -> Sketch:
    """One sketch per number of powers."""
    return Sketch(f"moments k={k}", fields_of(k), insert, absorb)


@cache
def partial_with_logs(k: int, scale: float) -> Sketch:
    """One sketch per number of powers and scale of a decimal column: no later division scales a logarithm."""

    def insert_with_logs(  # type: ignore[no-untyped-def]
        least, greatest, powers, lost, positive, logs, lost_logs, x
    ):
        insert(least, greatest, powers, lost, x)
        if x > 0:
            positive[0] += 1
            add_powers(logs, lost_logs, math.log(x / scale))

    logs = (
        Field("positive", "i", 0, width=1),
        Field("logs", "f", 0.0, width=k),
        Field("lost_logs", "f", 0.0, width=k),
    )
    name = f"moments k={k}, logs, scale={scale:g}"
    return Sketch(name, (*fields_of(k), *logs), insert_with_logs, absorb_with_logs)


def summed(powers: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Sums with what their roundings lost; what is not finite has lost everything."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.isfinite(powers), powers + lost, powers)


@dataclass(frozen=True)
class Moments(Aggregate):
    """Count, extremes and `k` power sums, and those of logarithms with `logs`."""

    columns: tuple[str, ...]
    k: int
    logs: bool = False
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        scale = scale_of(types[0])

        def build(fields: list[np.ndarray], n: np.ndarray, decoders: Any) -> pa.Array:
            defined = n > 0
            least, greatest, powers, lost, *logs = (field[defined] for field in fields)
            scales = scale ** np.arange(1.0, self.k + 1.0)
            count = n[defined].astype(np.float64)[:, None]
            columns = [count, least / scale, greatest / scale, summed(powers, lost) / scales]
            if logs:
                positive, sums, lost_logs = logs
                columns += [positive.astype(np.float64), summed(sums, lost_logs)]
            return lists_of(np.hstack(columns), defined)

        sketch = partial_with_logs(self.k, scale) if self.logs else partial(self.k)
        return Bound(sketch, (kind,), pa.list_(pa.float64()), build=build)

    def __str__(self) -> str:
        return f"moments({self.columns[0]}, k={self.k}{', logs=True' if self.logs else ''})"


def moments(
    column: ColumnLike, *, k: int = 10, logs: bool = False, where: ColumnLike | None = None
) -> Moments:
    """The moments sketch: count, extremes and power sums, from which quantiles can be estimated.

    Parameters
    ----------
    column
        A numeric column.
    k
        How many powers, from 1 to 16; 10 by default.
    logs
        Whether the same follows for logarithms, which show long tails better; False by default. Values that
        are not greater than 0 have none.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Moments
        An aggregate of `k + 3` numbers as a list of float64: count, min, max, and the sums of `x`, `x**2`,
        ..., `x**k`. With `logs`, `k + 1` more: how many values are greater than 0, and the sums of `ln x`,
        ..., `(ln x)**k`. Null where the window holds no value.

    Raises
    ------
    QueryError
        If `k` is no whole number from 1 to 16, or `logs` no boolean.

    Examples
    --------
    >>> import pyarrow as pa, windrow as wr
    >>> sketch = wr.moments("delay", k=2, logs=True)
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"sketch": sketch})
    >>> q.run(pa.table({"ts": [1, 2, 3], "delay": [1.0, 1.0, -3.0]}))["sketch"][0].as_py()
    [3.0, -3.0, 1.0, -1.0, 11.0, 2.0, 0.0, 0.0]
    """
    k = whole_number(k, what="k", most=16)
    if not isinstance(logs, bool):
        raise QueryError(f"logs must be True or False, not {logs!r}")
    return Moments(columns_read(column, where=where), k, logs)
