"""Rows of sources in order of time, without holding all of them.

    first pass     the times alone: the earliest and the latest one of each block of rows
    merged         sources are read side by side, the one with the earliest times next; a row goes on when no row that is
                   not read yet can be earlier

        source 1   |--a--|--b--|--c--|              rows wait while blocks overlap: none in files that are in order,
        source 2        |--d--|--e--|               a block or two in files that are nearly so

    parted         where too many rows would wait, rows are written to a temporary folder, one file for each stretch of time,
                   and read again stretch by stretch

Rows of equal times stay in the order of the sources, as a stable sort of all of them would have them.
"""

from __future__ import annotations

import heapq
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from windrow.engine.aligned.cutting import in_order
from windrow.engine.intake.columns import raw, whole
from windrow.inputs.sources import Source

# The first pass knows the extremes of blocks of rows, and one of so many times.
BLOCK, SAMPLED = 1 << 16, 1 << 10


@dataclass(frozen=True)
class Rows:
    """Rows in order of time: the events, their times, and their numbers in the input."""

    events: pa.RecordBatch
    times: np.ndarray
    numbers: np.ndarray

    @classmethod
    def ordered(cls, events: pa.RecordBatch, times: np.ndarray, numbers: np.ndarray) -> Rows:
        if not in_order(times):
            order = np.argsort(times, kind="stable")
            events, times, numbers = events.take(pa.array(order)), times[order], numbers[order]
        return cls(events, times, numbers)

    @classmethod
    def together(cls, parts: Sequence[Rows]) -> Rows:
        """Rows of several parts, in order; among equal times those of the first part come first."""
        if len(parts) == 1:
            return parts[0]
        events = whole(pa.Table.from_batches([part.events for part in parts]))
        times = np.concatenate([part.times for part in parts])
        return cls.ordered(events, times, np.concatenate([part.numbers for part in parts]))

    def __getitem__(self, rows: slice) -> Rows:
        begin, end, _ = rows.indices(len(self.times))
        return Rows(self.events.slice(begin, end - begin), self.times[rows], self.numbers[rows])

    def __len__(self) -> int:
        return len(self.times)


# The batches of a source as rows in order of time, each batch by itself.
Read = Callable[[Source, int], Iterator[Rows]]


@dataclass(frozen=True)
class Survey:
    """What the first pass has seen of a source: blocks of rows that have a time, and a sample of times.

    `total` counts rows without a time, too.
    """

    rows: int
    total: int
    lows: np.ndarray
    highs: np.ndarray
    sample: np.ndarray

    @classmethod
    def of(cls, batches: Iterator[tuple[np.ndarray, int]]) -> Survey:
        """Of times in the order of rows, and how many rows of each batch have none."""
        rows, total = 0, 0
        lows: list[np.ndarray] = []
        highs: list[np.ndarray] = []
        sample: list[np.ndarray] = []
        rest = np.empty(0)
        for times, without in batches:
            rows += len(times)
            total += len(times) + without
            times = np.concatenate([rest, times]) if len(rest) else times
            full = len(times) // BLOCK * BLOCK
            blocks, rest = times[:full].reshape(-1, BLOCK), times[full:]
            lows.append(blocks.min(axis=1))
            highs.append(blocks.max(axis=1))
            sample.append(times[:full:SAMPLED].copy())  # and not the rows between
        if len(rest):
            lows.append(rest.min(keepdims=True))
            highs.append(rest.max(keepdims=True))
            sample.append(rest[::SAMPLED].copy())
        if not rows:
            return cls(0, total, rest, rest, rest)
        return cls(rows, total, np.concatenate(lows), np.concatenate(highs), np.concatenate(sample))

    def floors(self) -> np.ndarray:
        """The earliest time of each block and all behind it."""
        return np.minimum.accumulate(self.lows[::-1])[::-1]


