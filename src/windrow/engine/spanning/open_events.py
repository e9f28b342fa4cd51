"""Rows that open and close events, between an operator and its engine: judged, taken in, and noted as time goes by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.loads import Events
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.opened import PROBLEMS, Opened
from windrow.measure import Tick
from windrow.span import Span

Judged = tuple[np.ndarray | None, list[tuple[str, str]]]


class OpenEvents:
    """The events of an operator that are open; `opened` is what there is to know of them."""

    def __init__(self, span: Span, columns: pa.Schema, identity: pa.Schema, longest: Tick) -> None:
        self._span = span
        self.opened = Opened(span, columns, identity, longest)

    def judged(self, events: Events, bad: np.ndarray | None, reasons: list[tuple[str, str]]) -> Judged:
        """Bad rows and why, and with them those that open or close what they should not; see `Intake.judged`."""
        known = np.full(len(events), -1) if bad is None else bad
        status, _ = self.opened.look_at(events, known >= 0)
        if not status.any():
            return bad, reasons
        known[status > 0] = len(reasons) + status[status > 0]
        return known, [*reasons, *((self._span.end, problem) for problem in PROBLEMS)]

    def take(self, events: Events, engine: Spanning) -> tuple[int, np.ndarray]:
        """Take in good rows: how many events were noted, and a mask of the rows that are late."""
        _, source = self.opened.look_at(events, np.zeros(len(events), bool))
        noted, after, late = self.opened.apply(events, source, engine.missed)
        if len(noted):
            engine.take(noted)
        self.opened = after
        return len(noted), late

    def note(self, engine: Spanning, watermark: Tick, latest: Tick | None) -> None:
        """Note open events as far as windows are about to be given out; `latest` is the latest time that is known."""
        point = engine.latest_given_out(watermark)
        if watermark >= engine.measure.highest:
            # Nothing more comes: what is open now was so up to the latest time that is known.
            reached = engine.lowest if engine.watermark is None else engine.watermark - 1
            point = reached if latest is None else max(reached, latest)
        further = self.opened.further(point)
        if further is not None:
            engine.take(further)
        self.opened.noted_up_to(point, counted=point >= engine.threshold)
