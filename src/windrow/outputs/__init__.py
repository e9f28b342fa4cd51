"""What becomes of windows before a user gets them: their order, rows for empty ones, columns of their own, labels of events."""

from __future__ import annotations

import pyarrow as pa

from windrow.options import RunOptions
from windrow.outputs.fill import filled, require_fillable
from windrow.outputs.rows import in_order
from windrow.outputs.wide import wide_names, widened
from windrow.spec import QuerySpec

__all__ = ["require_shapes", "shaped"]


def require_shapes(query: QuerySpec, options: RunOptions) -> None:
    """An error, before anything is read, if windows cannot be what the options say."""
    if options.fill is not False:
        require_fillable(query)
    if options.wide:
        wide_names(query)


def shaped(query: QuerySpec, table: pa.Table, options: RunOptions) -> pa.Table:
    """The rows of an answer as the options say."""
    if options.fill is not False:
        table = filled(query, table, options.fill)
    if options.wide:
        return widened(query, table)
    return in_order(query, table) if options.sort else table
