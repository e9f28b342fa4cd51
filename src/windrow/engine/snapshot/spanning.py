"""What the section of an engine for events that last has besides: what goes on from before, and events kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.columns import whole
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.lasting import Lasting
from windrow.engine.spanning.ongoing import ARRAYS
from windrow.errors import StateError


def write(writer: Writer, engine: Spanning, prefix: str) -> None:
    """Write arrays."""
    for i, carry in enumerate(engine.carries()):
        for name, array in carry.save(np.zeros(1, np.int64), engine.keys.count).items():
            writer.array(f"{prefix}carry {i} {name}", array)
    for i, kept in enumerate(engine.all_kept()):
        for name, array in kept.save().items():
            writer.array(f"{prefix}kept {i} {name}", array)


def read(reader: Reader, engine: Spanning, prefix: str) -> None:
    """The opposite of `write`."""
    keys = engine.keys.count
    try:
        for i, carry in enumerate(engine.carries()):
            carry.load(reader.arrays(f"{prefix}carry {i} "), np.zeros(1, np.int64), keys)
        for i, kept in enumerate(engine.all_kept()):
            kept.load(reader.arrays(f"{prefix}kept {i} "), keys)
    except ValueError as problem:
        raise StateError(f"what goes on in the snapshot: {problem}") from problem


def write_lasting(writer: Writer, lasting: Lasting) -> None:
    """The watermark as it was said, what was learned of lengths, and the events that are open."""
    writer.array("said", np.array([] if lasting.said is None else [lasting.said]))
    writer.array("lengths", lasting.release.seen)
    if lasting.open_events is not None:
        ongoing = lasting.open_events.ongoing
        writer.table("open", pa.Table.from_batches([ongoing.rows]))
        for name in ARRAYS:
            writer.array(f"open {name}", getattr(ongoing, name))


def read_lasting(reader: Reader, lasting: Lasting) -> None:
    """The opposite of `write_lasting`."""
    said = reader.array("said")
    if len(said) > 1 or said.dtype.kind not in "if":
        raise StateError("the snapshot's watermark is not one")
    lasting.said = said[0].item() if len(said) else None
    seen = reader.array("lengths")
    if seen.dtype != np.int64 or len(seen) != len(lasting.release.seen) or np.any(seen < 0):
        raise StateError("the snapshot's lengths of events are not counts")
    lasting.release.seen = seen.copy()
    if lasting.open_events is None:
        return
    ongoing = lasting.open_events.ongoing
    rows = whole(reader.table("open"))
    arrays = {name: reader.array(f"open {name}") for name in ARRAYS}
    fine = all(
        a.dtype == getattr(ongoing, name).dtype and len(a) == rows.num_rows for name, a in arrays.items()
    )
    if not fine or rows.schema != ongoing.rows.schema or np.any(arrays["upto"] < arrays["starts"]):
        raise StateError("the snapshot's open events do not fit the query")
    lasting.open_events.ongoing = ongoing.having(rows, arrays)
