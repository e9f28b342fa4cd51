"""Spark's state variables as plain dictionaries: what is tested with them is our own bookkeeping."""

from __future__ import annotations

import copy
from typing import Any

import pyarrow as pa

from windrow.engine.operator import Operator
from windrow.spark.micro_batch import MicroBatch
from windrow.spark.state import Bucket
from windrow.spark.task import Task


class Variable:
    """A value state: one tuple of columns, or nothing."""

    def __init__(self) -> None:
        self.value: Any = None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


class Mapped:
    """A map state; how often it was read is counted."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.reads = 0

    def getValue(self, key: Any) -> Any:
        self.reads += 1
        return self.values.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.values[key] = value

    def removeKey(self, key: Any) -> None:
        del self.values[key]


class Timers:
    """Spark's timers of one bucket; one that was registered must be deleted, or fire, once."""

    def __init__(self) -> None:
        self.set: set[int] = set()

    def registerTimer(self, moment: int) -> None:
        assert moment not in self.set
        self.set.add(moment)

    def deleteTimer(self, moment: int) -> None:
        self.set.remove(moment)


class Store:
    """The state of bucket 3, as it is committed."""

    def __init__(self) -> None:
        self.head, self.base, self.log = Variable(), Mapped(), Mapped()

    def saved(self) -> Store:
        return copy.deepcopy(self)

    def bucket(self, task: Task) -> Bucket:
        return Bucket(task, task.identity(), 3, self.head, self.base, self.log)

    def step(self, task: Task, batch: MicroBatch) -> tuple[Operator, list[pa.Table]]:
        """What one call of the stage does: the operator that did it, and what it gave out."""
        bucket = self.bucket(task)
        operator = bucket.operator
        given = task.apply(operator, batch)
        bucket.write(batch, timer=batch.watermark + 1)
        return operator, given
