"""One specimen of every window type and of every aggregate, for tests that must meet them all."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from tests.referee.events import arrow_array
from tests.referee.strategies import (
    NEVER_NULL,
    SIGNALS,
    every_second_time,
    in_ticks,
    is_positive,
    more_than_three,
    older_than_six,
    one_more,
    strides,
    value_type,
    waves,
)
from windrow.windows import Window


@dataclass(frozen=True)
class Windowed:
    """A window, a type of time column that it fits, and whether events should spread over weeks."""

    window: Window
    time: pa.DataType
    days: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", in_ticks(self.window, self.time))


WINDOWS: dict[str, Windowed] = {
    "tumbling": Windowed(wr.tumbling(7), pa.int64()),
    "tumbling with offset": Windowed(wr.tumbling(6, offset=-2), pa.timestamp("us")),
    "tumbling in nanoseconds": Windowed(wr.tumbling("10 nanoseconds"), pa.timestamp("ns", "UTC")),
    "tumbling of a float measure": Windowed(wr.tumbling(1.25), pa.float64()),
    "tumbling of an odd float length": Windowed(wr.tumbling(0.7, offset=0.1), pa.float64()),
    "sliding by a divisor": Windowed(wr.sliding(12, every=4), pa.timestamp("s", "America/New_York")),
    "sliding by no divisor": Windowed(wr.sliding(11, every=4, offset=3), pa.int64()),
    "sliding by one": Windowed(wr.sliding(9, every=1), pa.int32()),
    "sliding with gaps": Windowed(wr.sliding(3, every=8), pa.date32()),
    "sliding of a float measure": Windowed(wr.sliding(2.0, every=0.75), pa.float64()),
    "cumulate": Windowed(wr.cumulate(12, step=3), pa.timestamp("ms")),
    "cumulate with offset": Windowed(wr.cumulate(10, step=5, offset=3), pa.int64()),
    "band": Windowed(wr.band(-20, length=45), pa.int64()),
    "calendar day": Windowed(
        wr.calendar("1 day", tz="Europe/Berlin"), pa.timestamp("ms", "Europe/Berlin"), True
    ),
    "calendar day without midnight": Windowed(
        wr.calendar("1 day", tz="America/Sao_Paulo"), pa.timestamp("s", "UTC"), True
    ),
    "calendar week": Windowed(wr.calendar("1 week"), pa.timestamp("s"), True),
    "calendar month": Windowed(wr.calendar("1 month"), pa.timestamp("us"), True),
    "calendar quarter": Windowed(wr.calendar("1 quarter", tz="Asia/Tokyo"), pa.timestamp("ms", "UTC"), True),
    "calendar year": Windowed(wr.calendar("1 year"), pa.date32(), True),
}


# Windows that depend on the events, over the columns of `SIGNALS` and a time of any type.
SEQUENCES: dict[str, Window] = {
    "session": wr.session(4),
    "session with gaps from a column": wr.session("gap"),
    "count tumbling": wr.tumbling(rows=3),
    "count sliding": wr.sliding(rows=5, every_rows=2),
    "count with rows left out": wr.sliding(rows=2, every_rows=3),
    "on a column": wr.tumbling(3, on="km"),
    "sliding on a column": wr.sliding(5, every=2, on="km", offset=1),
    "marks": wr.punctuated(where="mark"),
    "marks at both ends": wr.punctuated(start=is_positive, end=pc.field("level") < 0),
    "delta": wr.delta("level", by=1),
    "delta over two moves": wr.delta("level", by=0.5, moves=2),
    "threshold": wr.threshold(pc.field("level") > 0),
    "threshold of some length": wr.threshold(is_positive, at_least=3, at_least_rows=2),
    "landmark": wr.landmark(since=-5, every=7),
    "snapshot": wr.snapshot(),
    "slide by rows": wr.slide_by_rows(6, every_rows=2),
    "latest": wr.latest(rows=3, every=5, offset=1),
    "deterministic": wr.deterministic(waves, state=0),
    "deterministic with two numbers": wr.deterministic(strides, state=(0, 0)),
    "nondeterministic": wr.nondeterministic(evict=more_than_three, trigger=is_positive),
    "nondeterministic with a state": wr.nondeterministic(
        evict=older_than_six, trigger=every_second_time, update=one_more
    ),
}
# The same in groups that an engine treats alike: windows of one group are asked in one query.
GROUPS: dict[str, tuple[str, ...]] = {
    "sessions": ("session", "session with gaps from a column", "landmark", "snapshot"),
    "counts": ("count tumbling", "count sliding", "count with rows left out"),
    "data": (
        "on a column",
        "sliding on a column",
        "marks",
        "marks at both ends",
        "delta",
        "delta over two moves",
        "threshold",
        "threshold of some length",
        "deterministic",
        "deterministic with two numbers",
    ),
    "context aware": ("slide by rows", "latest", "nondeterministic", "nondeterministic with a state"),
}
# A few values of each kind, for streams that are drawn once and for all.
_VALUES: dict[str, list[Any]] = {
    "int": [-5, 0, 1, 2, 2, 7, 2**40],
    "small": [-300, 0, 1, 5, 5, 32767],
    "float": [0.0, -0.0, 0.1, -2.5, 3.0, 3.0, 1e16, math.nan, math.inf],
    "single": [0.5, -2.5, 3.0, 3.0, math.nan],
    "finite": [0.0, 0.1, -2.5, 3.0, 3.0, 1e9],
    "mild": [0.1, -2.5, 3.0, 3.0, 1e3],
    "decimal": [Decimal("0.10"), Decimal("-2.50"), Decimal(3), Decimal(3), Decimal("99.99")],
    "string": ["", "a", "b", "ab", "ä", "b"],
    "bool": [True, False],
    "time": [-3, 0, 5, 5, 2**40],
    "date": [-3, 0, 5, 5, 20_000],
    "gap": [2, 4, 4, 6, 10],
    "count": [-2, -1, 0, 1, 2],
    "level": [-3.0, -1.0, 0.0, 0.5, 1.0, 3.0, math.nan],
}


def fixed_stream(kinds: dict[str, str], *, size: int, span: int, seed: int) -> pa.Table:
    """A disordered stream of two keys, one of them null, with `SIGNALS` and columns of these kinds."""
    luck = random.Random(seed)
    ticks = [luck.randrange(span) for _ in range(size)]
    table = {"time": pa.array(ticks, pa.int64()), "key0": pa.array([luck.choice([1, None]) for _ in ticks])}
    for name, kind in (SIGNALS | kinds).items():
        if kind == "odometer":
            table[name] = pa.array([tick // 3 + luck.randrange(-2, 4) for tick in ticks], pa.int64())
            continue
        pool = _VALUES[kind] if kind in NEVER_NULL else [None, *_VALUES[kind]]
        table[name] = arrow_array([luck.choice(pool) for _ in ticks], value_type(kind))
    return pa.table(table)


def _last_difference(a: Any, b: Any) -> Any:
    """Alternating sums: order matters, and the grouping does not."""
    sign = -1.0 if a[1] % 2 else 1.0
    return a[0] + sign * b[0], a[1] + b[1]


SPREAD = wr.aggregate(
    lift=lambda x: (x, x * x, 1.0),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2]),
    lower=lambda a: a[1] - a[0] * a[0] / a[2],
    identity=(0.0, 0.0, 0.0),
    name="spread",
)
TOTAL = wr.aggregate(
    lift=lambda x: x, combine=lambda a, b: a + b, invert=lambda a, b: a - b, identity=0, name="total"
)
ALTERNATING = wr.aggregate(
    lift=lambda x: (float(x), 1),
    combine=_last_difference,
    lower=lambda a: a[0],
    identity=(0.0, 0),
    commutative=False,
    name="alternating",
)

# name -> (aggregate, kinds of its columns)
AGGREGATES: dict[str, tuple[wr.Aggregate, dict[str, str]]] = {
    "count": (wr.count(), {}),
    "count of a column": (wr.count("x"), {"x": "string"}),
    "sum of integers": (wr.sum("x"), {"x": "int"}),
    "sum of small integers": (wr.sum("x"), {"x": "small"}),
    "sum of floats": (wr.sum("x"), {"x": "float"}),
    "sum of decimals": (wr.sum("x"), {"x": "decimal"}),
    "sum of booleans": (wr.sum("x"), {"x": "bool"}),
    "mean of booleans": (wr.mean("x"), {"x": "bool"}),
    "mean of integers": (wr.mean("x"), {"x": "int"}),
    "mean of floats": (wr.mean("x"), {"x": "float"}),
    "mean of decimals": (wr.mean("x"), {"x": "decimal"}),
    "geometric mean": (wr.geometric_mean("x"), {"x": "float"}),
    "variance": (wr.variance("x"), {"x": "float"}),
    "variance of integers": (wr.variance("x", ddof=0), {"x": "int"}),
    "stddev": (wr.stddev("x"), {"x": "mild"}),
    "population stddev": (wr.stddev("x", ddof=0), {"x": "decimal"}),
    "min of floats": (wr.min("x"), {"x": "float"}),
    "min of strings": (wr.min("x"), {"x": "string"}),
    "max of singles": (wr.max("x"), {"x": "single"}),
    "max of decimals": (wr.max("x"), {"x": "decimal"}),
    "max of times": (wr.max("x"), {"x": "time"}),
    "min of booleans": (wr.min("x"), {"x": "bool"}),
    "min count": (wr.min_count("x"), {"x": "float"}),
    "max count": (wr.max_count("x"), {"x": "string"}),
    "argmin": (wr.argmin("x", by="y"), {"x": "string", "y": "float"}),
    "argmax": (wr.argmax("x", by="y"), {"x": "float", "y": "int"}),
    "first of strings": (wr.first("x"), {"x": "string"}),
    "first of dates": (wr.first("x"), {"x": "date"}),
    "last of floats": (wr.last("x"), {"x": "float"}),
    "last of decimals": (wr.last("x"), {"x": "decimal"}),
    "collect floats": (wr.collect("x"), {"x": "float"}),
    "collect strings": (wr.collect("x"), {"x": "string"}),
    "collect times": (wr.collect("x"), {"x": "time"}),
    "concat": (wr.concat("x", separator="|"), {"x": "string"}),
    "ith youngest": (wr.ith_youngest("x", 2), {"x": "string"}),
    "m4": (wr.m4("x"), {"x": "float"}),
    "m4 of strings": (wr.m4("x"), {"x": "string"}),
    "median": (wr.median("x"), {"x": "float"}),
    "median of integers": (wr.median("x"), {"x": "int"}),
    "median of decimals": (wr.median("x"), {"x": "decimal"}),
    "quantile": (wr.quantile("x", 0.9), {"x": "float"}),
    "lower quantile": (wr.quantile("x", 0.25, interpolation="lower"), {"x": "string"}),
    "higher quantile": (wr.quantile("x", 0.25, interpolation="higher"), {"x": "time"}),
    "nearest quantile": (wr.quantile("x", 0.5, interpolation="nearest"), {"x": "decimal"}),
    "ith smallest": (wr.ith_smallest("x", 2), {"x": "float"}),
    "distinct floats": (wr.distinct("x"), {"x": "float"}),
    "distinct strings": (wr.distinct("x"), {"x": "string"}),
    "approx distinct": (wr.approx_distinct("x"), {"x": "float"}),
    "approx distinct of decimals": (wr.approx_distinct("x", precision=10), {"x": "decimal"}),
    "top k": (wr.top_k("x", 2), {"x": "string"}),
    "top k of floats": (wr.top_k("x", 3), {"x": "float"}),
    "kll quantile": (wr.kll_quantile("x", 0.5, k=8), {"x": "float"}),
    "t-digest quantile": (wr.tdigest_quantile("x", 0.9), {"x": "finite"}),
    "moments": (wr.moments("x", k=3), {"x": "float"}),
    "moments with logarithms": (wr.moments("x", k=3, logs=True), {"x": "float"}),
    "bloom filter": (wr.bloom_filter("x"), {"x": "int"}),
    "bloom filter of floats": (wr.bloom_filter("x", capacity=100), {"x": "float"}),
    "histogram": (wr.histogram("x", low=-3, high=4, bins=5), {"x": "float"}),
    "histogram of decimals": (wr.histogram("x", low=-10, high=10, bins=4), {"x": "decimal"}),
    "weighted mean": (wr.weighted_mean("x", weight="y"), {"x": "mild", "y": "int"}),
    "covariance": (wr.covariance("x", "y"), {"x": "float", "y": "mild"}),
    "correlation": (wr.correlation("x", "y"), {"x": "mild", "y": "mild"}),
    "slope": (wr.slope("x", "y"), {"x": "mild", "y": "int"}),
    "regression": (wr.regression("x", "y"), {"x": "mild", "y": "int"}),
    "skewness": (wr.skewness("x"), {"x": "mild"}),
    "kurtosis": (wr.kurtosis("x"), {"x": "mild"}),
    "all": (wr.all("x"), {"x": "bool"}),
    "any": (wr.any("x"), {"x": "bool"}),
    "bit and": (wr.bit_and("x"), {"x": "int"}),
    "bit or": (wr.bit_or("x"), {"x": "small"}),
    "bit xor": (wr.bit_xor("x"), {"x": "int"}),
    "range of floats": (wr.range("x"), {"x": "float"}),
    "range of small integers": (wr.range("x"), {"x": "small"}),
    "range of decimals": (wr.range("x"), {"x": "decimal"}),
    "mode": (wr.mode("x"), {"x": "string"}),
    "mode of floats": (wr.mode("x"), {"x": "float"}),
    "distinct values": (wr.collect_distinct("x"), {"x": "string"}),
    "distinct floats in a list": (wr.collect_distinct("x"), {"x": "float"}),
    "sum of distinct integers": (wr.sum_distinct("x"), {"x": "small"}),
    "sum of distinct decimals": (wr.sum_distinct("x"), {"x": "decimal"}),
    "sum of distinct floats": (wr.sum_distinct("x"), {"x": "float"}),
    "midpoint": (wr.quantile("x", 0.4, interpolation="midpoint"), {"x": "float"}),
    "increase": (wr.increase("x"), {"x": "small"}),
    "increase of floats": (wr.increase("x"), {"x": "mild"}),
    "user's spread": (SPREAD, {"x": "mild"}),
    "user's total": (TOTAL, {"x": "int"}),
    "user's alternating sum": (ALTERNATING, {"x": "int"}),
}
