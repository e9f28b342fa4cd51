"""What an operator needs for events that last: their lifespans, those that are open, and the release delay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.engine import Engine
from windrow.engine.input_batches import EventBatch
from windrow.engine.intake import Bounds
from windrow.engine.spanning.lifespans import BadRowReasons, Lifespans
from windrow.engine.spanning.open_events import OpenEvents
from windrow.engine.spanning.release import Release
from windrow.measure import Tick
from windrow.span import Span
from windrow.spec import QuerySpec


class Lasting:
    """See the module."""

    def __init__(self, query: QuerySpec, engine: Engine, schema: pa.Schema) -> None:
        assert isinstance(query.time, Span)
        self.lifespans = Lifespans(query.time, engine.measure, schema)
        self.release = Release(query.time.release, engine.measure)
        self.said: Tick | None = None
        self.open_events: OpenEvents | None = None
        if query.time.id is not None:
            self.open_events = OpenEvents(query, engine.binding.columns, schema, self.lifespans.longest)

    def read(
        self, batch: pa.RecordBatch, rows: np.ndarray | None, arrival: int, bounds: Bounds
    ) -> tuple[EventBatch, np.ndarray | None, BadRowReasons]:
        """The events of a batch, where they contribute; rows without a time; what is wrong with others."""
        lives = self.lifespans.read(batch, bounds)
        events = EventBatch(batch, lives.starts, arrival, rows, lives.lasts, roles=lives.roles)
        if self.open_events is None:
            events.lengths = self.release.lengths(lives.starts, lives.lasts)
        return self.lifespans.placed(events), lives.missing, lives.culprits

    def released(self, watermark: Tick, reached: Tick | None, lowest: Tick) -> Tick:
        """Up to when windows are complete at a watermark; it never goes back behind what was `reached`."""
        point = max(watermark - self.release.delay, lowest)
        return point if reached is None else max(point, reached)
