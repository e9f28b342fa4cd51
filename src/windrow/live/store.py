"""Results as they come, to be drawn: for each window the rows of now, bounded, and as lines with few points.

A line has at most four points in a column of pixels: the first, the last, the lowest and the highest. It looks as the line through
all of its points does (M4, Jugel et al., VLDB 2014).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.plots.series import is_number, key_labels, numbers_of, places_of
from windrow.spec import answers_of

# Rows of a window, and results that wait, at most.
MOST_ROWS, MOST_WAITING = 200_000, 10_000
# The numbers of an m4 aggregate, in the order in which they are drawn.
M4 = ("first", "min", "max", "last")


def m4(x: np.ndarray, y: np.ndarray, low: float, high: float, columns: int) -> np.ndarray:
    """Which points of a line (x ascending, no NaN) are drawn on `columns` columns of pixels from `low` to `high`.

    >>> x, y = np.arange(1000.0), np.sin(np.arange(1000.0))
    >>> len(m4(x, y, 0.0, 1000.0, 10)) <= 40
    True
    """
    if not len(x):
        return np.empty(0, np.int64)
    column = np.floor((x - low) * (columns / (high - low))).astype(np.int64)
    first = np.concatenate([[0], np.flatnonzero(np.diff(column)) + 1])
    last = np.concatenate([first[1:], [len(x)]]) - 1
    by_value = np.lexsort((y, column))
    return np.unique(np.concatenate([first, last, by_value[first], by_value[last]]))


@dataclass
class Rows:
    """The rows of one window, sorted by key and end. Places are milliseconds since 1970, or plain numbers."""

    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    values: np.ndarray

    def of(self, key: int, low: float, high: float) -> slice:
        """The rows of a key from `low` to `high`, and one more on each side."""
        first, last = np.searchsorted(self.key, [key, key + 1])
        ends = self.end[first:last]
        begin, end = np.searchsorted(ends, [low, high])
        return slice(first + max(0, begin - 1), first + min(len(ends), end + 1))


@dataclass
class _Track:
    """What came of one window and is not sorted in yet."""

    fields: list[str]
    chunks: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    rows: Rows | None = None
    version: int = 0

    def merged(self) -> Rows:
        """All rows; of those with the same key and start the newest, unless that took the row back."""
        if self.rows is not None:
            return self.rows
        key, start, end, gone, values = (np.concatenate(parts) for parts in zip(*self.chunks, strict=True))
        order = np.lexsort((np.arange(len(key)), start, key))
        newest = np.ones(len(order), bool)
        newest[:-1] = (np.diff(key[order]) != 0) | (np.diff(start[order]) != 0)
        kept = order[newest & ~gone[order]]
        if len(kept) > MOST_ROWS:
            kept = kept[np.argpartition(end[kept], -MOST_ROWS)[-MOST_ROWS:]]
        kept = kept[np.lexsort((end[kept], key[kept]))]
        self.rows = Rows(key[kept], start[kept], end[kept], values[kept])
        self.chunks = [(key[kept], start[kept], end[kept], gone[kept], values[kept])]
        return self.rows


class Store:
    """What an operator has said. `put` and `forget` are for the thread of the stream; all else is for the one that serves readers."""

    def __init__(self) -> None:
        # Results, and names of windows that are gone.
        self._waiting: deque[pa.Table | str] = deque(maxlen=MOST_WAITING)
        self._versions = 0
        self._tracks: dict[str, _Track] = {}
        self.labels: list[str] = []
        self._codes: dict[str, int] = {}
        self.low, self.high = np.inf, -np.inf

    def put(self, rows: pa.Table) -> None:
        """Keep results until they are looked at."""
        if len(rows):
            self._waiting.append(rows)

    def forget(self, name: str) -> None:
        """A window is gone, and what came of it before."""
        self._waiting.append(name)

    def drain(self) -> None:
        """Sort in what has come."""
        while self._waiting:
            table = self._waiting.popleft()
            if isinstance(table, str):
                self._tracks.pop(table, None)
                continue
            names = table["window"].cast(pa.string())
            for name in names.unique().to_pylist():
                self._take(name, table.filter(pc.equal(names, name)))

    def _take(self, name: str, table: pa.Table) -> None:
        columns = table.column_names
        keys = columns[: columns.index("window")]
        answers = answers_of(columns, keys)
        numbers = {c: found for c in answers if (found := _numbers(table[c])) is not None}
        track = self._tracks.get(name)
        fields = [
            f"{c}.{part}" if len(found) > 1 else c
            for c, found in numbers.items()
            for part in (M4 if len(found) > 1 else ("",))
        ]
        if track is None or track.fields != fields:
            track = self._tracks[name] = _Track(fields)
        labels, codes = key_labels(table, keys)
        for label in labels:
            if label not in self._codes:
                self._codes[label] = len(self.labels)
                self.labels.append(label)
        known = np.array([self._codes[label] for label in labels])
        start, end = places_of(table["start"]), places_of(table["end"])
        gone = np.zeros(len(table), bool)
        if "op" in columns:
            gone = np.asarray(pc.equal(table["op"], "delete"))
        flat = [numbers for found in numbers.values() for numbers in found]
        values = np.column_stack(flat) if flat else np.empty((len(table), 0))
        track.chunks.append((known[codes], start, end, gone, values))
        track.rows = None
        # A window that is gone and comes back is another one.
        self._versions += 1
        track.version = self._versions
        self.low, self.high = min(self.low, start.min()), max(self.high, end.max())

    def version(self, name: str) -> int:
        """Changes with each new row of a window; 0 if there is none."""
        track = self._tracks.get(name)
        return 0 if track is None else track.version

    def size(self, name: str) -> int:
        """How many rows there are of a window."""
        track = self._tracks.get(name)
        return 0 if track is None else len(track.merged().key)

    def lines(
        self, name: str, aggregate: str, low: float, high: float, columns: int, *, most: int | None = None
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each key, or the first few, the points of its line from `low` to `high`: at most four for each column of pixels."""
        track = self._tracks.get(name)
        found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        if track is None or not low < high:
            return found
        rows = track.merged()
        parts = [i for i, f in enumerate(track.fields) if f == aggregate or f.rpartition(".")[0] == aggregate]
        for key in np.unique(rows.key)[:most]:
            here = rows.of(int(key), low, high)
            start, end, values = rows.start[here], rows.end[here], rows.values[here][:, parts]
            if len(parts) == len(M4):
                middle = (start + end) / 2
                x, y = np.column_stack([start, middle, middle, end]).ravel(), values.ravel()
            else:
                x, y = end, values.ravel()
            seen = np.isfinite(y)
            x, y = x[seen], y[seen]
            shown = m4(x, y, low, high, columns)
            found[self.labels[key]] = x[shown], y[shown]
        return found

    def latest(self, name: str, count: int) -> list[tuple[str, float, float, dict[str, float]]]:
        """The rows that end last: key, start, end, and numbers by their names."""
        track = self._tracks.get(name)
        if track is None:
            return []
        rows = track.merged()
        newest = np.lexsort((rows.key, -rows.end))[:count]
        return [
            (
                self.labels[rows.key[i]],
                rows.start[i],
                rows.end[i],
                dict(zip(track.fields, rows.values[i].tolist(), strict=True)),
            )
            for i in newest
        ]


def _numbers(column: pa.ChunkedArray) -> list[np.ndarray] | None:
    """The numbers of an aggregate: one, or the four of m4; None if it has none."""
    type_ = column.type
    if pa.types.is_struct(type_) and {*M4} <= {f.name for f in type_}:
        return [numbers_of(pc.struct_field(column, part)) for part in M4]
    return [numbers_of(column)] if is_number(type_) else None
