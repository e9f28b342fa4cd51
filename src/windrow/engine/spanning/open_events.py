"""Rows that open and close events, between an operator and its engine: judged, taken in, and noted as time goes by."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.engine.columns import is_readable
from windrow.engine.input_batches import EventBatch
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.ongoing import FINE, PROBLEMS, Ongoing
from windrow.engine.spanning.release import Release
from windrow.engine.staging import Staged
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.span import Span
from windrow.spec import QuerySpec

Judged = tuple[np.ndarray | None, list[tuple[str, str]]]


class OpenEvents:
    """The events of an operator that are open; `ongoing` is what there is to know of them."""

    def __init__(self, query: QuerySpec, read: tuple[str, ...], schema: pa.Schema, longest: Tick) -> None:
        assert isinstance(query.time, Span)
        assert query.time.id is not None
        self._span = query.time
        columns = pa.schema([field for field in schema if field.name in read or is_readable(field.type)])
        identity = tuple(dict.fromkeys((*query.key, query.time.id)))
        self.ongoing = Ongoing(query.time, columns, identity, longest)

    def judged(self, events: EventBatch, bad: np.ndarray | None, reasons: list[tuple[str, str]]) -> Judged:
        """Bad rows and why, and with them those that open or close what they should not; see `Intake.judged`."""
        known = np.full(len(events), -1) if bad is None else bad
        status, _ = self.ongoing.look_at(events, known >= 0)
        if not status.any():
            return bad, reasons
        wrong = status != FINE
        known[wrong] = len(reasons) + status[wrong]
        columns = [(getattr(self._span, field), why) for field, why in PROBLEMS]
        return known, [*reasons, *columns]

    def take(self, events: EventBatch, engine: Spanning, release: Release) -> tuple[int, np.ndarray]:
        """Take in good rows: how many events were noted, and a mask of the rows that are late."""
        _, source = self.ongoing.look_at(events, np.zeros(len(events), bool))
        noted, after, late = self.ongoing.apply(events, source, engine.final_up_to, engine.missed)
        if len(noted):
            engine.stage(noted).commit()
        release.note(release.lengths(*self.ongoing.ended(events, source)))
        self.ongoing = after
        return len(noted), late

    def note(self, engine: Spanning, watermark: Tick, latest: Tick | None) -> Staged:
        """Note open events as far as windows are about to be given out; `latest` is the latest time that is known.

        Windows can be answered at once. A rollback takes it back.
        """
        if watermark < engine.measure.highest:
            after = self.ongoing.counted_in(*engine.given_out(watermark))
        else:
            # Nothing more comes: what is open now was so up to the latest time that is known.
            reached = engine.lowest if engine.watermark is None else engine.watermark - 1
            after = self.ongoing.ended_at(reached if latest is None else max(reached, latest))
        further = self.ongoing.up_to(after)
        staged = Staged() if further is None else engine.note(further)
        staged.on_rollback(partial(setattr, self, "ongoing", self.ongoing))
        self.ongoing = after
        return staged

    def require_columns(self, name: str, aggregate: Aggregate) -> None:
        """An error if open events came without a column that an aggregate reads which is about to be added."""
        for column in aggregate.columns:
            if column not in self.ongoing.rows.schema.names and len(self.ongoing):
                raise QueryError(
                    f"aggregate {name!r} ({aggregate}) reads column {column!r}, which is not kept of the "
                    f"{len(self.ongoing):,} events that are open: add it when none is"
                )

    def introduce(self, engine: Spanning) -> None:
        """Let an aggregate that was added know the events that are open."""
        if len(self.ongoing):
            engine.meet(self.ongoing.going_on())
