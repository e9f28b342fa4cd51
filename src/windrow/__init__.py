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

from typing import TYPE_CHECKING, Any

from windrow import aggregates, windows
from windrow.aggregates import *  # noqa: F403 (one list of their names is enough)
from windrow.errors import DataError, LimitError, QueryError, StateError, UserFunctionError, WindrowError
from windrow.expressions import Expr, col, expr, lit
from windrow.live import dashboard
from windrow.plots import plot
from windrow.query import Query, query
from windrow.span import Span, learned, span
from windrow.statements import sql
from windrow.triggers import each_batch, every, every_rows, when
from windrow.watermarks import now, watermark
from windrow.windows import *  # noqa: F403
from windrow.wording import did_you_mean

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise AttributeError(f"windrow has no {name!r}{did_you_mean(name, __all__)}")


__version__ = "0.2.0"

__all__ = [
    *aggregates.__all__,
    *windows.__all__,
    "DataError",
    "Expr",
    "LimitError",
    "Query",
    "QueryError",
    "Span",
    "StateError",
    "UserFunctionError",
    "WindrowError",
    "col",
    "dashboard",
    "each_batch",
    "every",
    "every_rows",
    "expr",
    "learned",
    "lit",
    "now",
    "plot",
    "query",
    "span",
    "sql",
    "watermark",
    "when",
]
