"""The snapshot of an operator: named parts as an Arrow table, behind the header of all snapshots.

The header says whose they are by a hash of what the operator does. A foreign, truncated, altered or newer snapshot is
refused in a sentence before any part of it is looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.snapshot import format as snapshots
from windrow.engine.snapshot.parts import stream_of, table_of
from windrow.errors import StateError

PARTS = pa.schema(
    [pa.field("name", pa.string(), nullable=False), pa.field("data", pa.large_binary(), nullable=False)]
)


def framed(described: str, parts: Mapping[str, bytes]) -> bytes:
    """Parts behind a header; `described` is what the operator does, as text."""
    body = stream_of(pa.table([list(parts), list(parts.values())], schema=PARTS))
    return snapshots.framed(_hash(described), body)


def unframed(described: str, state: bytes) -> dict[str, bytes]:
    """The parts of a snapshot of an operator that does the same; a StateError if it is not one."""
    table = table_of(snapshots.unframed(_hash(described), state, f"operator than {described}"))
    if table.schema != PARTS:
        raise StateError("the snapshot's table has other columns than it should")
    return dict(zip(table["name"].to_pylist(), table["data"].to_pylist(), strict=True))


def _hash(described: str) -> bytes:
    return hashlib.sha256(b"operator " + described.encode()).digest()


def array_part(parts: dict[str, bytes], name: str, dtype: Any, length: int) -> np.ndarray:
    """A part that is an array of `length` numbers, as a copy."""
    if name not in parts:
        raise StateError(f"the snapshot lacks its part {name!r}")
    data = parts.pop(name)
    if len(data) != length * np.dtype(dtype).itemsize:
        raise StateError(f"part {name!r} of the snapshot does not have {length:,} numbers")
    return np.frombuffer(data, dtype).copy()
