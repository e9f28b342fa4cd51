"""Rows that cannot be taken in: bad ones, and how they are told from good ones.

A row is bad if it has no time, if its windows could not be expressed, if it lies too far ahead, if it
breaks the promised order, or if a value that the query reads makes no sense there. The first bad row
of a batch is an error that names column, row and value; or all bad rows are diverted, with a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.engine import Engine
from windrow.engine.intake.columns import shown
from windrow.errors import DataError
from windrow.measure import Tick
from windrow.options import OperatorOptions

NO_TIME = "an event needs a time, and this one has none"
NO_EDGES = "the edges of its windows would overflow the column's type, or leave the calendar"
NO_ORDER = "comes after a later event, and the query promises ordered=True"


@dataclass
class Bounds:
    """What a time may be: from `lowest` to `highest`, at most `ahead`, not before `floor` if ordered."""

    lowest: Tick
    highest: Tick
    ahead: Tick | None
    floor: Tick | None

    @classmethod
    def of(
        cls, engines: Sequence[Engine], settings: OperatorOptions, watermark: Tick | None, floor: Tick | None
    ) -> Bounds:
        ahead, furthest = None, settings.bound_ahead
        if furthest is not None and watermark is not None:
            ahead = watermark + engines[0].measure.ticks(furthest, what="max_ahead")
        lowest, highest = engines[0].lowest, engines[0].highest
        for engine in engines[1:]:
            lowest, highest = max(lowest, engine.lowest), min(highest, engine.highest)
        return cls(lowest, highest, ahead, floor)

    def hold(self, low: Tick, high: Tick, ordered: bool) -> bool:
        """Whether no time can be wrong: the common case, told from the extremes."""
        if self.floor is not None and (not ordered or low < self.floor):
            return False
        if self.ahead is not None and high > self.ahead:
            return False
        return bool(low >= self.lowest and high <= self.highest)


class Intake:
    """Finds the bad rows of batches of one query."""

    def __init__(self, time: str, settings: OperatorOptions, *, ordered: bool) -> None:
        self._time = time
        self._settings = settings
        self._ordered = ordered

    def judged(
        self,
        engines: Sequence[Engine],
        bounds: Bounds,
        batch: pa.RecordBatch,
        times: np.ndarray,
        scan: tuple[Tick, Tick, bool],
        missing: np.ndarray | None,
        known: Sequence[tuple[str, np.ndarray, str]] = (),
    ) -> tuple[np.ndarray | None, list[tuple[str, str]]]:
        """For each row a number of a list of reasons, or -1, and that list; None if all rows are good.

        `known` are rows that are bad for a reason that was found before: the column, a mask, the reason.
        """
        values = [wrong for engine in engines for wrong in engine.bad_values(batch)]
        if missing is None and not known and not values and bounds.hold(*scan):
            return None, []
        found = [] if missing is None else [(self._time, missing, NO_TIME)]
        found += [*known, (self._time, (times < bounds.lowest) | (times > bounds.highest), NO_EDGES)]
        if bounds.ahead is not None:
            reason = f"is more than {self._settings.max_ahead} ahead of the watermark"
            found.append((self._time, times > bounds.ahead, reason))
        found += values
        bad = np.full(len(times), -1)
        for number, (_, wrong, _) in enumerate(found):
            bad[wrong & (bad < 0)] = number
        reasons = [(column, reason) for column, _, reason in found]
        if self._ordered:
            floor = bounds.lowest if bounds.floor is None else bounds.floor
            highest = np.maximum.accumulate(np.where(bad >= 0, floor, np.maximum(times, floor)))
            bad[(bad < 0) & (times < highest)] = len(reasons)
            reasons.append((self._time, NO_ORDER))
        return (bad, reasons) if (bad >= 0).any() else (None, [])

    def refuse(
        self, batch: pa.RecordBatch, bad: np.ndarray | None, reasons: list[tuple[str, str]]
    ) -> tuple[np.ndarray, pa.Table] | None:
        """An error for the first bad row, or a mask of the good ones and a table of the bad ones; None if all are good.

        `bad` and `reasons` (column and what is wrong) are as `judged` gives them.
        """
        if bad is None:
            return None
        rows = np.flatnonzero(bad >= 0)
        if self._settings.on_bad == "raise":
            row = int(rows[0])
            column, problem = reasons[int(bad[row])]
            raise DataError(column, row, shown(batch.column(column)[row]), problem)
        said: list[Any] = [f"column {column!r}: {problem}" for column, problem in reasons]
        table = pa.Table.from_batches([batch.take(pa.array(rows))])
        why = pa.array(said, pa.string()).take(pa.array(bad[rows]))
        return bad < 0, table.append_column("bad_reason", why)
