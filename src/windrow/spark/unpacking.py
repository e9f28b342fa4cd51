"""The last stage of a stream: packed results to rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from windrow.spark.payload import unpack


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches that were packed."""
    for batch in batches:
        for payload in batch.column(0):
            if payload.is_valid:
                yield unpack(payload.as_buffer())
