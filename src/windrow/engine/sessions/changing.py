"""Windows that come and go while an operator runs.

A new session window is made of the sessions of the next smaller gap, as far back as these are there; the smallest one sees
events from now on. What the next larger gap needs of a window that goes is handed up to it.
"""

from __future__ import annotations

import numpy as np

from windrow.engine.completeness import next_after
from windrow.engine.partials import Multisets
from windrow.engine.sessions.lanes import Lanes
from windrow.engine.sessions.state import SessionState
from windrow.engine.sessions.table import BORN
from windrow.engine.staging import Staged
from windrow.measure import Tick
from windrow.windows.base import Window


def add(engine: SessionState, name: str, window: Window) -> Tick | None:
    """Answer one more window; its first complete start, None if all are."""
    old = engine.lanes
    engine.with_windows({**engine.query.windows, name: window})
    engine.lanes = lanes = Lanes.of(engine.query.windows, engine.measure)
    at = lanes.names.index(name)
    _spread(engine, [j + (j >= at) for j in range(len(old))], len(old))
    start = _complete_start(engine, at)
    if start is not None:
        engine.complete_from["window " + name] = start
    try:
        if 0 < at < lanes.static:
            _copy_events(engine, at)
            if not engine.passes_up:
                _hand_up(engine, at - 1, keep=True)
    except BaseException:
        remove(engine, name)
        raise
    return start


def remove(engine: SessionState, name: str) -> None:
    """Stop answering a window."""
    old = engine.lanes
    j = old.names.index(name)
    if engine.passes_up and j < old.static - 1:
        _hand_up(engine, j, keep=False)
    engine.with_windows({n: w for n, w in engine.query.windows.items() if n != name})
    engine.lanes = Lanes.of(engine.query.windows, engine.measure)
    _spread(engine, [i - (i > j) if i != j else -1 for i in range(len(old))], len(old))
    engine.complete_from.pop("window " + name, None)


def change_mode(engine: SessionState, *, handed_up: bool) -> None:
    """Go on in the other mode; `handed_up` if sessions were made of those of the next smaller gap until now."""
    for j in range(engine.lanes.static - 1) if handed_up else ():
        _hand_up(engine, j, keep=True)
    slots = engine.slices.in_order()
    rows = engine.slices.table[slots]
    rows["flags"], rows["revision"] = 0, 0
    engine.place(rows, slots, 2 * len(slots) + 8)
    engine.slices.changed = engine.slices.changed[0][:0]


def _complete_start(engine: SessionState, at: int) -> Tick | None:
    """From which start on a window is complete that was just added in lane `at`."""
    lanes = engine.lanes
    if engine.highest_time is None:
        return None if engine.watermark is None else next_after(engine.watermark)
    gap = lanes.gap[at] if at < lanes.static else 0
    if at == 0 or at >= lanes.static:
        return next_after(engine.highest_time + gap)
    below, further = engine.complete_from.get("window " + lanes.names[at - 1]), gap - lanes.gap[at - 1]
    floors = [] if below is None else [below + further]
    if engine.watermark is not None:
        # What is gone from the lane below reached less far than the horizon.
        floors.append(next_after(engine.horizon(engine.watermark) + further))
    return max(floors, default=None)


def _copy_events(engine: SessionState, at: int) -> None:
    """Let a lane have the single events of the one below it."""
    lanes = np.arange(engine.owners)
    above = np.where(lanes % len(engine.lanes) == at - 1, lanes + 1, -1)
    for _, log in engine.binding.logs:
        log.share(above)


def _hand_up(engine: SessionState, j: int, *, keep: bool) -> None:
    """Make the sessions of lane j parts of those of lane j + 1; with `keep` they stay where they are, too.

    Nothing changes if a function of the user's fails.
    """
    slices, count = engine.slices, len(engine.lanes)
    there = slices.in_order()
    pieces = there[slices.table["lane"][there] % count == j]
    rows = slices.table[pieces]
    staged = Staged()
    slices.begin()
    staged.on_rollback(slices.rollback)
    try:
        if not keep:
            slices.take_out(pieces)
        gaps = engine.lanes.gaps[j + 1 : j + 2]
        cell = engine.insert(
            rows["lane"] // count, rows["first"], rows["last"], gaps, j + 1, engine.lowest - 1
        )
        for store in engine.stores():
            store.reset(slices.listed(BORN))
        # A piece that went to a slice which was joined to another one then belongs to that.
        joined = slices.joined
        stays = np.arange(slices.capacity)
        stays[joined[1]] = joined[0]
        into, taken = np.concatenate([stays[cell], joined[0]]), np.concatenate([pieces, joined[1]])
        engine.absorb_own(into, taken, 1, staged)
    except BaseException:
        staged.rollback()
        raise
    for store in (engine.presence, *(other for _, other in engine.binding.others)):
        if keep and isinstance(store, Multisets):
            store.copy(into, taken)
        else:
            store.absorb(into, taken, 1)
    if not keep:
        engine.free(taken)
    engine.watch(slices.listed(BORN))


def _spread(engine: SessionState, places: list[int], old: int) -> None:
    """Lane j of each key, of `old` lanes, becomes lane places[j], or is forgotten if that is -1."""
    slices, count, new = engine.slices, len(engine.lanes), np.array(places)
    slots = slices.in_order()
    rows, images = slices.table[slots], slices.changed[0].copy()
    slots, rows = slots[new[rows["lane"] % old] >= 0], rows[new[rows["lane"] % old] >= 0]
    images = images[new[images["lane"] % old] >= 0]
    for moved in (rows, images):
        moved["lane"] = moved["lane"] // old * count + new[moved["lane"] % old]
    keys = np.arange(engine.keys.count)[:, None]
    known = np.full(count, -1)
    known[new[new >= 0]] = np.flatnonzero(new >= 0)
    # A lane that is new has no events: the number that it had is one that no lane had.
    unknown = engine.keys.count * (old + count) + keys * count + np.arange(count)
    engine.renumber_events(np.where(known >= 0, keys * old + known, unknown).ravel())
    engine.place(rows, slots, 2 * len(slots) + 8)
    slices.changed = images
