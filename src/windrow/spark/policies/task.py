"""What a Python worker must know to run an operator over policy windows: a value, sent with every stage.

Spark loads it in a process of its own whenever a stream starts, and does not wait long: so the operator is in
it as bytes, and nothing here needs windows before there are rows.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.measure import Measure
from windrow.spark.task import Work

if TYPE_CHECKING:
    from windrow.policies.operators.base import Operator
    from windrow.spark.micro_batch import MicroBatch
    from windrow.spark.policies.driven import Driven
    from windrow.spark.policies.inbox import Judge


# Columns that travel before those of the inputs, see `rows`; no user's column is likely to be called so.
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
class PolicyTask(Work):
    """An operator over policy windows.

    `recipe` makes the operator, `described` is what it does; `measure` is that of the time by which rows are
    ordered, None where a clock drives the operator. `columns` are those that travel besides time and tag.
    """

    recipe: bytes
    described: str
    ports: tuple[Port, ...]
    measure: Measure | None
    schema: pa.Schema
    columns: pa.Schema
    result: pa.Schema
    side_rows: bool
    buckets: int
    combine: bool = False
    why_late: str = "came when the watermark had passed it"

    @property
    def clocked(self) -> bool:
        """See `Work`."""
        return self.measure is None

    def made(self, clock: Any) -> Operator:
        """A fresh operator on this clock."""
        kind, args, options = pickle.loads(self.recipe)
        return kind(*args, **options, **({"clock": clock} if self.clocked else {}))

    def judge(self) -> Judge:
        """See `Work`."""
        from windrow.spark.policies.inbox import Judge

        return Judge(self.measure)

    def operator(self) -> Driven:
        """See `Work`."""
        from windrow.spark.policies.driven import Driven

        return Driven(self)

    def restored(self, state: bytes) -> Driven:
        """See `Work`."""
        from windrow.spark.policies.driven import Driven

        return Driven(self, state)

    def apply(self, operator: Driven, batch: MicroBatch) -> list[pa.Table]:
        """See `Work`."""
        return operator.apply(batch)

    def timer(self, operator: Driven, instant: int) -> int:
        """See `Work`: the next move of the watermark, or what is due next on the clock."""
        return operator.due if self.clocked else super().timer(operator, instant)

    def _told(self) -> list[str]:
        return [self.described]
