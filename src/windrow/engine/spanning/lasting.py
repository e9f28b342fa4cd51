"""What an operator needs for events that last: their lifespans, those that are open, and the release delay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.engine import Engine
from windrow.engine.loads import Events
from windrow.engine.spanning.lifespans import Culprits, Lifespans
from windrow.engine.spanning.open_events import OpenEvents
from windrow.engine.spanning.release import Release
from windrow.measure import Tick
from windrow.query import Query
from windrow.span import Span


class Lasting:
    """See the module."""

    def __init__(self, query: Query, engine: Engine, schema: pa.Schema) -> None:
        assert isinstance(query.time, Span)
        self.lifespans = Lifespans(query.time, engine.measure, schema)
        self.release = Release(query.time.release, engine.measure)
        self.said: Tick | None = None
        self.open_events: OpenEvents | None = None
        if query.time.id is not None:
            read, names = engine.binding.columns, (*query.key, query.time.id)
            columns, identity = (pa.schema([schema.field(name) for name in part]) for part in (read, names))
            self.open_events = OpenEvents(query.time, columns, identity, self.lifespans.longest)

    def read(
        self, batch: pa.RecordBatch, rows: np.ndarray | None, arrival: int, limit: Tick, ahead: Tick | None
    ) -> tuple[Events, np.ndarray | None, Culprits]:
        """The events of a batch, where they contribute; rows without a time; what is wrong with others."""
        lives = self.lifespans.read(batch, limit, ahead)
        events = Events(batch, lives.starts, arrival, rows, lives.lasts, roles=lives.roles)
        return self.lifespans.placed(events), lives.missing, lives.culprits

    def released(self, watermark: Tick, reached: Tick | None, lowest: Tick) -> Tick:
        """Up to when windows are complete at a watermark; it never goes back behind what was `reached`."""
        point = max(watermark - self.release.delay, lowest)
        return point if reached is None else max(point, reached)
