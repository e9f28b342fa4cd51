"""How the rows of all inputs travel together: the time that orders them, a tag, the columns of each input.

windrow time   windrow tag   id   name   id_right         a join, with the columns as its result has them
10:00:01       0             1    ann    null             a row of the left input
10:00:02       1             null null   1                a row of the right one
10:00:05       2             ..                           a punctuation
10:00:05       3             ..                           the same one, in another bucket: it is counted once
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.measure import Measure
from windrow.spark.task import Work

# Columns that travel before those of the inputs; no user's column is likely to be called so.
TIME, TAG = "windrow time", "windrow tag"
# Tags below these are the numbers of inputs.
PUNCTUATION, COPY = 2, 3


@dataclass(frozen=True)
class Port:
    """An input: its columns, which begin at place `first` of a travelling row."""

    schema: pa.Schema
    first: int

    def table(self, rows: pa.RecordBatch) -> pa.Table:
        """The rows of this input as its operator knows them."""
        columns = rows.columns[self.first : self.first + len(self.schema)]
        return pa.Table.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True)
class BucketSpec(Work):
    """What a bucket runs, and on which rows.

    `recipe` makes the operator, `described` is what it does; `measure` is that of the time by which rows are
    ordered, None where a clock drives the operator. `columns` are those that travel besides time and tag, `schema`
    all that do, `result` those that Spark expects back.
    """

    recipe: bytes
    described: str
    ports: tuple[Port, ...]
    measure: Measure | None
    schema: pa.Schema
    columns: pa.Schema
    result: pa.Schema
    buckets: int

    def made(self, clock: Any) -> Any:
        """A fresh operator on this clock."""
        kind, args, options = pickle.loads(self.recipe)
        return kind(*args, **options, **({"clock": clock} if self.measure is None else {}))

    def _described(self) -> list[str]:
        return [self.described]
