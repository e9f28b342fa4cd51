"""What the section of an engine for windows of time has of span events: what goes on from before the first slice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.engine import Engine
from windrow.engine.intake.columns import whole
from windrow.engine.partials import SpanLog
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.engine.spanning.open_events import ARRAYS
from windrow.engine.spanning.span_input import SpanInput
from windrow.errors import StateError


def write(writer: Writer, engine: Engine, prefix: str) -> None:
    """Write arrays."""
    spans = engine.spans
    assert spans is not None
    for i, carry in enumerate(spans.carries):
        for name, array in carry.save(np.zeros(1, np.int64), engine.keys.count).items():
            writer.array(f"{prefix}carry {i} {name}", array)


def read(reader: Reader, engine: Engine, prefix: str) -> None:
    """The opposite of `write`."""
    spans, keys = engine.spans, engine.keys.count
    assert spans is not None
    try:
        for i, carry in enumerate(spans.carries):
            carry.load(reader.arrays(f"{prefix}carry {i} "), np.zeros(1, np.int64), keys)
    except ValueError as problem:
        raise StateError(f"what goes on in the snapshot: {problem}") from problem


def adopt_logs(reader: Reader, engine: Engine, prefix: str) -> None:
    """Let logs of single events be read as stores: up to version 5 they came beside stores that held nothing."""
    late = engine.settings.mode == "update"
    logs = (i for i, store in enumerate(engine.binding.in_order, late) if isinstance(store, SpanLog))
    for number, i in enumerate(logs):
        if reader.has(f"{prefix}kept {number} c0"):
            reader.rename(f"{prefix}kept {number} ", f"{prefix}store {i} ")


def write_input(writer: Writer, spans: SpanInput) -> None:
    """The watermark as it was said, what was learned of lengths, and the events that are open."""
    writer.array("said", np.array([] if spans.said is None else [spans.said]))
    writer.array("lengths", spans.release.seen)
    if spans.open is not None:
        writer.table("open", pa.Table.from_batches([spans.open.rows]))
        for name in ARRAYS:
            writer.array(f"open {name}", getattr(spans.open, name))


def read_input(reader: Reader, spans: SpanInput) -> None:
    """The opposite of `write_input`."""
    said = reader.array("said")
    if len(said) > 1 or said.dtype.kind not in "if":
        raise StateError("the snapshot's watermark is not one")
    spans.said = said[0].item() if len(said) else None
    seen = reader.array("lengths")
    if seen.dtype != np.int64 or len(seen) != len(spans.release.seen) or np.any(seen < 0):
        raise StateError("the snapshot's lengths of events are not counts")
    spans.release.seen = seen.copy()
    if spans.open is None:
        return
    rows = whole(reader.table("open"))
    arrays = {name: reader.array(f"open {name}") for name in ARRAYS}
    fine = all(
        a.dtype == getattr(spans.open, name).dtype and len(a) == rows.num_rows for name, a in arrays.items()
    )
    if not fine or rows.schema != spans.open.rows.schema or np.any(arrays["upto"] < arrays["starts"]):
        raise StateError("the snapshot's open events do not fit the query")
    spans.open = spans.open.having(rows, arrays)
