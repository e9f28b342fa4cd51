"""Sessions of events that last: an event holds its session open until its last instant plus the gap.

    time      0    1    2    3    4    5    6    7    8
    events         |--------------|                         gap 2: from the last instant on
                   |----------------------->
                                       |----|
                                       |----------->
    session        |-------------------------------|

So a session of a static gap is one of dynamic gaps: that of an event is the gap and all of its instants but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from windrow.engine.binding import Binding
from windrow.engine.engine import Engine
from windrow.engine.keyed.engine import Keyed
from windrow.engine.keys import Keys
from windrow.engine.loads import Events, Parcel
from windrow.engine.staging import Staged
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.options import OperatorOptions
from windrow.spec import QuerySpec
from windrow.windows.session import Session

GAP = "#gap of "
Late = tuple[np.ndarray, np.ndarray]


class Sessions(Keyed):
    """The engine for sessions of events that last; see the module."""

    def __init__(
        self, query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, keys: Keys | None = None
    ) -> None:
        self._gaps = {name: w.gap for name, w in query.windows.items()}
        windows = {name: Session(None, GAP + name) for name in self._gaps}
        self._fields = tuple(pa.field(GAP + name, pa.int64()) for name in self._gaps)
        super().__init__(replace(query, windows=MappingProxyType(windows)), settings, schema, keys)
        if self.measure.floating:
            raise QueryError(
                f"sessions of events that last need a time of whole ticks, not {self.measure.describe()}"
            )

    @property
    def asked(self) -> QuerySpec:
        windows = {name: Session(gap, None) for name, gap in self._gaps.items() if name in self.query.windows}
        return replace(self.query, windows=MappingProxyType(windows))

    def bound(self, query: QuerySpec, schema: pa.Schema) -> Binding:
        return Binding(query, schema, self.settings.store, self._fields)

    def reach(self) -> tuple[Tick, Tick]:
        low, high = super().reach()
        gaps = [self.measure.ticks(gap, what="gap") for gap in self._gaps.values() if gap is not None]
        return low, high - max(gaps)

    def _with_gaps(self, load: Events | Parcel) -> Events:
        """The events, with the gap of each in a column of its own."""
        assert isinstance(load, Events)
        assert load.lasts is not None
        batch = load.batch
        for name, gap in self._gaps.items():
            if gap is not None:
                ticks = self.measure.ticks(gap, what="gap")
                batch = batch.append_column(GAP + name, pa.array(load.lasts - load.times + ticks))
        return replace(load, batch=batch)

    def bad_values(self, batch: pa.RecordBatch) -> list[tuple[str, np.ndarray, str]]:
        # Gaps are made here, and are good.
        return Engine.bad_values(self, batch)

    def too_late(self, load: Events | Parcel) -> tuple[np.ndarray, np.ndarray] | None:
        return super().too_late(self._with_gaps(load))

    def _stage(self, load: Events | Parcel, staged: Staged) -> None:
        super()._stage(self._with_gaps(load), staged)


def judged_together(engines: Sequence[Engine], lates: list[Late | None]) -> list[Late | None]:
    """What engines find late, where sessions agree: an event that is late for one of them is so for all.

    So it is for events without a duration, which one engine takes for all sessions of a query.
    """
    found = [late for engine, late in zip(engines, lates, strict=True) if isinstance(engine, Sessions)]
    masks = [late for late, _ in (pair for pair in found if pair is not None)]
    if not masks or len(found) == 1:
        return lates
    late = np.logical_or.reduce(masks)
    return [
        (late, late) if isinstance(e, Sessions) else other for e, other in zip(engines, lates, strict=True)
    ]
