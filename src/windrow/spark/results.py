"""Results as Spark wants them: its types, and late and bad rows beside the windows where `side_rows` is set.

key .. window start end aggregates ..          side   side_reason   side_row
a      1m     0     60  17                     null   null          null
null   null   null  null null                  late   ..            {the row as it came}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.spark.task import Work

SIDE = ("side", "side_reason", "side_row")
# Rows in one batch of results.
ROWS = 1 << 16


def results(task: Work, windows: list[pa.Table], operator: Any) -> Iterator[pa.RecordBatch]:
    """Batches in the types that Spark expects: these windows, and what the operator has set aside."""
    for table in windows:
        yield from conformed(table, task.result)
    late, bad = operator.late(), operator.bad()
    if task.side_rows:
        reasons = pa.array([task.why_late] * len(late), pa.string())
        yield from _side(task, "late", late, pa.chunked_array([reasons]))
        yield from _side(task, "bad", bad, bad["bad_reason"])


def conformed(table: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The columns of `schema`, cast to its types; null where there is no such column."""
    if not table.num_rows:
        return
    known = set(table.column_names)
    columns = [
        _cast(table.column(f.name), f.type) if f.name in known else pa.nulls(table.num_rows, f.type)
        for f in schema
    ]
    yield from pa.table(columns, schema=schema).combine_chunks().to_batches(max_chunksize=ROWS)


def _cast(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == type_ else pc.cast(column, type_)


def _side(task: Work, side: str, rows: pa.Table, reasons: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    if not rows.num_rows:
        return
    struct = task.result.field("side_row").type
    whole = rows.select([f.name for f in struct]).combine_chunks()
    fields = [_cast(whole.column(f.name), f.type).combine_chunks() for f in struct]
    row = pa.StructArray.from_arrays(fields, fields=list(struct))
    table = pa.table({"side": pa.array([side] * len(row)), "side_reason": reasons, "side_row": row})
    yield from conformed(table, task.result)