def most_waiting(surveys: Sequence[Survey]) -> int:
    """How many rows wait at most while sources are merged."""
    floors = [survey.floors() for survey in surveys]
    heads = [(floor[0], i, 0) for i, floor in enumerate(floors) if len(floor)]
    heapq.heapify(heads)
    waiting: list[int | float] = []
    most = 0
    while heads:
        _, i, block = heapq.heappop(heads)
        heapq.heappush(waiting, surveys[i].highs[block])
        most = max(most, len(waiting))
        if block + 1 < len(floors[i]):
            heapq.heappush(heads, (floors[i][block + 1], i, block + 1))
        while waiting and (not heads or waiting[0] < heads[0][0]):
            heapq.heappop(waiting)
    return most * BLOCK


def merged(sources: Sequence[Source], surveys: Sequence[Survey], read: Read, batch: int) -> Iterator[Rows]:
    """All rows in order of time, about `batch` of them at once."""
    firsts = np.cumsum([0, *(survey.total for survey in surveys)]).tolist()
    floors = [survey.floors() for survey in surveys]
    # What is to be read: the earliest time that is left of a source, and the source.
    heads = [(floor[0], i) for i, floor in enumerate(floors) if len(floor)]
    heapq.heapify(heads)
    readers = {i: read(sources[i], firsts[i]) for _, i in heads}
    done = dict.fromkeys(readers, 0)
    waiting: list[tuple[int, Rows]] = []
    count = 0
    while heads:
        _, i = heapq.heappop(heads)
        rows = next(readers[i], None)
        if rows is not None:
            waiting.append((int(rows.numbers.min()), rows))
            count += len(rows)
            done[i] += len(rows)
            if done[i] < surveys[i].rows:
                heapq.heappush(heads, (floors[i][done[i] // BLOCK], i))
        if heads and count < batch:
            continue
        ready = []
        left: list[tuple[int, Rows]] = []
        for place, part in sorted(waiting, key=lambda each: each[0]):
            end = int(np.searchsorted(part.times, heads[0][0])) if heads else len(part)
            if end:
                ready.append(part[:end])
            if end < len(part):
                left.append((place, part[end:]))
        waiting, count = left, sum(len(part) for _, part in left)
        if ready:
            yield Rows.together(ready)


def parted(sources: Sequence[Source], surveys: Sequence[Survey], read: Read, most: int) -> Iterator[Rows]:
    """As `merged`, by way of a temporary folder; about `most` rows are held, more only where more have one time."""
    sample = np.sort(np.concatenate([survey.sample for survey in surveys]))
    count = math.ceil(sum(survey.rows for survey in surveys) / most)
    inner = np.unique(sample[len(sample) * np.arange(1, count) // count])
    with tempfile.TemporaryDirectory(prefix="windrow-") as folder:
        files = [Path(folder) / str(number) for number in range(len(inner) + 1)]
        dtype = _divide(sources, surveys, read, inner, files)
        for file in files:
            with pa.ipc.open_stream(str(file)) as reader:
                batch = whole(reader.read_all())
            *columns, times, numbers = batch.columns
            events = pa.RecordBatch.from_arrays(columns, batch.schema.names[:-2])
            if len(times):
                yield Rows.ordered(events, raw(times, dtype), raw(numbers, np.int64))
            file.unlink()


def _divide(
    sources: Sequence[Source], surveys: Sequence[Survey], read: Read, inner: np.ndarray, files: list[Path]
) -> type:
    """Write all rows to files, with their times and numbers; the type of the times."""
    writers: list[pa.ipc.RecordBatchStreamWriter] = []
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    dtype = np.dtype(np.int64)
    with ExitStack() as stack:
        first = 0
        for source, survey in zip(sources, surveys, strict=True):
            for rows in read(source, first):
                columns = [*rows.events.columns, pa.array(rows.times), pa.array(rows.numbers)]
                names = [*rows.events.schema.names, "time", "number"]
                batch = pa.RecordBatch.from_arrays(columns, names)
                for file in files[len(writers) :]:
                    opened = pa.ipc.new_stream(str(file), batch.schema, options=options)
                    writers.append(stack.enter_context(opened))
                edges = [0, *np.searchsorted(rows.times, inner).tolist(), len(rows)]
                for writer, (begin, end) in zip(writers, pairwise(edges), strict=True):
                    if begin < end:
                        writer.write_batch(batch.slice(begin, end - begin))
                dtype = rows.times.dtype
            first += survey.total
    return dtype.type
