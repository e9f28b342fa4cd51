"""What all engines share, their keys; and what the sections of all of them hold: strings, partials, and how far they have come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.engine.engine import Engine
from windrow.engine.intake.keys import Keys
from windrow.engine.partials import Log
from windrow.engine.snapshot.parts import Reader, Writer, known_tick, number, one, tick_of
from windrow.errors import StateError


def write(writer: Writer, engine: Engine, prefix: str) -> None:
    """Strings."""
    for name, coder in engine.binding.coders.items():
        if coder.text:
            writer.table(f"{prefix}strings {name}", pa.table({"value": coder.dictionary}))


def about(engine: Engine) -> dict[str, Any]:
    """Names and instants."""
    return {
        "windows": list(engine.query.windows),
        "watermark": number(engine.watermark),
        "highest_time": number(engine.highest_time),
        "complete_from": {name: number(tick) for name, tick in engine.complete_from.items()},
        "final_until": None if engine.final_until is None else [number(tick) for tick in engine.final_until],
    }


def read(reader: Reader, engine: Engine, said: dict[str, Any], prefix: str) -> None:
    """The opposite of `write` and `about`."""
    measure = engine.measure
    known = {f"window {n}" for n in engine.query.windows}
    known |= {f"aggregate {n}" for n in engine.query.aggregates}
    if not set(said["complete_from"]) <= known:
        raise StateError("the snapshot speaks of windows or aggregates that the query does not have")
    ticks = {name: tick_of(measure, tick) for name, tick in said["complete_from"].items()}
    engine.complete_from = {name: tick for name, tick in ticks.items() if tick is not None}
    engine.watermark = tick_of(measure, said["watermark"])
    engine.highest_time = tick_of(measure, said["highest_time"])
    if said.get("final_until") is not None:
        passed, final = (known_tick(measure, tick, "what was final") for tick in said["final_until"])
        engine.final_until = passed, final
    _read_strings(reader, engine, prefix)


def write_keys(writer: Writer, keys: Keys) -> None:
    """The keys of all engines."""
    writer.table("keys", pa.Table.from_arrays(keys.columns, schema=keys.schema))


def read_keys(reader: Reader, schema: pa.Schema) -> Keys:
    """The opposite of `write_keys`; the key columns of events have this schema."""
    table = reader.table("keys").combine_chunks()
    if table.schema != Keys(schema).schema:
        raise StateError("the snapshot's keys are not of the types of the key columns")
    keys = Keys.of(schema, [one(c) for c in table.columns])
    if schema.names and keys.count != table.num_rows:
        raise StateError("the snapshot's keys are not all different")
    return keys


def _read_strings(reader: Reader, engine: Engine, prefix: str) -> None:
    for name, coder in engine.binding.coders.items():
        if not coder.text:
            continue
        strings = one(reader.table(f"{prefix}strings {name}").column("value"))
        if strings.type != coder.dictionary.type or strings.null_count:
            raise StateError(f"the snapshot's strings of column {name!r} are not of its type")
        order = pc.sort_indices(strings).to_numpy()
        if len(strings.unique()) != len(strings) or np.any(order != np.arange(len(order))):
            raise StateError(f"the snapshot's strings of column {name!r} are not in order")
        coder.dictionary = strings


def write_stores(writer: Writer, engine: Engine, prefix: str, slots: np.ndarray, keys: int) -> None:
    """The partials in these slots."""
    for i, store in enumerate(engine.stores()):
        for name, array in store.save(slots, keys).items():
            writer.array(f"{prefix}store {i} {name}", array)


def read_stores(reader: Reader, engine: Engine, prefix: str, slices: int, keys: int) -> None:
    """The opposite of `write_stores`: slots 0, 1, 2, .. are filled."""
    for i, store in enumerate(engine.stores()):
        owners = engine.owners if isinstance(store, Log) else keys
        try:
            store.load(reader.arrays(f"{prefix}store {i} "), np.arange(slices), owners)
        except ValueError as problem:
            raise StateError(f"store {i} of the snapshot: {problem}") from problem


def check_codes(engine: Engine) -> None:
    """A StateError if a partial or an event refers to a string that is not known."""
    for column, coder in engine.binding.coders.items():
        for holder, position in engine.code_holders(column) if coder.text else ():
            codes = holder.codes(position)
            if len(codes) and (codes[0] < 0 or codes[-1] >= len(coder.dictionary)):
                raise StateError(f"the snapshot refers to unknown strings of column {column!r}")
