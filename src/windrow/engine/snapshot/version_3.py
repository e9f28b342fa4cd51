"""The section of an engine for sessions and snapshot windows in format version 3, read as slices of today.

Version 3 had one list of slices for each key, cut by the smallest gap, and a number that said for how many of the gaps,
from the smallest up, a slice is final. So a lane has the slices that are not final for its window, joined where its gap
lies between no two of them:

    slices          o o   ooo        o    oo        final for the first gap: the first two
    gap 2                            |-|  |--|
    gap 5           |---------|      |-------|      update mode
    gap 5           |---------|                     append mode: a lane has what is final for the smaller gaps

In update mode rows were kept of all sessions that were emitted and are not final. Those that are as they were belong to
slices that are emitted; the others are changes to emit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.partials import Multisets
from windrow.engine.sequence.ticks import after
from windrow.engine.sessions.engine import Sessions
from windrow.engine.sessions.table import EMITTED
from windrow.engine.snapshot import common
from windrow.engine.snapshot.parts import Reader
from windrow.engine.staging import Staged
from windrow.errors import StateError

# Parts of `closed`: how many static gaps a slice is final for, and a bit for each gap of a column.
STATIC, DYNAMIC = 2**32 - 1, 32
GIVEN = ("key", "spec", "start", "end", "count", "opening", "closing", "revision")
EMPTY = np.empty(0, np.int64)


def is_section(reader: Reader, prefix: str) -> bool:
    """Whether a section is one of version 3 for sessions, or for windows that depend on order."""
    return reader.has(prefix + "slices edge")


def read(reader: Reader, engine: Sessions, about: dict[str, Any], prefix: str) -> None:
    """Fill an engine whose strings and instants were read."""
    key, first, last, closed, reach = _read_slices(reader, engine, prefix)
    count = len(key)
    for store in engine.stores():
        store.repack(EMPTY, count, 1, slice(0, 0))
    common.read_stores(reader, engine, prefix, count, 1)
    if np.any(engine.presence.n[:count] < 1):
        raise StateError("the snapshot has slices without events")
    lanes, waits = engine.lanes, np.zeros(count, bool)
    parts, sources, targets = [], [], []
    made = 0
    for j in range(len(lanes)):
        is_open = ~_final(engine, j, last, closed)
        if engine.passes_up and j < lanes.static:
            is_open &= ~waits
            waits |= is_open
        held = np.flatnonzero(is_open)
        ends = last[held] + lanes.gaps[j] if j < lanes.static else reach[j - lanes.static, held]
        group = _sessions_of(key[held], first[held], ends)
        heads = np.flatnonzero(np.diff(group, prepend=-1))
        rows: Any = np.zeros(len(heads), engine.slices.table.dtype)
        rows["lane"], rows["first"] = key[held][heads] * len(lanes) + j, first[held][heads]
        if len(heads):
            rows["last"], rows["reach"] = (np.maximum.reduceat(c, heads) for c in (last[held], ends))
        parts.append(rows)
        sources.append(held)
        targets.append(made + group)
        made += len(rows)
    rows, source, target = np.concatenate(parts), np.concatenate(sources), np.concatenate(targets)
    _copy(engine, source, target, count, made)
    images = _read_emitted(reader, engine, prefix, rows, engine.presence.n[count : count + made])
    order = np.lexsort((rows["first"], rows["lane"]))
    engine.place(rows[order], count + order, 2 * made + 8)
    engine.slices.changed = images
    _spread_events(engine)


def _read_slices(reader: Reader, engine: Sessions, prefix: str) -> tuple[np.ndarray, ...]:
    """Keys, first and last times, what the slices are final for, and how far they reach by gaps of columns."""
    tick = engine.measure.dtype
    dtypes = {"key": np.int64, "first": tick, "last": tick, "edge": tick, "closed": np.int64}
    columns = {name: reader.array(f"{prefix}slices {name}", dtype) for name, dtype in dtypes.items()}
    key, first, last, closed = (columns[name] for name in ("key", "first", "last", "closed"))
    reach = reader.array(f"{prefix}slices reach", tick)
    dynamic = len(engine.lanes) - engine.lanes.static
    ranked = reader.array(f"{prefix}slices ranked", np.int64)
    if any(len(c) != len(key) for c in columns.values()) or len(reach) != dynamic * len(key) or len(ranked):
        raise StateError("the columns of the snapshot's slices are not of one length")
    reach = reach.reshape(dynamic, len(key))
    if np.any((key < 0) | (key >= engine.keys.count)):
        raise StateError("the snapshot refers to keys that it does not have")
    step = np.diff(key)
    if np.any(step < 0) or np.any((step == 0) & (np.diff(first) < 0)) or np.any(last < first):
        raise StateError("the snapshot's slices are not in order")
    inside = (first >= engine.lowest) & (last <= engine.highest)
    if (
        not inside.all()
        or np.any(reach < last)
        or np.any(reach >= engine.measure.highest)
        or np.any(closed < 0)
    ):
        raise StateError("the snapshot's slices lie outside the times that the query can handle")
    return key, first, last, closed, reach


def _final(engine: Sessions, j: int, last: np.ndarray, closed: np.ndarray) -> np.ndarray:
    """Which slices are final for the window of lane j."""
    lanes = engine.lanes
    if j >= lanes.static:
        return (closed >> (DYNAMIC + j - lanes.static) & 1).astype(bool)
    if not lanes.closed[j]:
        return closed & STATIC > np.count_nonzero(~lanes.closed[:j])
    # Snapshot windows are final by their time alone.
    return np.zeros(len(last), bool) if engine.watermark is None else last < engine.horizon(engine.watermark)


def _sessions_of(key: np.ndarray, first: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """The number of the session of each slice: slices of a key, which are sorted, are in one if one reaches the next."""
    count = len(key)
    order = np.argsort(reach, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    furthest = order[np.maximum.accumulate(key * count + rank) % max(1, count)]
    new = np.ones(count, bool)
    new[1:] = (key[1:] != key[:-1]) | (first[1:] > reach[furthest[:-1]])
    return np.cumsum(new) - 1


def _copy(engine: Sessions, source: np.ndarray, target: np.ndarray, count: int, made: int) -> None:
    """Let `made` more slots, behind the first `count`, hold what was in these: slot count + target[i] takes source[i]."""
    for store in engine.stores():
        store.repack(np.arange(count), count + made, 1, slice(0, 1))
    engine.absorb_own(count + target, source, 1, Staged())
    for store in (engine.presence, *(other for _, other in engine.binding.others)):
        if isinstance(store, Multisets):
            store.copy(count + target, source)
        else:
            store.absorb(count + target, source, 1)


def _read_emitted(reader: Reader, engine: Sessions, prefix: str, rows: Any, sizes: np.ndarray) -> Any:
    """Mark the slices that were emitted as they are; what else was emitted, as it was then."""
    ticks = {"start": engine.measure.dtype, "end": engine.measure.dtype}
    columns = {name: reader.array(f"{prefix}given {name}", ticks.get(name, np.int64)) for name in GIVEN}
    reader.array(prefix + "dirty", np.int64)
    key, spec, lanes = columns["key"], columns["spec"], engine.lanes
    fine = all(len(column) == len(key) for column in columns.values())
    if not fine or np.any((spec < 0) | (spec >= len(lanes)) | (key < 0) | (key >= engine.keys.count)):
        raise StateError("the rows given out in the snapshot do not fit its windows")
    if len(key) and engine.settings.mode == "append":
        raise StateError("the snapshot has rows to revise, and its windows are final")
    lane = np.argsort(lanes.spec)[spec]
    identity = [("lane", np.int64), ("first", engine.measure.dtype), ("end", engine.measure.dtype)]
    then, now = np.zeros(len(key), identity), np.zeros(len(rows), identity)
    then["lane"], then["first"], then["end"] = key * len(lanes) + lane, columns["start"], columns["end"]
    now["lane"], now["first"], now["end"] = rows["lane"], rows["first"], rows["reach"]
    closed = lanes.closed[rows["lane"] % len(lanes)]
    now["end"][closed] = after(rows["last"][closed])
    number = np.unique(np.concatenate([now, then]), return_inverse=True)[1]
    place = np.full(len(number), -1)
    place[number[: len(now)]] = np.arange(len(now))
    at = place[number[len(now) :]]
    # Rows that were deleted have a count of -1: what was deleted never comes back.
    live = columns["count"] >= 0
    there = live & (at >= 0)
    rows["revision"][at[there]] = columns["revision"][there]
    same = there & (columns["count"] == sizes[at])
    rows["flags"][at[same]] = EMITTED
    changed = live & ~same
    images = np.zeros(np.count_nonzero(changed), rows.dtype)
    images["lane"], images["first"] = then["lane"][changed], then["first"][changed]
    images["revision"] = columns["revision"][changed]
    images["last"], images["reach"] = images["first"], then["end"][changed]
    images["reach"][lanes.closed[lane[changed]]] = images["first"][lanes.closed[lane[changed]]]
    static = lane[changed] < lanes.static
    gap = np.append(lanes.gaps[:, 0], np.zeros(len(lanes) - lanes.static, lanes.dtype))[lane[changed]]
    images["last"][static] = images["reach"][static] - gap[static]
    return images


def _spread_events(engine: Sessions) -> None:
    """Let each lane of a key have the single events of it that are in its slices."""
    if not engine.binding.logs:
        return
    lane, count = np.arange(engine.owners), len(engine.lanes)
    engine.renumber_events(np.where(lane % count == 0, lane // count, engine.keys.count + lane))
    for j in range(1, count):
        for _, log in engine.binding.logs:
            log.share(np.where(lane % count == j - 1, lane + 1, -1))
    engine.forget_events()
