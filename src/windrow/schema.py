"""Checks of the columns of a table."""

from __future__ import annotations

import pyarrow as pa

from windrow.errors import QueryError


def require_columns(schema: pa.Schema, names: tuple[str, ...]) -> None:
    """An error that lists what is there, if a column is missing or there twice."""
    for name in names:
        found = schema.get_all_field_indices(name)
        if len(found) == 0:
            known = ", ".join(repr(n) for n in schema.names) or "none at all"
            raise QueryError(f"unknown column {name!r}; the columns are: {known}")
        if len(found) > 1:
            raise QueryError(f"column {name!r} occurs {len(found)} times")
