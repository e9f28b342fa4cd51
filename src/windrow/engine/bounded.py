"""A query over bounded data: the operator, fed in time order and finished.

A table is sorted by time first if it is not, so that windows can be emitted as it goes and state
stays small, and so that it can be divided between threads (see `threads`); an iterator of batches is taken in as it
comes, and so are rows that open and close events.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine import rehearsal
from windrow.engine.intake.columns import as_table, is_whole, whole
from windrow.engine.intake.projection import projected, rows_of
from windrow.engine.operator import Operator
from windrow.engine.results import joined, with_selected
from windrow.engine.threads import Advance, are_in_order, ignore, in_parts
from windrow.options import OperatorOptions, threads_of
from windrow.schema import require_columns
from windrow.span import Span
from windrow.spec import NOTHING, QuerySpec

# About so many rows are taken in at once.
BATCH = 1 << 20


def run(
    query: QuerySpec,
    events: Any,
    *,
    on_bad: str,
    threads: int | None = None,
    advance: Advance = ignore,
    filled: bool = False,
) -> pa.Table:
    """As `Query.run`, over data in memory; `filled` windows alone are those of one operator, which sees all events."""
    operator = Operator(replace(query, select=NOTHING), OperatorOptions(on_bad=on_bad))
    found = answer(
        operator, events, threads=1 if filled else threads_of(threads), advance=advance, filled=filled
    )
    return with_selected(query.select, found)


def answer(
    operator: Operator, events: Any, *, threads: int = 1, advance: Advance = ignore, filled: bool = False
) -> pa.Table:
    """What a fresh operator says to bounded data, or as many operators as there are threads say together.

    `advance` is told how many rows were taken in since it was last called; `filled` asks for windows that the events fill.
    """
    end = operator.finish_filled if filled else partial(_finish, operator)
    query = operator.query
    as_they_come = isinstance(query.time, Span) and query.time.id is not None
    if as_they_come or (not is_whole(events)):
        return end([operator.process(events)])
    table = as_table(events)
    if operator.projection is not None and not operator.projection.is_done(table.schema):
        return _projected(operator, table, threads, advance, filled=filled)
    if rehearsal.is_worth_it(len(table)):
        rehearsal.begin(query, table, partial(run, on_bad="divert"))
    times, missing = operator.instants(whole(table))
    if missing is not None:
        operator.take_events(table)
        return end([])
    order, in_order = None, are_in_order(times, threads)
    if not in_order and not query.ordered:
        order, in_order = np.argsort(times, kind="stable"), True
        table, times = table.take(pa.array(order)), times[order]
    batch = _batch_size(len(times))
    parts = in_parts(operator, table, times, threads, batch, advance) if in_order else None
    if parts is not None:
        return joined(parts)
    parts = []
    for begin in range(0, len(times), batch):
        with rows_of(range(begin, len(times)) if order is None else order[begin:]):
            operator.take_events(table.slice(begin, batch))
        advance(min(batch, len(times) - begin))
        if begin + batch < len(times):
            following = operator.highest_time if query.ordered else times[begin + batch].item()
            if following is not None:
                parts.append(operator.complete_to(following))
    return end(parts)


def _finish(operator: Operator, rows: list[pa.Table]) -> pa.Table:
    """These rows and what is left."""
    return joined([*rows, operator.finish()])


def _batch_size(rows: int) -> int:
    """Rows per batch: an even number of batches, so that two threads get as many each."""
    if rows <= BATCH:
        return BATCH
    pairs = max(1, round(rows / (2 * BATCH)))
    return -(-rows // (2 * pairs))


def _projected(
    operator: Operator, table: pa.Table, threads: int, advance: Advance, *, filled: bool
) -> pa.Table:
    """The answer to a table once everything is computed of it."""
    projection, settings = operator.projection, operator.settings
    assert projection is not None
    projection.require_new_names(table.schema)
    if settings.on_bad == "raise":
        read = operator.query.source_columns
        require_columns(table.schema, read)
        table = table.select(list(read))
    made = projection(whole(table), on_bad=settings.on_bad)
    rest = projected(operator.query)
    if rest != operator.query:
        operator = Operator(rest, settings)
    operator.put_bad_aside(made.bad)
    with rows_of(made.rows):
        whole_table = pa.Table.from_batches([made.batch])
        return answer(operator, whole_table, threads=threads, advance=advance, filled=filled)


def column(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    chunks = table.column(name)
    return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
