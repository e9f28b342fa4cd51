"""Events for Spark: folders of Parquet files, a million rows each, one micro-batch each.

Events come in order of time and at a steady rate, each of a key drawn at random; `span` seconds pass in one file.
A span event lasts until `ended`: for up to a minute, short ones more often than long ones.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "ts timestamp, k long, x long, ended timestamp"
# In the past, and on a full hour.
BEGIN = 1_700_002_800_000_000


@dataclass(frozen=True)
class Source:
    """A folder of `files` files of `rows` rows."""

    folder: Path
    files: int
    rows: int

    @property
    def events(self) -> int:
        return self.files * self.rows


def write(folder: Path, *, files: int, rows: int, keys: int, span: float) -> Source:
    """Make a source; the same arguments make the same rows."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(keys)
    for number in range(files):
        offsets = (np.arange(rows) + number * rows) * (span * 1e6 / rows)
        times = BEGIN + offsets.astype(np.int64)
        moment = pa.timestamp("us", "UTC")
        columns = {
            "ts": pa.array(times, moment),
            "k": random.integers(0, keys, rows),
            "x": random.integers(0, 1000, rows),
        }
        lengths = 1 + (60e6 * random.random(rows) ** 2).astype(np.int64)
        table = pa.table(columns | {"ended": pa.array(times + lengths, moment)})
        path = folder / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))  # Spark reads files in the order of their times
    return Source(folder, files, rows)
