"""Which loops a query will need, found out by asking it over a few events as plain Python.

Functions of the user's own are left out: they may do more than compute, and are compiled where they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.compiling.fingerprint import is_users
from windrow.compiling.folder import is_kept
from windrow.compiling.tiers import COMPILE, STEP, TIER, Notes, noting
from windrow.engine.intake.columns import ticks_of
from windrow.errors import WindrowError
from windrow.measure import Measure, Tick
from windrow.spec import QuerySpec
from windrow.windows.base import Periodic, placements

if TYPE_CHECKING:
    from collections.abc import Callable

# Events of a rehearsal, and how many of them are in the shortest period: enough to open a few windows, and answered in
# some hundredths of a second.
ROWS, PER_PERIOD = 64, 3
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
    notes: Notes = []
    with suppress(WindrowError):  # it will be raised again where it matters
        # Copied, so that no array of it holds the whole table.
        few = table.take(pa.array(_spread(own, table)))
        with noting(len(table) // max(1, len(few))) as notes:
            answer(own, few)
    return list(notes)


def _spread(query: QuerySpec, table: pa.Table) -> np.ndarray:
    """The first rows, and behind them a few in each period, so that windows have as many slices as they will have.

    Where times are not in order, they are rows like any others.
    """
    name = query.time_columns[0]
    measure = Measure(name, table.schema.field(name).type)
    step = step_of(query, measure)
    first = np.arange(min(ROWS if step is None else ROWS // 2, len(table)))
    if step is None or not len(first):
        return first
    times, _ = ticks_of(table.column(name).combine_chunks(), measure)
    behind = times[first[-1]] + times.dtype.type(step) * np.arange(1, len(first) + 1)
    return np.union1d(first, np.minimum(np.searchsorted(times, behind), len(table) - 1))


def step_of(query: QuerySpec, measure: Measure) -> Tick | None:
    """A distance of events of which a few are in the shortest period of a query; None if it has no windows of time."""
    placed = [p for w in query.windows.values() if w.layout == "aligned" for p in placements(w, measure)]
    periods = [part.every for part in placed if isinstance(part, Periodic)]
    if not periods:
        return None
    return min(periods) / PER_PERIOD if measure.floating else max(1, int(min(periods)) // PER_PERIOD)


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
