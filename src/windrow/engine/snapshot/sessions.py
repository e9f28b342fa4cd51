"""The section of an engine whose slices are runs of sessions."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.sessions.engine import Sessions
from windrow.engine.sessions.table import EMITTED, TOUCHED
from windrow.engine.snapshot import common
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.errors import StateError

COLUMNS = ("lane", "first", "last", "reach", "revision", "flags")
IMAGES = ("lane", "first", "last", "reach", "revision")


def write(writer: Writer, engine: Sessions, prefix: str) -> dict[str, Any]:
    """Write arrays; what JSON says beside them."""
    slots = engine.slices.in_order()
    rows = engine.slices.table[slots]
    rows["flags"] &= EMITTED | TOUCHED
    for name in COLUMNS:
        writer.array(f"{prefix}slices {name}", rows[name])
    images = np.sort(engine.slices.changed[0], order=IMAGES)
    for name in IMAGES:
        writer.array(f"{prefix}changed {name}", images[name])
    common.write_stores(writer, engine, prefix, slots, 1)
    return {}


def read(reader: Reader, engine: Sessions, about: dict[str, Any], prefix: str) -> None:
    """The opposite of `write`."""
    slices = _rows(reader, engine, f"{prefix}slices ", COLUMNS)
    lane, first = np.diff(slices["lane"]), slices["first"][1:]
    if np.any(lane < 0) or np.any((lane == 0) & (first <= slices["reach"][:-1])):
        raise StateError("the snapshot's slices are not in order")
    if np.any(slices["flags"] & ~(EMITTED | TOUCHED)) or np.any(slices["flags"] == EMITTED | TOUCHED):
        raise StateError("the snapshot's slices are neither emitted nor to be emitted")
    if engine.settings.mode == "append" and slices["flags"].any():
        raise StateError("the snapshot's slices were emitted before they were final")
    images = _rows(reader, engine, f"{prefix}changed ", IMAGES)
    engine.place(slices, np.empty(0, np.int64), len(slices) + 8)
    common.read_stores(reader, engine, prefix, len(slices), 1)
    if np.any(engine.presence.n[: len(slices)] < 1):
        raise StateError("the snapshot has slices without events")
    engine.slices.changed = images


def _rows(reader: Reader, engine: Sessions, prefix: str, names: tuple[str, ...]) -> Any:
    """Rows of the table, from their columns."""
    dtype = engine.slices.table.dtype
    columns = {name: reader.array(prefix + name, dtype[name]) for name in names}
    rows: Any = np.zeros(len(columns["lane"]), dtype)
    for name, column in columns.items():
        if len(column) != len(rows):
            raise StateError("the columns of the snapshot's slices are not of one length")
        rows[name] = column
    if np.any((rows["lane"] < 0) | (rows["lane"] >= engine.keys.count * len(engine.lanes))):
        raise StateError("the snapshot refers to keys that it does not have")
    inside = (rows["first"] >= engine.lowest) & (rows["reach"] < engine.measure.highest)
    if not inside.all() or np.any(rows["last"] < rows["first"]) or np.any(rows["reach"] < rows["last"]):
        raise StateError("the snapshot's slices lie outside the times that the query can handle")
    gaps = np.array([*engine.lanes.gap, *([0] * (len(engine.lanes) - engine.lanes.static))], dtype["reach"])
    window = rows["lane"] % max(1, len(engine.lanes))
    static = window < engine.lanes.static
    if np.any(rows["reach"][static] != rows["last"][static] + gaps[window[static]]):
        raise StateError("the snapshot's slices do not reach as far as the gaps of their windows")
    if np.any(rows["revision"] < 0):
        raise StateError("the snapshot's slices have revisions that are no counts")
    return rows
