"""What a window is made of besides its policies: a schema, columns, a clock. Wrong ones are refused here, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from windrow.errors import QueryError
from windrow.policies.spec import Spec, uses_clock
from windrow.schema import require_columns


def column_names(columns: Any, what: str) -> tuple[str, ...]:
    """One name, several, or none, as a tuple; `what` names the option in the error.

    >>> column_names("state", "partition_by")
    ('state',)
    """
    if columns is None:
        return ()
    names = (columns,) if isinstance(columns, str) else columns
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise QueryError(f"{what} is the name of a column, or a list of names; not {columns!r}")
    if len(set(names)) < len(names):
        raise QueryError(f"{what} names a column twice: {', '.join(names)}")
    return tuple(names)


def require_options(
    spec: Spec,
    schema: Any,
    by: tuple[str, ...],
    clock: Any,
    partial_windows: Any,
    columns: tuple[str, ...],
    aggregates: Any,
) -> None:
    """A QueryError if a window cannot be made of these."""
    if not isinstance(schema, pa.Schema):
        raise QueryError(f"the schema of a window is one of pyarrow, not {type(schema).__name__}")
    require_columns(schema, tuple(schema.names))
    require_columns(schema, (*by, *columns))
    if spec.partitioned and not by:
        raise QueryError(f"the window {str(spec)!r} is partitioned: say by which columns (partition_by)")
    if by and not spec.partitioned:
        raise QueryError(f"the window {str(spec)!r} is not partitioned, and cannot be by {', '.join(by)}")
    if not isinstance(partial_windows, bool):
        raise QueryError(f"partial_windows is True or False, not {partial_windows!r}")
    if uses_clock(spec) and clock is not None and not (hasattr(clock, "now") and hasattr(clock, "call_at")):
        raise QueryError(f"a clock has the methods now and call_at, and {clock!r} does not")
    if aggregates is None:
        return
    if not isinstance(aggregates, Mapping):
        raise QueryError(f"aggregates are given by name, as in {{'mean': mean('x')}}; not as {aggregates!r}")
    twice = [name for name in by if name in aggregates]
    if twice:
        raise QueryError(f"{twice[0]!r} is a column of the partition, and cannot be an aggregate too")
