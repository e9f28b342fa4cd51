"""By how much a counter that may start again from 0 has grown, as Prometheus has it.

value   3   7   2   5          grows by 4, starts again and grows by 2, grows by 3
increase    4 + 2 + 3 = 9
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Sequence, columns_read, numeric_kind
from windrow.aggregates.distinct_values import add_integers
from windrow.aggregates.numerics import subtract_wide
from windrow.aggregates.sequences import Decode
from windrow.aggregates.sum import find_overflow
from windrow.errors import DataError
from windrow.expressions import ColumnLike


@dataclass(frozen=True)
class Increase(Aggregate):
    """The sum of all steps up, and of the values after steps down."""

    columns: tuple[str, ...]
    name = "increase"
    algebra = Algebra("holistic", commutative=False)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        type_ = pa.int64() if pa.types.is_integer(types[0]) else pa.float64()

        def finish(low: np.ndarray, high: np.ndarray, decode: Decode) -> pa.Array:
            grown = high - low >= 2
            low, steps = low[grown], (high - low)[grown] - 1
            # Where the steps of each window begin, and the place of the later value of each step.
            offsets = np.concatenate([[0], np.cumsum(steps)])
            later = np.arange(offsets[-1]) + np.repeat(low + 1 - offsets[:-1], steps)
            now, before = (decode(at).cast(type_).to_numpy(zero_copy_only=False) for at in (later, later - 1))
            added = self._added if type_ == pa.int64() else _added_floats
            total = added(offsets, now, before)
            return pa.array(total, type_).take(pa.array(np.cumsum(grown) - 1, mask=~grown))

        return Bound(Sequence(), (kind,), type_, finish=finish)

    def _added(self, offsets: np.ndarray, now: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The increase of each window in 64 bits, of sums in 128 bits, so that nothing is lost on the way."""
        grown, defined = add_integers(offsets, now)
        taken, _ = add_integers(offsets, np.where(now < before, 0, before))
        words = list(subtract_wide(*grown, *taken))
        overflow = find_overflow(words, defined)
        if overflow is not None:
            raise DataError(self.columns[0], None, overflow[1], f"{self} does not fit in 64 bits")
        return words[0]


def _added_floats(offsets: np.ndarray, now: np.ndarray, before: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        up = np.where(now < before, now, now - before)
        return np.add.reduceat(up, offsets[:-1]) if len(up) else up


def increase(column: ColumnLike, *, where: ColumnLike | None = None) -> Increase:
    """By how much a counter has grown over the events of a window, where it may start again from 0.

    A value below the one before it, by time and arrival, is a new start: the counter has grown by that value since. What it grows between windows belongs to
    none of them; divided by the seconds of a window it is a rate.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Increase
        An aggregate of type int64 for integers, else float64: null below two values.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.increase("requests"))
    'increase(requests)'
    """
    return Increase(columns_read(column, where=where))
