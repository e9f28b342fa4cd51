"""Whether all values of a window are true, and whether any is: its smallest and its largest boolean."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, columns_read, decoded
from windrow.aggregates.extremes import PLAIN, lower
from windrow.errors import QueryError
from windrow.expressions import ColumnLike


@dataclass(frozen=True)
class Truth(Aggregate):
    """`name` is "all" or "any"."""

    name: str
    columns: tuple[str, ...]
    algebra = Algebra("distributive", idempotent=True, selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if not pa.types.is_boolean(types[0]):
            raise QueryError(f"{self} needs a column of booleans, not {types[0]}")
        partial = PLAIN["min" if self.name == "all" else "max", "i"]
        return Bound(partial, ("i",), pa.bool_(), lower, ("i",), decoded())


def all_(column: ColumnLike, *, where: ColumnLike | None = None) -> Truth:
    """Whether all values are true.

    Parameters
    ----------
    column
        A column of booleans.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Truth
        An aggregate of type boolean: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.all("paid"))
    'all(paid)'
    """
    return Truth("all", columns_read(column, where=where))


def any_(column: ColumnLike, *, where: ColumnLike | None = None) -> Truth:
    """Whether any value is true.

    Parameters
    ----------
    column
        A column of booleans.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Truth
        An aggregate of type boolean: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.any("failed"))
    'any(failed)'
    """
    return Truth("any", columns_read(column, where=where))
