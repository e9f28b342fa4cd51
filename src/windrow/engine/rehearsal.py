"""Which loops a query will need, found out by asking it over a few events as plain Python.

Functions of the user's own are left out: they may do more than compute, and are compiled where they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.compiling.fingerprint import is_users
from windrow.compiling.folder import is_kept
from windrow.compiling.tiers import COMPILE, STEP, TIER, Notes, noting
from windrow.errors import WindrowError
from windrow.spec import QuerySpec

if TYPE_CHECKING:
    from collections.abc import Callable

# Events of a rehearsal: enough to open a few windows, and answered in some hundredths of a second.
ROWS = 64
# What was rehearsed in this process: once is enough.
_REHEARSED: set[tuple[QuerySpec | None, pa.Schema]] = set()


def is_worth_it(rows: int) -> bool:
    """Whether loops over so many events are compiled at once, so that it pays to know them before they are called."""
    return TIER == "auto" and rows * STEP > COMPILE


def begin(query: QuerySpec, table: pa.Table, answer: Callable[[QuerySpec, pa.Table], Any]) -> None:
    """Have a child compile what the answer over this table needs and is not on disk.

    It begins with what is needed last, as this process begins with what is needed first.
    """
    from windrow.compiling.ahead import is_ready

    asked = without_functions(query), table.schema
    if asked in _REHEARSED:
        return
    _REHEARSED.add(asked)
    missing = [(k, types) for k, types in needed(query, table, answer) if not is_kept(k.kept_name)]
    for kernel, types in reversed(missing):
        if is_ready(kernel, types) is None:
            break


def needed(query: QuerySpec, table: pa.Table, answer: Callable[[QuerySpec, pa.Table], Any]) -> Notes:
    """Loops that can be kept, with the types that they are called with, in this order."""
    own = without_functions(query)
    if own is None:
        return []
    # Copied, so that no array of it holds the whole table. An error will be raised again where it matters.
    few = table.take(pa.array(range(min(ROWS, len(table))), pa.int64()))
    with noting() as notes, suppress(WindrowError):
        answer(own, few)
    return list(notes)


def without_functions(query: QuerySpec) -> QuerySpec | None:
    """The query without windows and aggregates that call functions of the user's; None if nothing is left."""
    windows, aggregates = _built_in(query.windows), _built_in(query.aggregates)
    if not windows or not aggregates:
        return None
    return QuerySpec(query.time, query.key, windows, aggregates, query.ordered)


def _built_in(specs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: spec
        for name, spec in specs.items()
        if not is_users(type(spec)) and not any(callable(getattr(spec, f.name)) for f in fields(spec))
    }
