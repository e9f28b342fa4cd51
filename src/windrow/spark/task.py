"""What a Python worker must know to do its part: one frozen value, sent with every stage.

`Work` is what the stages ask of such a value, whatever it is about; `Task` is a query.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from windrow.options import OperatorOptions
from windrow.spark.buckets import names
from windrow.spec import QuerySpec

if TYPE_CHECKING:
    from windrow.engine.operator import Operator
    from windrow.spark.micro_batch import MicroBatch

# The column that says to which bucket a row belongs; no user's column is likely to be called so.
BUCKET = "windrow bucket"
# What the identity of a task says behind its hash if there is a bucket for each partition.
BY_PARTITION = "-by-partition"

Stage: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Work(ABC):
    """What buckets do, and with what. `schema` are the columns that travel, `result` those that Spark expects.

    An `operator` is what a bucket holds: it has `snapshot`, `metrics`, `counters`, `late` and `bad`, as those
    of queries have. `side_rows` asks for late and bad rows among the results, with `why_late` beside the late ones.
    """

    schema: pa.Schema
    result: pa.Schema
    side_rows: bool
    buckets: int
    # Whether there is a bucket for each partition of the stream's state.
    by_partition = False
    # Whether rows may be made into slices before they are shuffled, as those of a `Task`.
    combine: bool
    why_late: str

    @property
    def clocked(self) -> bool:
        """Whether micro-batches come with the time of day, and not with a watermark."""
        return False

    def events(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of `schema`, in its types, from what Spark sent: zones of timestamps are labels, and Spark's differ."""
        arrays = [batch.column(i).cast(field.type) for i, field in enumerate(self.schema)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @abstractmethod
    def judge(self) -> Any:
        """What finds bad rows before rows travel, by its method `sift`."""

    @abstractmethod
    def operator(self) -> Any:
        """A fresh operator for one bucket."""

    @abstractmethod
    def restored(self, state: bytes) -> Any:
        """The operator that a snapshot is of, as it was then."""

    # Whether an operator can go on with another query than it began with.
    can_change = False

    def go_on(self, operator: Any, *, is_changed: bool) -> None:  # noqa: B027 - most cannot change
        """Let an operator go on with what is asked now; `is_changed` if its `identity` was another."""

    def complete_from(self, operator: Any) -> dict[str, Any]:
        """From which start on what came later is complete; the starts are those of the column `start` of the result."""
        return {}

    @abstractmethod
    def apply(self, operator: Any, batch: MicroBatch) -> list[pa.Table]:
        """Take in a micro-batch; what it emits."""

    def replay(self, operator: Any, batches: Iterator[MicroBatch]) -> None:
        """Take in the micro-batches of a log again; what they emit was emitted before and is dropped."""
        for batch in batches:
            self.apply(operator, batch)
            operator.late(), operator.bad()

    def timer(self, operator: Any, instant: int) -> int:
        """When the bucket wants to be woken, in milliseconds, now that it is `instant`; 0 if by rows alone.

        Spark fires the timers of (old watermark, new one]: this one with the next move.
        """
        return instant + 1

    def identity(self) -> str:
        """What a bucket computes, as a hash, and over how many of them: with other buckets, keys would change places."""
        columns = [f"{field.name} {field.type}" for field in (*self.schema, *self.result)]
        first, *others = self._described()
        said = "\n".join([first, *columns, *others, str(self.buckets)])
        return f"{hashlib.sha256(said.encode()).hexdigest()}{BY_PARTITION * self.by_partition} {self.buckets}"

    def bucket_names(self) -> list[int]:
        """What buckets are called in the state, by their numbers."""
        return names(self.buckets) if self.by_partition else list(range(self.buckets))

    @abstractmethod
    def _described(self) -> list[str]:
        """What is computed, and how, as text."""


@dataclass(frozen=True)
class Task(Work):
    """A query, whose keys are spread over `buckets`, one for each partition if these are `by_partition`."""

    query: QuerySpec
    settings: OperatorOptions
    schema: pa.Schema
    result: pa.Schema
    combine: bool
    side_rows: bool
    buckets: int
    by_partition: bool = False

    why_late = "came when all of its windows were final"

    def operator(self) -> Operator:
        """A fresh operator for one bucket."""
        from windrow.engine.operator import Operator

        operator = Operator(self.query, self.settings)
        operator.prepare(self.schema)
        return operator

    def restored(self, state: bytes) -> Operator:
        """The operator that a snapshot is of, perhaps of an earlier form of the query."""
        from windrow.engine.operator import Operator

        return Operator.restored(self.query, state, emit=self.settings.emit)

    can_change = True

    def go_on(self, operator: Operator, *, is_changed: bool) -> None:
        """Let an operator answer the query of now, with the options of now."""
        if is_changed:
            operator.change(self.query, schema=self.schema, **vars(self.settings))
        elif operator.settings.on_bad != self.settings.on_bad:
            operator.reconfigure(replace(operator.settings, on_bad=self.settings.on_bad))

    def complete_from(self, operator: Operator) -> dict[str, Any]:
        """From which start on windows and aggregates that came later are complete."""
        return operator.complete_from()

    def apply(self, operator: Operator, batch: MicroBatch) -> list[pa.Table]:
        """Process the events or slices of a micro-batch and advance; the windows that are emitted."""
        from windrow.spark.micro_batch import apply

        return apply(operator, batch, self.is_sliced)

    def replay(self, operator: Operator, batches: Iterator[MicroBatch]) -> None:
        """As `Work.replay`; bad rows of a log were diverted, whatever `on_bad` is now."""
        operator.reconfigure(replace(operator.settings, on_bad="divert"))
        super().replay(operator, batches)

    def _described(self) -> list[str]:
        """The plan and the options but `on_bad`, as bad rows leave nothing in the state; `emit` where it is not what it was
        before there was a choice."""
        from windrow.engine.snapshot.plan import plan_hash

        said = {name: value for name, value in vars(self.settings).items() if name != "on_bad"}
        if self.settings.trigger is None:
            del said["emit"]
        settings = [f"{name}={value}" for name, value in said.items()]
        return [plan_hash(self.query).hex(), *settings]

    def judge(self) -> Operator:
        """An operator of the query, whose `sift` finds bad rows."""
        return self.operator()

    def is_sliced(self, batch: pa.RecordBatch) -> bool:
        """Whether a batch that `scatter` has sent holds slices, and not events."""
        from windrow.engine.intake.slice_batches import FIRST, LAST, SIZE

        names = batch.schema.names
        return names != self.schema.names and {FIRST, LAST, SIZE} <= set(names)
