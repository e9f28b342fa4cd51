"""A watermark that follows the events of an operator, by partition, and the clock where these are silent.

Of each partition there are two numbers: its newest event, and when by the clock an event came last. A call costs its events, and a
look at the partitions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from windrow.engine.intake.batches import EventBatch
from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import Keys
from windrow.errors import QueryError, StateError
from windrow.measure import Measure, Tick
from windrow.schema import require_columns
from windrow.watermarks import Watermark


class Following:
    """How far the partitions of a stream have come, and when they were heard last."""

    def __init__(
        self,
        spec: Watermark,
        measure: Measure,
        schema: pa.Schema,
        clock: Callable[[], int],
        *,
        by_clock: bool,
    ) -> None:
        require_columns(schema, spec.per)
        self.spec, self._measure, self._clock = spec, measure, clock
        # Whether the clock alone says what time it is.
        self._by_clock = by_clock
        self._delay = measure.ticks(spec.delay, what="delay")
        unit = measure.tick_nanoseconds
        if unit is None and spec.idle is not None:
            raise QueryError(
                f"idle is a length of time by the clock, and {measure.describe()} is not a time that goes on by it"
            )
        self._unit = unit or 1
        self._partitions = Keys(pa.schema([schema.field(name) for name in spec.per]))
        self._newest = np.empty(0, measure.dtype)
        self._heard = np.empty(0, np.int64)

    def require_same(self, schema: pa.Schema) -> None:
        """An error unless a later batch names its partitions as the first one did."""
        require_columns(schema, self.spec.per)
        for known in self._partitions.schema:
            now = schema.field(known.name).type
            if now != known.type:
                raise QueryError(
                    f"column {known.name!r} was {known.type} in the first batch and is {now} in this one"
                )

    def note(self, events: EventBatch) -> None:
        """Know of events that came in now; of span events, of their ends."""
        times = events.times if events.lasts is None else events.lasts
        if not len(times):
            return
        numbers = self._partitions.numbers(events.batch)
        more = self._partitions.count - len(self._newest)
        if more:
            self._newest = np.append(self._newest, np.full(more, self._measure.lowest, self._newest.dtype))
            self._heard = np.append(self._heard, np.zeros(more, np.int64))
        if numbers is None:
            self._newest[0] = max(self._newest[0], times.max())
            self._heard[0] = self._clock()
        else:
            np.maximum.at(self._newest, numbers, times)
            self._heard[numbers] = self._clock()

    def watermark(self) -> Tick | None:
        """The watermark as of now; None before the first event. It may be behind that of before."""
        now = self._clock()
        if self._by_clock:
            return now // self._unit
        if not len(self._newest):
            return None
        newest, idle = self._newest, self.spec.idle
        if idle is not None:
            assert idle.nanoseconds is not None
            speaks = now - self._heard < idle.nanoseconds
            if not speaks.any():
                passed = (now - self._heard.max().item()) // self._unit
                return self._before(newest.max().item() + passed)
            newest = newest[speaks]
        return self._before(newest.min().item())

    def _before(self, tick: Tick) -> Tick:
        return min(max(tick - self._delay, self._measure.lowest), self._measure.highest)

    def save(self) -> tuple[pa.Table, np.ndarray, np.ndarray]:
        """The partitions, the newest event of each, and how long it has been silent."""
        partitions = pa.Table.from_arrays(self._partitions.columns, schema=self._partitions.schema)
        return partitions, self._newest, self._clock() - self._heard

    def load(self, partitions: pa.Table, newest: np.ndarray, silent: np.ndarray) -> None:
        """The opposite of `save`. As long as nothing ran, no partition was silent."""
        if partitions.schema != self._partitions.schema:
            raise StateError("the partitions of the snapshot are not those of its watermark")
        if self.spec.per:
            columns = list(whole(partitions).columns)
            self._partitions = Keys.of(self._partitions.schema, columns)
        if not len(newest) == len(silent) <= self._partitions.count or (silent < 0).any():
            raise StateError("the snapshot does not say how far each of its partitions has come")
        self._newest, self._heard = newest.copy(), self._clock() - silent
