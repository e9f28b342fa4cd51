"""The section of an engine for windows that depend on the order of events.

What the speculative track holds is not written: it follows from the settled one and the events that wait.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.ordered.changelog import EmittedWindows
from windrow.engine.ordered.columns import NULL, Columns, filled
from windrow.engine.ordered.engine import Ordered
from windrow.engine.ordered.slices import RANK, Slices
from windrow.engine.ordered.track import Track, WindowRanges
from windrow.engine.ordered.waiting import Chunk
from windrow.engine.sequence.checks import bad_inputs
from windrow.engine.snapshot import common
from windrow.engine.snapshot.parts import Reader, Writer, known_tick, number
from windrow.engine.staging import Staged
from windrow.errors import StateError

FOUND = (*WindowRanges.NUMBERS, *WindowRanges.TICKS)
SLICES = ("rank", "opening", "closing", "first", "last")


def write(writer: Writer, engine: Ordered, prefix: str) -> dict[str, Any]:
    """Write arrays; what JSON says beside them."""
    engine.grow()
    track, count = engine.settled, engine.keys.count
    key, numbers, ticks = track.slices.all()
    writer.array(prefix + "slices key", key)
    for name, column in zip(SLICES, (*numbers[:-1], *ticks), strict=True):
        writer.array(f"{prefix}slices {name}", column)
    common.write_stores(writer, engine, prefix, numbers[-1], 1)
    for name in ("seen", "last", "cut"):
        writer.array(prefix + name, getattr(track, name)[:count])
    found = WindowRanges.joined([WindowRanges.empty(track.tick), *track.found])
    for name in FOUND:
        writer.array(f"{prefix}found {name}", getattr(found, name))
    for i, (_, discretizer) in enumerate(track.discretizers):
        for name, column in discretizer.save().items():
            writer.array(f"{prefix}discretizer {i} {name}", column)
    emitted = engine.changelog.emitted()
    for field in fields(EmittedWindows):
        writer.array(f"{prefix}given {field.name}", getattr(emitted, field.name))
    _write_waiting(writer, engine, prefix)
    return {"frontier": number(engine.last_horizon)}


def _write_waiting(writer: Writer, engine: Ordered, prefix: str) -> None:
    waiting = engine.waiting.everything()
    if waiting is None:
        return
    writer.array(prefix + "pending time", waiting.time)
    writer.array(prefix + "pending arrival", waiting.arrivals)
    for name, column in zip(engine.columns.names, waiting.columns, strict=True):
        writer.array(f"{prefix}pending {name}", filled(column, len(waiting)))
    if engine.query.key:
        assert waiting.number is not None
        writer.array(prefix + "pending number", waiting.number)


def read(reader: Reader, engine: Ordered, about: dict[str, Any], prefix: str) -> None:
    """The opposite of `write`."""
    measure = engine.measure
    engine.last_horizon = known_tick(measure, about["frontier"], "up to when events are in order")
    engine.grow()
    _read_slices(reader, engine, prefix)
    _read_track(reader, engine, engine.settled, prefix)
    _read_emitted(reader, engine, prefix)
    _read_waiting(reader, engine, prefix)
    engine.make_all_stale()


def _require_keys(key: np.ndarray, keys: int) -> None:
    if np.any((key < 0) | (key >= keys)):
        raise StateError("the snapshot refers to keys that it does not have")


def _read_slices(reader: Reader, engine: Ordered, prefix: str) -> None:
    slices = engine.settled.slices
    key = reader.array(prefix + "slices key", np.int64)
    tick = engine.settled.tick
    dtypes = (np.dtype(np.int64),) * 3 + (tick,) * 2
    columns = [reader.array(f"{prefix}slices {n}", d) for n, d in zip(SLICES, dtypes, strict=True)]
    if any(len(column) != len(key) for column in columns):
        raise StateError("the columns of the snapshot's slices are not of one length")
    _require_keys(key, engine.keys.count)
    rank, opening, closing, first, last = columns
    step = np.diff(key)
    disordered = (np.diff(rank) <= 0) | (first[1:] < last[:-1])
    if np.any(step < 0) or np.any((step == 0) & disordered) or np.any(last < first):
        raise StateError("the snapshot's slices are not in order")
    if np.any(rank < 0) or np.any(opening < 0) or np.any(closing < 0):
        raise StateError("the snapshot's slices are not in the order of their events")
    if not ((first >= engine.lowest) & (last <= engine.highest)).all():
        raise StateError("the snapshot's slices lie outside the times that the query can handle")
    count = len(key)
    engine.slots.fill(0, 0)
    engine.slots.take(count)
    engine.slots.fill(count, engine.slots.capacity)
    common.read_stores(reader, engine, prefix, count, 1)
    if np.any(engine.presence.n[:count] < 1):
        raise StateError("the snapshot has slices without events")
    slices.fill(key, np.array([rank, opening, closing, np.arange(count)]), np.array([first, last], tick))


def _read_track(reader: Reader, engine: Ordered, track: Track, prefix: str) -> None:
    keys, slices = engine.keys.count, track.slices
    seen, last = reader.array(prefix + "seen", np.int64), reader.array(prefix + "last", track.tick)
    cut = reader.array(prefix + "cut", np.int64)
    if not len(seen) == len(last) == len(cut) == keys or np.any((seen < 0) | (seen >= 2**62)):
        raise StateError("the snapshot's counts of events do not fit its keys")
    if np.any((cut < 0) | (cut > 1)):
        raise StateError("the snapshot does not say whether a slice ends")
    track.seen[:keys], track.last[:keys], track.cut[:keys] = seen, last, cut
    engine.waiting.passed[:keys] = seen
    for i, (_, discretizer) in enumerate(track.discretizers):
        try:
            discretizer.load(reader.arrays(f"{prefix}discretizer {i} "), keys, seen)
        except ValueError as problem:
            raise StateError(f"discretizer {i} of the snapshot: {problem}") from problem
    # The live slices of a key follow one another up to the last event that was released.
    key, (rank, *_, slot), _ = slices.all()
    following = seen[key]
    same = key[1:] == key[:-1]
    following[:-1][same] = rank[1:][same]
    if np.any(rank + engine.presence.n[slot] != following):
        raise StateError("the snapshot's slices hold other events than those that there were")
    track.found = _read_found(reader, track, prefix, keys)
    for _, discretizer in track.discretizers:
        _require_cut(slices, *discretizer.anchors_of(np.arange(keys), np.zeros(keys, np.int64)), seen)
        tail = discretizer.tail(seen, np.arange(keys))
        if tail is not None:
            _require_apart(slices, tail, seen, engine.presence.n)
    track.rearm(np.arange(keys))


def _read_found(reader: Reader, track: Track, prefix: str, keys: int) -> list[WindowRanges]:
    old = WindowRanges.empty(track.tick)
    columns = {name: reader.array(f"{prefix}found {name}", getattr(old, name).dtype) for name in FOUND}
    count = len(columns["spec"])
    known = {int(spec) for specs, _ in track.discretizers for spec in specs}
    if any(len(c) != count for c in columns.values()) or not set(columns["spec"].tolist()) <= known:
        raise StateError("the windows that wait in the snapshot are not those of the query")
    found = WindowRanges(
        np.array([columns[name] for name in WindowRanges.NUMBERS]),
        np.array([columns[name] for name in WindowRanges.TICKS]),
    )
    _require_keys(found.key, keys)
    seen = track.seen
    fine = (found.begin >= 0) & (found.begin < found.end) & (found.end <= seen[found.key])
    if not fine.all() or np.any((found.named < 0) | (found.named > 1)):
        raise StateError("the windows that wait in the snapshot hold events that are not there")
    _require_cut(track.slices, found.key, found.begin, seen)
    behind = found.end < seen[found.key]
    _require_cut(track.slices, found.key[behind], found.end[behind], seen)
    return [found] if count else []


def _require_cut(slices: Slices, key: np.ndarray, rank: np.ndarray, seen: np.ndarray) -> None:
    """A StateError if a slice does not begin at each of these ranks."""
    at = slices.at_rank(key, rank)
    inside = at < slices.end[key]
    if not inside.all() or np.any(slices.numbers[RANK, at] != rank):
        raise StateError("the windows of the snapshot begin or end where no slice does")


def _require_apart(slices: Slices, tail: np.ndarray, seen: np.ndarray, sizes: np.ndarray) -> None:
    """A StateError if an event of a tail is not a slice of its own."""
    key, (rank, *_, slot), _ = slices.all()
    inside = rank >= tail[key]
    held = np.bincount(key[inside], minlength=len(tail))
    if np.any(tail < 0) or np.any(sizes[slot[inside]] != 1) or np.any(held != np.maximum(seen - tail, 0)):
        raise StateError("the snapshot lacks events that a window may begin with")


def _read_emitted(reader: Reader, engine: Ordered, prefix: str) -> None:
    old = engine.changelog.emitted()
    columns = [
        reader.array(f"{prefix}given {f.name}", getattr(old, f.name).dtype) for f in fields(EmittedWindows)
    ]
    rows = EmittedWindows(*columns)
    specs = len(engine.query.windows)
    if any(len(c) != len(rows) for c in columns) or np.any((rows.spec < 0) | (rows.spec >= specs)):
        raise StateError("the rows given out in the snapshot do not fit its windows")
    _require_keys(rows.key, engine.keys.count)
    if len(rows) and engine.speculative is None:
        raise StateError("the snapshot has rows to revise, and its windows are final")
    engine.changelog.put(rows)


def _read_waiting(reader: Reader, engine: Ordered, prefix: str) -> None:
    if not reader.has(prefix + "pending time"):
        return
    time = reader.array(prefix + "pending time", engine.measure.dtype)
    arrival = reader.array(prefix + "pending arrival", np.int64)
    numbers = reader.array(prefix + "pending number", np.int64) if engine.query.key else None
    if not len(time) or any(len(c) != len(time) for c in (arrival, time if numbers is None else numbers)):
        raise StateError("the events that wait in the snapshot are not complete")
    if numbers is not None:
        _require_keys(numbers, engine.keys.count)
    if not ((time >= max(engine.lowest, engine.last_horizon)) & (time <= engine.highest)).all():
        raise StateError("the events that wait in the snapshot lie outside the times that can be handled")
    if np.any(np.diff(arrival) <= 0) or np.any((arrival < 0) | (arrival >= 2**62)):
        raise StateError("the events that wait in the snapshot are not in the order of their arrival")
    chunk = Chunk([], time, arrival, numbers, time.min(), time.max(), False)
    old = reader.has(prefix + "pending")
    chunk.columns = (_read_rows if old else _read_columns)(reader, engine, chunk, prefix)
    engine.waiting.inbox.append(chunk)


def _read_columns(reader: Reader, engine: Ordered, chunk: Chunk, prefix: str) -> Columns:
    """What is kept of the events that wait."""
    kept = engine.columns
    columns: Columns = [
        reader.array(f"{prefix}pending {name}", dtype)
        for name, dtype in zip(kept.names, kept.dtypes, strict=True)
    ]
    if any(len(filled(column, 0)) != len(chunk) for column in columns):
        raise StateError("the events that wait in the snapshot are not complete")
    flags = kept.flags(columns)
    for name, coder in kept.coders.items():
        null = flags.get((name, NULL), np.zeros(len(chunk), bool))
        if coder.text and not np.array_equal(columns[kept.value_of(name)] == -1, null):
            raise StateError(f"the events that wait in the snapshot lack strings of column {name!r}")
    for name, window in engine.query.windows.items():
        counted = chunk.time >= engine.complete_from.get("window " + name, chunk.low)
        inputs = [column[counted] for column in kept.inputs_of(columns, name)]
        if bad_inputs(window, inputs, chunk.time[counted], engine.measure):
            raise StateError("the events that wait in the snapshot have values that no event may have")
    return columns


def _read_rows(reader: Reader, engine: Ordered, chunk: Chunk, prefix: str) -> Columns:
    """Format version 5 has the rows of events as they came."""
    table = reader.table(prefix + "pending").combine_chunks()
    names = list(engine.binding.value_columns)
    types = [engine.binding.schema.field(name).type for name in names]
    if table.column_names != names or table.num_rows != len(chunk):
        raise StateError("the events that wait in the snapshot lack columns")
    for name, type_ in zip(names, types, strict=True):
        if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
            continue
        if table.schema.field(name).type != type_ and not pa.types.is_dictionary(type_):
            raise StateError(f"the events that wait in the snapshot have another type in {name!r}")
    batch = table.to_batches()[0]
    # Events that waited before a window was added may lack what it reads; it does not count them.
    floors = {name: engine.complete_from.get("window " + name) for name in engine.query.windows}
    counted = {
        n: batch if at is None else batch.filter(pa.array(chunk.time >= at)) for n, at in floors.items()
    }
    if engine.bad_values(batch, counted):
        raise StateError("the events that wait in the snapshot have values that no event may have")
    scan = (chunk.low, chunk.high, False)
    return engine.chunk_of(batch, chunk.time, chunk.arrival, chunk.number, scan, Staged()).columns
