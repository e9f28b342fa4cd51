"""Answers from events that were kept: quantiles, distinct values, lists.

Each window is computed on its own, from its events. The values of a window are sorted when it ends, once for all
aggregates that read the column; a list is its events in the order of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Multiset
from windrow.engine.aligned.cutting import Cells as Placed
from windrow.engine.binding import Answer
from windrow.engine.partials import Multisets
from windrow.engine.windows import ClosedWindows


@dataclass
class Kept:
    """Event `position[i]`, in the order of time, belongs to row `row[i]` of the result.

    `codes` are columns by name, `present` the rows that are not null (0 or 1) by group of columns.
    """

    position: np.ndarray
    row: np.ndarray
    codes: dict[str, np.ndarray]
    present: dict[tuple[str, ...], np.ndarray]

    def of(self, columns: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Positions and rows, without nulls in these columns."""
        mask = self.present.get(columns)
        if mask is None:
            return self.position, self.row
        there = mask[self.position] != 0
        return self.position[there], self.row[there]


def kept_column(answer: Answer, kept: Kept, rows: int, decoders: list[Any]) -> pa.Array:
    """The column of an aggregate's answers from the events of its windows."""
    position, row = kept.of(answer.columns)
    codes = kept.codes[answer.columns[0]]
    bound = answer.bound
    number = np.arange(rows)
    if isinstance(bound.partial, Multiset):
        sets = Multisets(floating=bound.kinds[0] == "f")
        sets.repack(number[:0], rows, 1, slice(0, 0))
        sets.fold(Placed(row), [codes[position]], ())
        due = ClosedWindows(number, number, number, number, number + 1)
        return sets.answer(bound, due, number, (number, np.zeros(rows, np.int64)), decoders)
    order = np.argsort(row, kind="stable")
    position, row = position[order], row[order]
    low, high = np.searchsorted(row, number), np.searchsorted(row, number, side="right")
    return bound.finish(low, high, lambda chosen: decoders[0](codes[position[chosen]], None))
