"""The section of an engine whose slices are kept per key."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.keyed.engine import Keyed
from windrow.engine.keyed.ledger import Given
from windrow.engine.keyed.order import Found, Order, places
from windrow.engine.keyed.pending import Chunk, Pending, joined
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.snapshot import common
from windrow.engine.snapshot.parts import Reader, Writer, known_tick, number, tick_of
from windrow.errors import StateError


def write(writer: Writer, engine: Keyed, prefix: str) -> dict[str, Any]:
    """Write arrays; what JSON says beside them."""
    for name, column in engine.slices.columns():
        if name != "slot":
            writer.array(f"{prefix}slices {name}", column)
    common.write_stores(writer, engine, prefix, engine.slices.slot, 1)
    for field in fields(Given):
        writer.array(f"{prefix}given {field.name}", getattr(engine.changelog.given, field.name))
    writer.array(prefix + "dirty", np.flatnonzero(engine.changelog.dirty))
    if engine.order is not None:
        _write_order(writer, engine.order, prefix)
        _write_pending(writer, engine.waiting, prefix)
    return {
        "ordered": engine.order is not None,
        "threshold": number(engine.threshold),
        "frontier": number(engine.frontier),
        "born": number(engine.born),
    }


def _write_order(writer: Writer, order: Order, prefix: str) -> None:
    writer.array(prefix + "seen", order.seen)
    writer.array(prefix + "last", order.last)
    for name, column in vars(order.waiting).items():
        writer.array(f"{prefix}found {name}", column)
    for i, (_, discretizer) in enumerate(order.discretizers):
        for name, column in discretizer.save().items():
            writer.array(f"{prefix}discretizer {i} {name}", column)


def _write_pending(writer: Writer, waiting: Pending, prefix: str) -> None:
    chunks = [chunk for chunk in waiting.chunks if len(chunk)]
    if not chunks:
        return
    whole = joined(chunks)
    writer.table(prefix + "pending", pa.Table.from_batches([whole.batch]))
    writer.array(prefix + "pending time", whole.time)
    writer.array(prefix + "pending arrival", whole.arrivals())
    numbers = np.empty(0, np.int64) if whole.number is None else whole.number.astype(np.int64)
    writer.array(prefix + "pending number", numbers)


def read(reader: Reader, engine: Keyed, about: dict[str, Any], prefix: str) -> None:
    """The opposite of `write`."""
    measure, keys = engine.measure, engine.keys.count
    if about["ordered"] is not (engine.order is not None):
        raise StateError(
            "the snapshot keeps events in order where no window of the query does, or the opposite"
        )
    engine.threshold = known_tick(measure, about["threshold"], "from when on events are late")
    engine.frontier = known_tick(measure, about["frontier"], "up to when events are in order")
    engine.born = tick_of(measure, about["born"])
    slices = _read_slices(reader, engine, prefix, keys)
    engine.arena.resize(len(slices) + 8)
    engine.arena.place(slices, len(slices) + 8)
    common.read_stores(reader, engine, prefix, len(slices), 1)
    if np.any(engine.presence.n[: len(slices)] < 1):
        raise StateError("the snapshot has slices without events")
    engine.changelog.given = _read_given(reader, engine, prefix, keys)
    dirty = reader.array(prefix + "dirty", np.int64)
    _require_keys(dirty, keys)
    engine.changelog.grow(keys)
    engine.changelog.dirty[dirty] = True
    if engine.order is not None:
        _read_order(reader, engine, engine.order, prefix, keys)
        _read_pending(reader, engine, prefix, keys)


def _read_slices(reader: Reader, engine: Keyed, prefix: str, keys: int) -> KeyedSlices:
    columns = {}
    for name, old in engine.slices.columns():
        if name != "slot":
            columns[name] = reader.array(f"{prefix}slices {name}", old.dtype)
    count = len(columns["key"])
    for name in ("reach", "ranked"):
        columns[name] = columns[name].reshape(len(getattr(engine.slices, name)), count)
    slices = KeyedSlices(slot=np.arange(count), **columns)
    if any(column.shape[-1] != count for _, column in slices.columns()):
        raise StateError("the columns of the snapshot's slices are not of one length")
    _require_keys(slices.key, keys)
    step, time = np.diff(slices.key), np.diff(slices.first)
    if np.any(step < 0) or np.any((step == 0) & (time < 0)) or np.any(slices.last < slices.first):
        raise StateError("the snapshot's slices are not in order")
    if engine.order is not None and (
        np.any(slices.ranked < 0) or np.any((step == 0) & (np.diff(slices.rank) < 0))
    ):
        raise StateError("the snapshot's slices are not in the order of their events")
    inside = (slices.first >= engine.lowest) & (slices.last <= engine.highest)
    reach = slices.reach >= slices.last
    if not inside.all() or not reach.all() or np.any(slices.reach > engine.measure.highest):
        raise StateError("the snapshot's slices lie outside the times that the query can handle")
    if np.any(slices.closed < 0):
        raise StateError("the snapshot's slices are neither open nor closed")
    return slices


def _require_keys(key: np.ndarray, keys: int) -> None:
    if np.any((key < 0) | (key >= keys)):
        raise StateError("the snapshot refers to keys that it does not have")


def _read_given(reader: Reader, engine: Keyed, prefix: str, keys: int) -> Given:
    old = engine.changelog.given
    columns = [reader.array(f"{prefix}given {f.name}", getattr(old, f.name).dtype) for f in fields(Given)]
    rows = Given(*columns)
    specs = len(engine.query.windows)
    if any(len(c) != len(rows) for c in columns) or np.any((rows.spec < 0) | (rows.spec >= specs)):
        raise StateError("the rows given out in the snapshot do not fit its windows")
    _require_keys(rows.key, keys)
    return rows


def _read_order(reader: Reader, engine: Keyed, order: Order, prefix: str, keys: int) -> None:
    seen, last = reader.array(prefix + "seen", np.int64), reader.array(prefix + "last", order.tick)
    if len(seen) != len(last) or np.any(seen < 0):
        raise StateError("the snapshot's counts of events do not fit its keys")
    order.grow(len(seen))
    order.seen, order.last = seen, last
    for i, (_, discretizer) in enumerate(order.discretizers):
        try:
            discretizer.load(reader.arrays(f"{prefix}discretizer {i} "), len(seen), seen)
        except ValueError as problem:
            raise StateError(f"discretizer {i} of the snapshot: {problem}") from problem
    order.grow(keys)
    seen = order.seen
    slices = engine.slices
    # The live slices of a key follow one another up to the last event that was released.
    behind = slices.rank + engine.presence.n[: len(slices)]
    following = seen[slices.key]
    same = slices.key[1:] == slices.key[:-1]
    following[:-1][same] = slices.rank[1:][same]
    if np.any(behind != following):
        raise StateError("the snapshot's slices hold other events than those that there were")
    found = {n: reader.array(f"{prefix}found {n}", c.dtype) for n, c in vars(order.waiting).items()}
    waiting = Found(**found)
    known = {int(spec) for specs, _ in order.discretizers for spec in specs}
    if any(len(c) != len(waiting) for c in found.values()) or not set(waiting.spec.tolist()) <= known:
        raise StateError("the windows that wait in the snapshot are not those of the query")
    _require_keys(waiting.key, keys)
    fine = (waiting.begin >= 0) & (waiting.begin < waiting.end) & (waiting.end <= seen[waiting.key])
    first, behind = places(slices, waiting.key, waiting.begin), places(slices, waiting.key, waiting.end)
    if not fine.all() or np.any(first < 0) or np.any(behind <= first):
        raise StateError("the windows that wait in the snapshot hold events that are not there")
    if np.any(slices.rank[first] != waiting.begin):
        raise StateError("the windows that wait in the snapshot begin inside a slice")
    order.waiting = waiting
    key, rank = order.boundaries()
    _require_keys(key, keys)
    if np.any((rank < 0) | (rank > seen[key])):
        raise StateError("the open windows of the snapshot begin where no event is")
    for _, discretizer in order.discretizers:
        key, rank = discretizer.anchors()
        at = places(slices, key, rank)
        if np.any((at < 0) | (at >= len(slices))) or np.any(slices.rank[at] != rank):
            raise StateError("the open windows of the snapshot begin where no slice does")


def _read_pending(reader: Reader, engine: Keyed, prefix: str, keys: int) -> None:
    if not reader.has(prefix + "pending"):
        return
    table = reader.table(prefix + "pending").combine_chunks()
    time = reader.array(prefix + "pending time", engine.measure.dtype)
    arrival = reader.array(prefix + "pending arrival", np.int64)
    number_ = reader.array(prefix + "pending number", np.int64)
    names = list(engine.binding.value_columns)
    types = [engine.binding.schema.field(name).type for name in names]
    if table.column_names != names or not table.num_rows:
        raise StateError("the events that wait in the snapshot lack columns")
    for name, type_ in zip(names, types, strict=True):
        if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
            continue
        if table.schema.field(name).type != type_ and not pa.types.is_dictionary(type_):
            raise StateError(f"the events that wait in the snapshot have another type in {name!r}")
    numbers = number_ if engine.query.key else None
    if any(len(c) != table.num_rows for c in (time, arrival, *([] if numbers is None else [numbers]))):
        raise StateError("the events that wait in the snapshot are not complete")
    if numbers is not None:
        _require_keys(numbers, keys)
    if np.any((time < max(engine.lowest, engine.frontier)) | (time > engine.highest)):
        raise StateError("the events that wait in the snapshot lie outside the times that can be handled")
    if np.any(np.diff(arrival) <= 0) or np.any((arrival < 0) | (arrival >= 2**62)):
        raise StateError("the events that wait in the snapshot are not in the order of their arrival")
    batch = table.to_batches()[0]
    if engine.bad_values(batch):
        raise StateError("the events that wait in the snapshot have values that no event may have")
    engine.waiting = Pending([Chunk(batch, time, arrival, numbers, False)])
