"""Arrow batches as bytes in one column.

Rows that cross between Python and the JVM are converted one by one; a batch that is one value of a binary
column is not. So whatever is exchanged between stages travels packed, thousands of rows in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa


def pack(batch: pa.RecordBatch) -> bytes:
    """A batch with its schema, as an Arrow IPC stream."""
    # Loads the engine, which who only unpacks does not need.
    from windrow.engine.snapshot.parts import stream_of

    return stream_of(pa.Table.from_batches([batch]))


def unpack(payload: bytes) -> pa.RecordBatch:
    """The opposite of `pack`."""
    return pa.ipc.open_stream(payload).read_next_batch()


def runs(buckets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where the rows of each bucket begin and end, if they are sorted by bucket."""
    edges = np.flatnonzero(np.diff(buckets, prepend=-1, append=-1)).tolist() if len(buckets) else []
    return pairwise(edges)


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The last stage of a stream: packed results to rows."""
    for batch in batches:
        for payload in batch.column(0):
            if payload.is_valid:
                yield unpack(payload.as_buffer())
