"""windrow: window aggregates over event streams. Many windows, many aggregates, one pass.

    import windrow as wr

    q = wr.query(
        time="ts",
        key=["user"],
        windows={"1m": wr.tumbling("1 minute"), "1h": wr.sliding("1 hour", every="1 second")},
        aggregates={"n": wr.count(), "total": wr.sum("amount"), "p90": wr.quantile("amount", 0.9)},
    )
    q.run(table)

Names that shadow Python's own (`sum`, `min`, `max`) are meant to be written as `wr.sum`.
"""

from windrow.aggregates import (
    Aggregate,
    Algebra,
    aggregate,
    approx_distinct,
    argmax,
    argmin,
    bloom_filter,
    collect,
    concat,
    correlation,
    count,
    covariance,
    distinct,
    first,
    geometric_mean,
    histogram,
    ith_smallest,
    ith_youngest,
    kll_quantile,
    last,
    m4,
    max_count,
    mean,
    median,
    min_count,
    moments,
    quantile,
    slope,
    stddev,
    sum,
    tdigest_quantile,
    top_k,
    variance,
    weighted_mean,
)
from windrow.aggregates import max_ as max
from windrow.aggregates import min_ as min
from windrow.errors import (
    DataError,
    LimitError,
    QueryError,
    StateError,
    UserFunctionError,
    WindrowError,
)
from windrow.query import Query, query
from windrow.windows import Window, band, calendar, cumulate, sliding, tumbling

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "Algebra",
    "DataError",
    "LimitError",
    "Query",
    "QueryError",
    "StateError",
    "UserFunctionError",
    "Window",
    "WindrowError",
    "aggregate",
    "approx_distinct",
    "argmax",
    "argmin",
    "band",
    "bloom_filter",
    "calendar",
    "collect",
    "concat",
    "correlation",
    "count",
    "covariance",
    "cumulate",
    "distinct",
    "first",
    "geometric_mean",
    "histogram",
    "ith_smallest",
    "ith_youngest",
    "kll_quantile",
    "last",
    "m4",
    "max",
    "max_count",
    "mean",
    "median",
    "min",
    "min_count",
    "moments",
    "quantile",
    "query",
    "sliding",
    "slope",
    "stddev",
    "sum",
    "tdigest_quantile",
    "top_k",
    "tumbling",
    "variance",
    "weighted_mean",
]
