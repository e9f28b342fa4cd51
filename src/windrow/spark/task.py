"""What a Python worker must know to do its part of a query: one frozen value, sent with every stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from windrow.engine.settings import Settings
from windrow.query import Query

if TYPE_CHECKING:
    from windrow.engine.operator import Operator

# The column that says to which bucket a row belongs; no user's column is likely to be called so.
BUCKET = "windrow bucket"

Stage: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Task:
    """`schema` are the columns that travel, `result` the columns that Spark expects back.

    `combine` allows events to be made into slices before they are shuffled. `side_rows` asks for late and
    bad rows among the results. Keys are spread over `buckets`.
    """

    query: Query
    settings: Settings
    schema: pa.Schema
    result: pa.Schema
    combine: bool
    side_rows: bool
    buckets: int

    def operator(self) -> Operator:
        """A fresh operator for one bucket."""
        from windrow.engine.operator import Operator

        operator = Operator(self.query, self.settings)
        operator.prepare(self.schema)
        return operator

    def is_sliced(self, batch: pa.RecordBatch) -> bool:
        """Whether a batch that `scatter` has sent holds slices, and not events."""
        return batch.schema.names != self.schema.names

    def events(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of `schema` from what Spark sent: zones of timestamps are labels, and Spark's differ."""
        arrays = [batch.column(i).cast(field.type) for i, field in enumerate(self.schema)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
