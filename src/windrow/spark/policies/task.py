"""What a Python worker must know to run an operator over policy windows: a value, sent with every stage.

Spark loads it in a process of its own whenever a stream starts, and does not wait long: so the operator is in
it as bytes, and nothing here needs windows before there are rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.spark.policies.rows import BucketSpec

if TYPE_CHECKING:
    from windrow.spark.micro_batch import MicroBatch
    from windrow.spark.policies.bucket_runner import BucketRunner
    from windrow.spark.policies.inbox import Judge


@dataclass(frozen=True)
class PolicyTask(BucketSpec):
    """A bucket of an operator over policy windows, with what Spark's stages ask of it."""

    side_rows: bool
    combine: bool = False
    why_late: str = "came when the watermark had passed it"

    @property
    def clocked(self) -> bool:
        """Whether windows go by the clock: there is no time column then."""
        return self.measure is None

    def judge(self) -> Judge:
        """What finds rows without a time."""
        from windrow.spark.policies.inbox import Judge

        return Judge(self.measure)

    def operator(self) -> BucketRunner:
        """A fresh runner, which makes an operator for its bucket."""
        return self.restored(None)

    def restored(self, state: bytes | None) -> BucketRunner:
        """The runner that a snapshot is of; a fresh one of None."""
        from windrow.spark.policies.bucket_runner import BucketRunner

        return BucketRunner(self, state)

    def apply(self, operator: BucketRunner, batch: MicroBatch) -> list[pa.Table]:
        """Take in a micro-batch; what the operator emits."""
        return operator.apply(batch)

    def timer(self, operator: BucketRunner, instant: int) -> int:
        """When to be woken: at the next move of the watermark, or when something is due on the clock."""
        return operator.due if self.clocked else super().timer(operator, instant)
