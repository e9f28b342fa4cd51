"""The windows of a query that time places, for each key: what they are, and what they need of slices.

`timed` has the loops; this is what the engine asks: where to cut, which windows are due, which events
are too late, which slices are still needed, and which may be joined.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from windrow.engine.cutting import Cut, cut
from windrow.engine.edges import Edges
from windrow.engine.keyed import timed
from windrow.engine.keyed.cutting import Pieces, cut_sorted
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.sequence import gaps_of
from windrow.engine.windows import Due, first_open_start
from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.planner.window_set import WindowSet
from windrow.span import ZERO
from windrow.windows.base import Window
from windrow.windows.tumbling import Tumbling

Scan = tuple[Tick, Tick, bool]


class TimeWindows:
    """See the module. `placed` are the context-free windows; `limit` is the last time that can be cut."""

    def __init__(self, windows: Mapping[str, Window], placed: WindowSet, limit: Tick) -> None:
        self._measure: Measure = placed.measure
        self._placed = placed
        self._limit = limit
        self.sessions, self._dynamic = _sessions(windows, self._measure)
        self.gap: Tick = self.sessions.ticks[0].item() if len(self.sessions.ticks) else -1
        # A session takes an event at its very end: it is over once time has passed its end.
        self.inclusive = np.array([w.inclusive for w in windows.values()])
        self._snapshots = [i for i, w in enumerate(windows.values()) if w.pointwise]
        named = {f"window {name}": window for name, window in windows.items()}
        self._by_edges = Edges(placed)
        self._cells = _cells(named, self.gap, self._measure)
        self._by_cells = None if self._cells is None else Edges(self._cells)

    @property
    def dynamic(self) -> int:
        """How many sessions take their gap from a column."""
        return len(self._dynamic)

    @property
    def pointwise(self) -> bool:
        """Whether events of different times must stay apart."""
        return bool(self._snapshots)

    @property
    def _has_placed(self) -> bool:
        return bool(len(self._placed.every) or self._placed.irregular)

    # -- cutting ---------------------------------------------------------------------------------

    def takes_cells(self, low: Tick, high: Tick) -> bool:
        """Whether events of one key, from `low` to `high`, can be cut without being sorted."""
        if self._dynamic or self._snapshots or self._cells is None:
            return False
        first, last = self._cells.reach
        return bool(first <= low and high <= last)

    def cut_into_cells(self, times: np.ndarray, scan: Scan) -> Cut:
        """Cut at fixed edges, and into cells that no gap fits in."""
        assert self._cells is not None
        assert self._by_cells is not None
        low, high, ordered = scan
        limit = min(self._limit, self._cells.reach[1])
        return cut(times, self._by_cells.enclosing(times, low, high, limit), ordered=ordered)

    def edges_of(self, times: np.ndarray, low: Tick, high: Tick) -> np.ndarray:
        """The beginning of the fixed slice that holds each of these times, which lie in [low, high]."""
        if not self._has_placed:
            return np.full(len(times), self._measure.lowest, times.dtype)
        edges = self._by_edges.enclosing(times, low, high, self._limit)
        return edges[np.searchsorted(edges, times, side="right") - 1]

    def cut(
        self,
        times: np.ndarray,
        bounds: np.ndarray,
        reach: np.ndarray,
        marks: np.ndarray,
        low: Tick,
        high: Tick,
    ) -> Pieces:
        """Cut sorted events at fixed edges, gaps and marks."""
        edges = np.array([self._measure.lowest, self._measure.highest], times.dtype)
        if self._has_placed:
            edges = self._by_edges.enclosing(times, low, high, self._limit)
        return cut_sorted(times, bounds, edges, self.gap, reach, marks, self.pointwise)

    def reach_of(self, batch: pa.RecordBatch, times: np.ndarray) -> np.ndarray:
        """How far each event extends the sessions of each dynamic gap."""
        reach = np.empty((self.dynamic, len(times)), times.dtype)
        for d, window in enumerate(self._dynamic):
            reach[d] = times + gaps_of(window, batch, self._measure)
        return reach

    # -- time goes by ----------------------------------------------------------------------------

    def too_late(
        self, batch: pa.RecordBatch, times: np.ndarray, horizon: Tick, threshold: Tick
    ) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the events that are too late for all windows, and of those among them that have one.

        A session takes an event as long as the session that it would be on its own is not final, as in
        Spark; an event that comes later than that counts in no window of the query.
        """
        if len(self.sessions):
            late = np.zeros(len(times), bool)
            if self.gap > 0:
                late |= times + self.gap < horizon
            late |= (self.reach_of(batch, times) < horizon).any(axis=0)
            return late, late
        gone = times < threshold
        late = self._placed.covers(times) if self._placed.may_leave_gaps else np.ones(len(times), bool)
        if self._snapshots:
            gone &= times < horizon
            late[:] = True
        return gone, gone & late

    def partly_late(self, early: np.ndarray, horizon: Tick) -> np.ndarray:
        """Which of these events, which lie before the horizon, have missed a window."""
        missed = self._placed.earliest_ends(early) <= horizon
        missed |= bool(self._snapshots)
        return missed

    def first_needed(self, horizon: Tick) -> Tick:
        """The first instant that a context-free window which is not final may still ask for."""
        return first_open_start(self._placed, horizon) if self._has_placed else horizon

    # -- slices ----------------------------------------------------------------------------------

    def due(self, slices: KeyedSlices, after: Tick, until: Tick, near: tuple[Tick, Tick]) -> list[Due]:
        """Windows that end in (after, until]; `near` are the same bounds, safe for arithmetic."""
        bounds = slices.bounds()
        parts = self.sessions.due(slices, after, until)
        if len(self._placed.every):
            parts.append(timed.periodic(self._placed, slices, bounds, *near))
        for owner, placement in self._placed.irregular:
            origin = self._placed.origins.get(owner)
            parts.append(timed.irregular(owner, placement, origin, slices, bounds, after, until))
        for spec in self._snapshots:
            parts.append(timed.snapshots(spec, slices, after, until))
        return parts

    def alive(self, slices: KeyedSlices, horizon: Tick, threshold: Tick) -> np.ndarray:
        """Which slices a window may still ask for; sessions that are final are marked on the way."""
        alive = np.zeros(len(slices), bool)
        if self._has_placed:
            alive |= slices.first >= threshold
        if self._snapshots:
            alive |= slices.first >= horizon
        if len(self.sessions):
            alive |= self.sessions.close(slices, horizon)
        return alive

    def apart(self, slices: KeyedSlices, horizon: Tick, near: Tick, threshold: Tick) -> np.ndarray:
        """Whether a window that is not final may begin or end between each slice and the one before."""
        apart = self.sessions.apart(slices)
        moved = slices.edge[1:] != slices.edge[:-1]
        apart[1:] |= moved & (slices.edge[1:] > horizon)
        if self._has_placed:
            starts = self._placed.live_starts(near, threshold)
            group = np.searchsorted(starts, slices.first, side="right")
            apart[1:] |= group[1:] != group[:-1]
        if self._snapshots:
            apart |= slices.first >= horizon
        return apart


