"""By how much a counter that may start again from 0 has grown, as Prometheus has it.

value   3   7   2   5          grows by 4, starts again and grows by 2, grows by 3
increase    4 + 2 + 3 = 9
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Sequence, columns_read, numeric_kind
from windrow.aggregates.sequences import Decode
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
            begins = np.cumsum(steps) - steps
            later = np.arange(steps.sum()) + np.repeat(low + 1 - begins, steps)
            now, before = (decode(at).cast(type_).to_numpy(zero_copy_only=False) for at in (later, later - 1))
            with np.errstate(invalid="ignore", over="ignore"):
                up = np.where(now < before, now, now - before)
                total = np.add.reduceat(up, begins) if len(begins) else up
                about = np.add.reduceat(up.astype(np.float64), begins) if len(begins) else up
            if type_ == pa.int64() and np.any(wrong := np.abs(about) >= 2.0**63):
                raise DataError(self.columns[0], None, about[wrong][0], f"{self} does not fit in 64 bits")
            return pa.array(total, type_).take(pa.array(np.cumsum(grown) - 1, mask=~grown))

        return Bound(Sequence(), (kind,), type_, finish=finish)


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
