"""Whether all values of a window are true, and whether any is: its smallest and its largest boolean."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, decoded
from windrow.aggregates.extremes import PLAIN, lower
from windrow.errors import QueryError


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


def all_(column: str) -> Truth:
    """Whether all values are true.

    Parameters
    ----------
    column
        A column of booleans.

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
    return Truth("all", (column,))


def any_(column: str) -> Truth:
    """Whether any value is true.

    Parameters
    ----------
    column
        A column of booleans.

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
    return Truth("any", (column,))