def _sessions(windows: Mapping[str, Window], measure: Measure) -> tuple[timed.Sessions, list[Window]]:
    known = list(enumerate(windows.values()))
    static = sorted((measure.ticks(w.gap, what="gap"), i) for i, w in known if w.gap is not None)
    dynamic = [(i, w) for i, w in known if w.gap_column is not None]
    if len(dynamic) > timed.MOST_DYNAMIC:
        raise QueryError(
            f"{len(dynamic)} sessions take their gap from a column, and one query can have {timed.MOST_DYNAMIC}: "
            "divide them over several queries"
        )
    sessions = timed.Sessions(
        np.array([i for _, i in static], np.int64),
        np.array([gap for gap, _ in static], measure.dtype),
        tuple(i for i, _ in dynamic),
    )
    return sessions, [window for _, window in dynamic]


def _cells(windows: Mapping[str, Window], gap: Tick, measure: Measure) -> WindowSet | None:
    """Windows and a grid of cells, such that two events in one cell are always in one session.

    None where the smallest gap is so long that no grid of it can be placed.
    """
    cell = gap / 2 if measure.floating else gap
    cells: dict[str, Window] = {"cell": Tumbling(measure.duration(cell), ZERO)} if gap > 0 else {}
    try:
        return WindowSet.of({**windows, **cells}, measure)
    except QueryError:
        return None
