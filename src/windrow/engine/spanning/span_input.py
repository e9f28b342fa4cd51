"""What an operator needs for span events: reads their lifespans, follows those that are open, and delays windows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.engine.aligned.engine import Aligned
from windrow.engine.engine import Engine
from windrow.engine.intake.bad_rows import Bounds
from windrow.engine.intake.batches import EventBatch
from windrow.engine.intake.columns import is_readable
from windrow.engine.spanning.lifespans import BadRowReasons, Lifespans
from windrow.engine.spanning.open_events import FINE, PROBLEMS, OpenEvents
from windrow.engine.spanning.release import Release
from windrow.engine.spanning.spans import Spans
from windrow.engine.staging import Staged
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.span import Span
from windrow.spec import QuerySpec

Judged = tuple[np.ndarray | None, list[tuple[str, str]]]


class SpanInput:
    """See the module; `open` are the events that have begun and are not over, where rows may open and close them."""

    def __init__(self, query: QuerySpec, engine: Engine, schema: pa.Schema) -> None:
        assert isinstance(query.time, Span)
        self._span = query.time
        self.lifespans = Lifespans(query.time, engine.measure, schema)
        self.release = Release(query.time.release, engine.measure)
        # The watermark as the user has said it.
        self.said: Tick | None = None
        self.open: OpenEvents | None = None
        if query.time.id is not None:
            read = engine.binding.columns
            columns = pa.schema([field for field in schema if field.name in read or is_readable(field.type)])
            identity = tuple(dict.fromkeys((*query.key, query.time.id)))
            self.open = OpenEvents(query.time, columns, identity, self.lifespans.longest)

    def read(
        self, batch: pa.RecordBatch, rows: np.ndarray | None, arrival: int, bounds: Bounds
    ) -> tuple[EventBatch, np.ndarray | None, BadRowReasons]:
        """The events of a batch, where they contribute; rows without a time; what is wrong with others."""
        lives = self.lifespans.read(batch, bounds)
        events = EventBatch(batch, lives.starts, arrival, rows, lives.lasts, roles=lives.roles)
        if self.open is None:
            events.lengths = self.release.lengths(lives.starts, lives.lasts)
        return self.lifespans.placed(events), lives.missing, lives.culprits

    def released(self, watermark: Tick, reached: Tick | None, lowest: Tick) -> Tick:
        """Up to when windows are complete at a watermark; it never goes back behind what was `reached`."""
        point = max(watermark - self.release.delay, lowest)
        return point if reached is None else max(point, reached)

    # -- rows that open and close events: one engine has all windows ---------------------------------

    def judged(self, events: EventBatch, bad: np.ndarray | None, reasons: list[tuple[str, str]]) -> Judged:
        """Bad rows and why, and with them those that open or close what they should not; see `Intake.judged`."""
        if self.open is None:
            return bad, reasons
        known = np.full(len(events), -1) if bad is None else bad
        status, _ = self.open.look_at(events, known >= 0)
        if not status.any():
            return bad, reasons
        wrong = status != FINE
        known[wrong] = len(reasons) + status[wrong]
        columns = [(getattr(self._span, field), why) for field, why in PROBLEMS]
        return known, [*reasons, *columns]

    def take(self, events: EventBatch, engine: Engine) -> tuple[int, np.ndarray]:
        """Take in good rows: how many events were folded, and a mask of the rows that are late."""
        assert self.open is not None
        assert isinstance(engine, Aligned)
        _, source = self.open.look_at(events, np.zeros(len(events), bool))
        final = engine.clamp(engine.lowest - 1)
        if engine.watermark is not None:
            final = engine.horizon(engine.watermark)
        pieces, after, late = self.open.apply(events, source, final, engine.missed)
        if len(pieces):
            engine.stage(pieces).commit()
        self.release.note(self.release.lengths(*self.open.ended(events, source)))
        self.open = after
        return len(pieces), late

    def carry_on(self, engine: Engine, watermark: Tick, latest: Tick | None) -> Staged:
        """Fold open events as far as windows are about to be given out; `latest` is the latest time that is known.

        Windows can be answered at once. A rollback takes it back.
        """
        staged = Staged()
        if self.open is None:
            return staged
        spans = engine.spans
        assert isinstance(spans, Spans)
        if watermark < engine.measure.highest:
            after = self.open.counted_in(*spans.given_out(watermark))
        else:
            # Nothing more comes: what is open now was so up to the latest time that is known.
            reached = engine.lowest if engine.watermark is None else engine.watermark - 1
            after = self.open.ended_at(reached if latest is None else max(reached, latest))
        further = self.open.up_to(after)
        if further is not None:
            staged = spans.carry_on(further)
        staged.on_rollback(partial(setattr, self, "open", self.open))
        self.open = after
        return staged

    def require_columns(self, name: str, aggregate: Aggregate) -> None:
        """An error if open events came without a column that an aggregate reads which is about to be added."""
        for column in aggregate.columns:
            if self.open and column not in self.open.rows.schema.names:
                raise QueryError(
                    f"aggregate {name!r} ({aggregate}) reads column {column!r}, which is not kept of the "
                    f"{len(self.open):,} events that are open: add it when none is"
                )

    def introduce(self, engine: Engine) -> None:
        """Let an aggregate that was added know the events that are open."""
        if self.open:
            assert isinstance(engine.spans, Spans)
            engine.spans.introduce(self.open.going_on())
