"""Sessions out: those that have ended become rows, and what is final leaves its lane.

In append mode static gaps share their work (Scotty, section 6.1): a session of a larger gap is made of whole sessions
of the next smaller one. So an event goes to the lane of the smallest gap alone, and a session that is final there is
handed up to the next lane: the same slice with the same partials, unless it touches a slice there that it is joined to.

    gap 2     o o      o o o            o
              |---|    |----|           |--|
    gap 5     |-------------------|     |- ..      two sessions so far; the third waits until gap 2 has it final

What is final in a lane is its oldest slices, so lanes are gone through from there, and only the oldest slice of a lane
is in the heap. In update mode a session may be emitted long before it is final: each lane takes all events, all slices are
in the heap, and rows that late events have changed are emitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.emission import Emission
from windrow.engine.sequence.ticks import after
from windrow.engine.sessions.state import SessionState
from windrow.engine.sessions.table import ALIVE, EMITTED, ENDED, LAST, NONE, REACH, START, TOUCHED
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.measure import Tick


@dataclass
class Passage:
    """Between `due` and `pass_to`: what was found, and how to undo it."""

    horizon: Tick
    point: Tick
    popped: np.ndarray
    joined: tuple[np.ndarray, np.ndarray] = (NONE, NONE)
    ended: np.ndarray = field(default_factory=lambda: NONE)
    shown: np.ndarray = field(default_factory=lambda: NONE)
    revision: np.ndarray = field(default_factory=lambda: NONE)
    # Where rows come early: what was emitted before and is final now, and which changes are not emitted yet.
    final: np.ndarray = field(default_factory=lambda: NONE)
    held: np.ndarray = field(default_factory=lambda: NONE)
    later: np.ndarray = field(default_factory=lambda: NONE)
    staged: Staged = field(default_factory=Staged)


def emit_final(engine: SessionState, passage: Passage) -> list[pa.RecordBatch]:
    """Append mode: the rows of sessions that are final, from the smallest gap up."""
    if not len(passage.popped):
        return []
    slices = engine.slices
    levels = engine.lanes.static if engine.passes_up else 0
    passage.popped.sort()  # neighbours in the table were often born together
    found = slices.end(passage.popped, engine.lanes.gaps, levels, engine.floors, passage.horizon)
    order, first, last, lane, key, times = found
    passage.joined = slices.joined
    passage.ended = slices.listed(ENDED).astype(np.int64)
    emission = Emission(engine, order)
    if len(first):
        emission.emit(as_windows(engine, lane, key, times, first, last))
    if len(passage.joined[0]):
        engine.absorb_own(*passage.joined, 1, passage.staged)
    return emission.batches


def as_windows(
    engine: SessionState, lane: np.ndarray, key: np.ndarray, times: Any, first: np.ndarray, last: np.ndarray
) -> ClosedWindows:
    """Sessions, by start, last event and reach, as windows of these slices of an emission."""
    start, end, order = times[START], times[REACH], None
    if engine.lanes.some_closed:
        end = np.where(engine.lanes.closed[lane], after(times[LAST]), end)
    if engine.binding.logs:
        # Events of other sessions, which are final, may lie in its time.
        none = np.zeros(len(start), np.int64)
        order = (start, none, after(times[LAST]), none)
    return ClosedWindows(engine.lanes.spec[lane], start, end, first, last, key, order)


def _as_windows(
    engine: SessionState, rows: np.ndarray, first: np.ndarray, final: np.ndarray | None
) -> ClosedWindows:
    """Rows of the table as windows of a slice each, which are `final` where rows say so."""
    count = len(engine.lanes)
    times = rows["first"].copy(), rows["last"], rows["reach"].copy()
    lane = rows["lane"].astype(np.int64)
    due = as_windows(engine, lane % count, lane // count, times, first, first + 1)
    due.final = final if engine.settings.is_early else None
    return due


def _same(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Which slices are of the lane and the time that they were of."""
    same = now["flags"] & ALIVE > 0
    for name in ("lane", "first", "reach"):
        same &= before[name] == now[name]
    return np.asarray(same)


def revise(engine: SessionState, passage: Passage) -> list[pa.RecordBatch]:
    """Update mode: rows that events have changed since they were emitted, and sessions that have ended.

    Where rows come early, changes of sessions that do not end by the emission point are held, and a session that was emitted
    comes once more when it is final.
    """
    slices, early = engine.slices, engine.settings.is_early
    again = slices.revisited.astype(np.int64)
    over = slices.table["reach"][again] < passage.point
    unchanged = passage.final[slices.table["flags"][passage.final] & EMITTED > 0]
    passage.ended = np.concatenate([passage.popped, again[over], unchanged])
    passage.later = NONE if early else again[~over]
    passage.shown, now = passage.ended, slices.table[passage.ended]
    if engine.complete_from:
        seen = now["first"] >= engine.floors[now["lane"] % len(engine.lanes)]
        passage.shown, now = passage.ended[seen], now[seen]
    emission = Emission(engine, passage.shown)
    passage.revision, final = np.zeros(len(now), np.int64), now["reach"] < passage.horizon
    images, rows = slices.changed
    passage.held = np.zeros(len(images), bool)
    if not len(images) and not len(unchanged):
        if len(now):
            emission.emit(_as_windows(engine, now, np.arange(len(now)), final))
        return emission.batches
    if early:
        held = slices.table[rows]
        passage.held = (held["flags"] & ALIVE > 0) & (held["flags"] & TOUCHED > 0)
        passage.held &= held["reach"] >= passage.point
        images, rows = images[~passage.held], rows[~passage.held]
    same = _same(images, slices.table[rows])
    gone = images[~same]
    if len(gone):
        none = np.zeros(len(gone), np.int64)
        due = _as_windows(engine, gone, none, none.astype(bool))
        emission.change(due, "delete", gone["revision"].astype(np.int64) + 1)
    known = np.isin(passage.shown, rows[same]) | (now["flags"] & EMITTED > 0)
    passage.revision[known] = now["revision"][known] + 1
    for op, which in (("update", known), ("insert", ~known)):
        if which.any():
            due = _as_windows(engine, now[which], np.flatnonzero(which), final[which])
            emission.change(due, op, passage.revision[which])
    return emission.batches
