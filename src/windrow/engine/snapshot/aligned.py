"""The section of an engine for context-free windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.aligned.engine import Aligned
from windrow.engine.snapshot import common, spanning
from windrow.engine.snapshot.parts import Reader, Writer, known_tick, number, tick_of
from windrow.errors import StateError


def write(writer: Writer, engine: Aligned, prefix: str) -> dict[str, Any]:
    """Write arrays; what JSON says beside them."""
    slices, keys = engine.slices, engine.keys.count
    writer.array(prefix + "starts", slices.starts)
    writer.array(prefix + "ends", slices.ends)
    common.write_stores(writer, engine, prefix, slices.slots, keys)
    if engine.ready:
        writer.table(prefix + "ready", pa.Table.from_batches(engine.ready).combine_chunks())
    if engine.spans is not None:
        spanning.write(writer, engine, prefix)
    revised = engine.ledger.save()
    for i, (_, _, _, row) in enumerate(revised):
        writer.array(f"{prefix}revisions {i}", row[:keys])
    return {
        "threshold": number(engine.threshold),
        "kept_from": number(engine.kept_from),
        "mixed_until": number(slices.mixed_until),
        "fresh_seen": engine.fresh_seen,
        "backlog": sorted(engine.backlog),
        "revised": [[name, number(start), number(end)] for name, start, end, _ in revised],
    }


def read(reader: Reader, engine: Aligned, about: dict[str, Any], prefix: str) -> None:
    """The opposite of `write`."""
    keys = engine.keys.count
    starts, ends = reader.array(prefix + "starts"), reader.array(prefix + "ends")
    _check_slices(engine, starts, ends)
    engine.resize(len(starts) + 8, max(1, keys), slice(0, 0))
    engine.slices.restore(starts, ends, len(starts) + 8)
    if engine.spans is not None:
        spanning.adopt_logs(reader, engine, prefix)
    common.read_stores(reader, engine, prefix, len(starts), keys)
    if engine.spans is not None:
        spanning.read(reader, engine, prefix)
    if not set(about["backlog"]) <= set(engine.query.windows):
        raise StateError("the snapshot speaks of windows that the query does not have")
    engine.threshold = known_tick(engine.measure, about["threshold"], "from when on events are late")
    engine.kept_from = tick_of(engine.measure, about["kept_from"])
    engine.slices.mixed_until = tick_of(engine.measure, about["mixed_until"])
    engine.fresh_seen = bool(about["fresh_seen"])
    if engine.fresh_seen:
        engine.recall_fresh()
    engine.backlog = set(about["backlog"])
    if reader.has(prefix + "ready"):
        rows = reader.table(prefix + "ready")
        if rows.schema != engine.result_schema:
            raise StateError("the snapshot's rows that are ready are not those of the query")
        engine.ready = rows.to_batches()
    _read_ledger(reader, engine, about, prefix, keys)


def _check_slices(engine: Aligned, starts: np.ndarray, ends: np.ndarray) -> None:
    dtype, longest = engine.slices.starts.dtype, engine.windows.longest
    fine = starts.dtype == dtype and ends.dtype == dtype and len(starts) == len(ends)
    if not fine or np.any(ends <= starts) or np.any(starts[1:] < ends[:-1]):
        raise StateError("the snapshot's slices are not in order")
    low, high = engine.lowest - longest, engine.highest + engine.lateness + longest
    if len(starts) and (starts[0].item() < low or ends[-1].item() > high):
        raise StateError("the snapshot's slices lie outside the times that the query can handle")


def _read_ledger(reader: Reader, engine: Aligned, about: dict[str, Any], prefix: str, keys: int) -> None:
    entries = []
    for i, (name, start, end) in enumerate(about["revised"]):
        row = reader.array(f"{prefix}revisions {i}")
        if row.dtype != np.int32 or len(row) != keys or name not in engine.windows.names:
            raise StateError("the snapshot's revisions do not fit its windows and keys")
        first, last = (known_tick(engine.measure, t, "what was revised") for t in (start, end))
        entries.append((name, first, last, np.concatenate([row, np.zeros(engine.stride - keys, np.int32)])))
    engine.ledger.load(entries)
