"""Arrow batches as bytes in one column.

Rows that cross between Python and the JVM are converted one by one; a batch that is one value of a binary
column is not. So whatever is exchanged between stages travels packed, thousands of rows in one.
"""

from __future__ import annotations

import pyarrow as pa


def pack(batch: pa.RecordBatch) -> bytes:
    """A batch with its schema, as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpack(payload: bytes) -> pa.RecordBatch:
    """The opposite of `pack`."""
    return pa.ipc.open_stream(payload).read_next_batch()
