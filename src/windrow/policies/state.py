"""Snapshots of windows: what subwindows hold, as Arrow behind a checked header.

Only what cannot be found again is written: the keys of subwindows, their rows and counters, and whatever runs beside
them. Regions, lists and heaps are built anew, so that a damaged or forged snapshot cannot lead a compiled loop astray.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.engine.arrays import ranges
from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import Keys
from windrow.engine.snapshot.format import framed, unframed
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.errors import StateError, WindrowError
from windrow.policies import layout
from windrow.policies.folding import InCells
from windrow.policies.layout import of
from windrow.policies.undo import SCRATCH, rejoin_all

if TYPE_CHECKING:
    from windrow.policies.contents import Contents
    from windrow.policies.machine import Machine


def fingerprint(window: Contents, machine: Machine) -> bytes:
    """What a snapshot belongs to: policies, columns and options."""
    identity = {
        "spec": str(window.spec),
        "schema": str(machine.schema),
        "by": machine.partitions.by,
        "kept": machine.kept,
        "aggregates": {name: str(aggregate) for name, aggregate in window.aggregates.items()},
        "partial": int(machine.settings[of.PARTIAL]),
    }
    return hashlib.sha256(json.dumps(identity).encode()).digest()


def save(window: Contents, machine: Machine) -> bytes:
    """The snapshot of a window: its subwindows, rows, partials and counters, as bytes."""
    writer, partitions = Writer(), machine.partitions
    live = np.sort(partitions.live())
    table = partitions.table[live]
    about = {"taken": window.taken, "sequence": int(machine.counters[of.SEQUENCE])}
    about |= {"subwindows": len(live), "slice": int(machine.settings[of.SLICE])}
    writer.text("about", json.dumps(about))
    writer.table("keys", pa.table(dict(zip(partitions.by, partitions.columns(live), strict=True))))
    writer.array("table", table)
    for name, array in partitions.arrays.items():
        if name not in SCRATCH:
            writer.array(f"partition {name}", array[live])
    if machine.folding is not None:
        machine.folding.save(machine, writer)
    if not isinstance(machine.folding, InCells):
        # Those of all rows held, subwindow by subwindow.
        places = ranges(table[:, of.HEAD], table[:, of.TAIL])
        for name, array in machine.regions.arrays.items():
            if name != "order":
                writer.array(f"place {name}", array[places])
        if machine.kept:
            rows, numbers = np.unique(machine.order[places], return_inverse=True)
            writer.array("order", numbers.astype(np.int64))
            writer.table("log", machine.log.take(rows))
    return framed(fingerprint(window, machine), writer.body())


def load(window: Contents, machine: Machine, snapshot: bytes) -> None:
    """Restore a window that has not begun from a snapshot of an equal one."""
    if window.taken or machine.counters[of.SEQUENCE]:
        raise StateError("a snapshot can be restored into a new window only, and this one has begun")
    body = unframed(fingerprint(window, machine), snapshot, "window: policies, schema or options differ")
    try:
        _load(window, machine, Reader(body))
    except StateError:
        raise
    except (WindrowError, LookupError, ValueError, TypeError, OverflowError, pa.ArrowException) as problem:
        raise StateError(f"the snapshot's content does not fit its window: {problem}") from problem


def _load(window: Contents, machine: Machine, reader: Reader) -> None:
    about = json.loads(reader.text("about"))
    machine.begin()
    count, taken, sequence = (_number(about, name) for name in ("subwindows", "taken", "sequence"))
    # A window that holds nothing, or has not begun, has no slices yet.
    if count and _number(about, "slice") != machine.settings[of.SLICE]:
        raise StateError(
            "the snapshot is of a window in other slices: register the same handlers before restoring"
        )
    table = reader.array("table", np.int64).reshape(count, layout.WIDTH)
    keys = reader.table("keys")
    partitions = machine.partitions
    if partitions.by:
        if keys.schema.types != partitions.keys.schema.types or keys.num_rows != count:
            raise StateError("the snapshot's keys are not those of its subwindows")
        partitions.keys = Keys.of(partitions.keys.schema, list(whole(keys).columns))
        if partitions.known != count:
            raise StateError("the snapshot has two subwindows with the same key")
        partitions.make_room(count)
    elif count > 1:
        raise StateError("the snapshot has several subwindows, and the window has no partitions")
    _check(machine, table, sequence)
    for name, array in partitions.arrays.items():
        if name not in SCRATCH:
            array[:count] = reader.array(f"partition {name}", array.dtype.base).reshape(
                count, *array.shape[1:]
            )
    _place(machine, table, reader)
    partitions.table[:count] = table
    if machine.folding is not None:
        machine.folding.load(machine, reader)
    reader.require_all_read()
    held = int((table[:, of.TAIL] - table[:, of.HEAD]).sum())
    machine.counters[[of.SEQUENCE, of.SUBWINDOWS, of.TOTAL]] = sequence, count, held
    window.taken = taken
    rejoin_all(machine)


def _number(about: Any, name: str) -> int:
    value = about[name]
    if type(value) is not int or not 0 <= value < 2**62:
        raise StateError(f"{name} in the snapshot is {value!r}, and no count")
    return value


def _check(machine: Machine, table: np.ndarray, sequence: int) -> None:
    """What loops rely on."""
    far = 2**62
    sizes = table[:, of.TAIL] - table[:, of.HEAD]
    known = layout.LIVE | layout.FULL | layout.REFERRED
    fine = (np.abs(table[:, [of.HEAD, of.TAIL, of.SHIFT]]) < far).all() and (sizes >= 0).all()
    fine = fine and ((table[:, of.FLAGS] & layout.LIVE) > 0).all() and (table[:, of.FLAGS] <= known).all()
    counts = table[:, [of.SINCE, of.UPDATES, of.CREATED, of.UPDATED]]
    fine = fine and (counts >= 0).all() and (counts < far).all()
    fine = fine and (table[:, [of.CREATED, of.UPDATED]] <= sequence).all()
    times = table[:, [of.CREATED_AT, of.UPDATED_AT, of.NEXT, of.FILLED]]
    if not fine or not (np.abs(times) < far).all():
        raise StateError("the snapshot's subwindows are not what a window can hold")
    if not isinstance(machine.folding, InCells):
        table[:, of.CELL] = -1


def _place(machine: Machine, table: np.ndarray, reader: Reader) -> None:
    """Put the rows of subwindows one behind the other."""
    sizes = table[:, of.TAIL] - table[:, of.HEAD]
    if isinstance(machine.folding, InCells):
        table[:, of.HEAD] = 0
        table[:, of.TAIL] = sizes
        return
    ends = np.cumsum(sizes)
    table[:, of.SHIFT] += table[:, of.HEAD] - (ends - sizes)
    table[:, of.HEAD] = table[:, of.START] = ends - sizes
    table[:, of.TAIL] = table[:, of.END] = ends
    held = int(ends[-1]) if len(ends) else 0
    arrays = machine.regions.arrays
    if machine.folding is not None:
        machine.folding.expect(arrays, reader.has)
    for name, array in arrays.items():
        found = np.zeros(held, np.int64) if name == "order" else reader.array(f"place {name}", array.dtype)
        arrays[name] = found.reshape(held, *array.shape[1:])
    machine.regions.used = held
    if machine.kept:
        order, rows = reader.array("order", np.int64), reader.table("log")
        if rows.schema != machine.log.schema or len(order) != held:
            raise StateError("the snapshot's rows are not those of its window")
        if held and (order.min() < 0 or order.max() >= rows.num_rows):
            raise StateError("the snapshot's subwindows hold rows that it does not have")
        arrays["order"] = order
        machine.log.append(whole(rows))
