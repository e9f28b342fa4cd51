"""The column of a delta policy: its values as numbers, its threshold, and that it never goes back.

The differences of a delta policy are those of ticks: integers for times, dates and whole numbers, floats for the
rest. A partition whose values go back is refused, and with it the whole batch, before anything has changed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.columns import ticks_of
from windrow.errors import DataError, QueryError
from windrow.measure import Measure
from windrow.policies.layout import LIVE, of
from windrow.policies.spec import Delta
from windrow.rolling.codes import refuse_first
from windrow.schema import require_columns


@jit
def first_backwards(numbers, values, last, table, seen, latest, batch, at, victim):  # type: ignore[no-untyped-def]
    """The first row whose value is less than the one before it in its partition, or -1.

    last:   the last value of each partition that has a subwindow
    latest: scratch; good for partitions that this batch has touched, whose `seen` is its number
    victim: partitions that are evicted on the way, before row `at` is compared; `seen` is then minus its number
    """
    k = 0
    for i in range(numbers.shape[0]):
        while k < at.shape[0] and at[k] == i:
            seen[victim[k]] = -batch
            k += 1
        p = numbers[i]
        if seen[p] == batch:
            if values[i] < latest[p]:
                return i
        else:
            if seen[p] != -batch and table[p, of.FLAGS] & LIVE and values[i] < last[p]:
                return i
            seen[p] = batch
        latest[p] = values[i]
    return -1


_NONE = np.empty(0, np.int64)


@jit
def keep_last(numbers, values, last):  # type: ignore[no-untyped-def]
    """Remember the last value of each partition among these rows."""
    for i in range(numbers.shape[0]):
        last[numbers[i]] = values[i]


class DeltaColumn:
    """A delta policy on a column of a schema; `arrays` are what it keeps for each partition, by its `role`."""

    def __init__(self, role: str, policy: Delta, schema: pa.Schema) -> None:
        require_columns(schema, (policy.column,))
        self._role = role
        self.column = policy.column
        type_ = schema.field(policy.column).type
        try:
            self._measure = Measure(policy.column, type_)
        except QueryError:
            raise QueryError(
                f"{policy}: column {policy.column!r} of type {type_} has no differences; "
                "a number, a date or a timestamp is needed"
            ) from None
        self.threshold = _threshold(policy, self._measure)
        self._batch = 0
        self._unsigned = pa.types.is_uint64(type_)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or int64."""
        return self._measure.dtype

    def arrays(self) -> dict[str, np.dtype[Any]]:
        """What is kept for each partition, by name."""
        types = {"last": self.dtype, "latest": self.dtype, "seen": np.dtype(np.int64)}
        return {f"{word} {self._role}": dtype for word, dtype in types.items()}

    def values(self, batch: pa.RecordBatch) -> np.ndarray:
        """The values of a batch; none may be missing."""
        array = batch.column(self.column)
        values, missing = ticks_of(array, self._measure)
        refuse_first(missing, self.column, array, "a delta policy needs a value in each row")
        if self._unsigned:
            refuse_first(values < 0, self.column, array, "does not fit in 64 bits")
        return values

    def problem(
        self,
        numbers: np.ndarray,
        values: np.ndarray,
        table: np.ndarray,
        arrays: dict[str, np.ndarray],
        evicted: tuple[np.ndarray, np.ndarray] = (_NONE, _NONE),
    ) -> DataError | None:
        """What is wrong with a batch in which the values of a partition go back; None if none do.

        A partition that is evicted may begin anew anywhere; `evicted` are rows, and the partitions evicted before them.
        """
        self._batch += 1
        last, latest, seen = (arrays[f"{word} {self._role}"] for word in ("last", "latest", "seen"))
        row = int(first_backwards(numbers, values, last, table, seen, latest, self._batch, *evicted))
        if row < 0:
            return None
        p = numbers[row]
        before = self._measure.scalar((latest if seen[p] == self._batch else last)[p].item())
        return DataError(
            self.column,
            row,
            self._measure.scalar(values[row].item()),
            f"a delta policy needs values that never go back in a partition, and this comes after {before!r}",
        )


def _threshold(policy: Delta, measure: Measure) -> Any:
    """The threshold in the numbers of the column. Integers differ by more than 1.5 if by more than 1."""
    if policy.nanoseconds is not None:
        if measure.tick_nanoseconds is None:
            raise QueryError(
                f"{policy}: the threshold is a length of time, but {measure.describe()} is not a time: "
                "give a plain number in the column's own unit"
            )
        return np.int64(policy.nanoseconds // measure.tick_nanoseconds)
    assert policy.number is not None
    if measure.floating:
        return np.float64(policy.number)
    return np.int64(min(math.floor(policy.number), 2**63 - 1))
