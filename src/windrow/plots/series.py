"""A table of windows as numbers that can be drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import QueryError
from windrow.spec import answers_of
from windrow.wording import choices

_MILLISECONDS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
DAY = 86_400_000.0
# Lines of more keys than that cannot be told apart.
MOST_LINES = 8
# Colours of keys, for light and for dark paper.
PALETTE = ("#3d85b0", "#d1495b", "#c08a1e", "#3c9d62", "#9068bd", "#c0683d", "#4a9c9c", "#858b3a")
# Kinds of pictures and themes, beside "auto" for both.
KINDS, THEMES = ("lines", "heatmap", "bars"), ("light", "dark")


@dataclass(frozen=True)
class Line:
    """The windows of one key and one spec, in the order of their ends; `values` are NaN where there is no number."""

    key: str
    window: str
    starts: np.ndarray
    ends: np.ndarray
    values: np.ndarray

    @property
    def overlapping(self) -> bool:
        """Whether windows overlap: they are then drawn at their ends, where their values are known."""
        return bool((self.starts[1:] < self.ends[:-1]).any())

    def broken(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of a line over overlapping windows, with a NaN where windows are missing."""
        steps = np.diff(self.ends)
        every = steps[steps > 0].min() if (steps > 0).any() else 1.0
        gaps = np.flatnonzero((steps > 1.5 * every) | (self.starts[1:] > self.ends[:-1])) + 1
        return np.insert(self.ends, gaps, self.ends[gaps - 1] + every), np.insert(self.values, gaps, np.nan)

    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """From where to where each window is drawn as a box: of windows that overlap, where it is the newest."""
        if not self.overlapping:
            return self.starts, self.ends
        steps = np.diff(self.ends)
        if not (steps > 0).any():
            return self.starts, self.ends
        step = float(np.median(steps[steps > 0]))
        return np.maximum(np.concatenate([[-np.inf], self.ends[:-1]]), self.ends - step), self.ends

    def stairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of a line that holds each value from the start of its window to the end, with a NaN where windows are missing."""
        gaps = np.flatnonzero(self.starts[1:] > self.ends[:-1]) + 1
        x = np.column_stack([self.starts, self.ends])
        y = np.column_stack([self.values, self.values])
        return np.insert(x.ravel(), 2 * gaps, x[gaps - 1, 1]), np.insert(y.ravel(), 2 * gaps, np.nan)


@dataclass(frozen=True)
class Series:
    """Windows to draw. Places on the time axis are days since 1970, as matplotlib has them, or plain numbers."""

    table: pa.Table
    keys: tuple[str, ...]
    windows: tuple[str, ...]
    aggregates: tuple[str, ...]

    @classmethod
    def of(
        cls, table: pa.Table, window: str | Sequence[str] | None, aggregate: str | Sequence[str] | None
    ) -> Series:
        """Those of a result that are asked for; an error if there is nothing to draw."""
        names = table.column_names
        if not {"window", "start", "end"} <= set(names):
            raise QueryError(
                f"a result has the columns window, start and end, and this table has {', '.join(map(repr, names))}: "
                "draw what query.run(events) returns, or call query.plot(events)"
            )
        if "op" in names:
            table = _replayed(table)
        if not len(table):
            raise QueryError("there is no window to draw")
        keys = tuple(names[: names.index("window")])
        answers = answers_of(names, keys)
        drawable = [name for name in answers if is_number(table.schema.field(name).type)]
        there = table["window"].unique().to_pylist()
        windows = _chosen(window, there, what="window")
        aggregates = _chosen(aggregate, answers, what="aggregate") if aggregate is not None else drawable
        for name in aggregates:
            if name not in drawable:
                type_ = table.schema.field(name).type
                raise QueryError(f"aggregate {name!r} cannot be drawn: it is {type_}, and numbers can")
        if not aggregates:
            raise QueryError("there is no aggregate that is a number, and so none that can be drawn")
        table = table.filter(pc.is_in(table["window"].cast(pa.string()), pa.array(windows)))
        return cls(table, keys, tuple(windows), tuple(aggregates))

    @cached_property
    def is_time(self) -> bool:
        """Whether the measure is time."""
        return pa.types.is_temporal(self.table.schema.field("start").type)

    @cached_property
    def zone(self) -> str | None:
        """The time zone in which places are shown."""
        return getattr(self.table.schema.field("start").type, "tz", None)

    @cached_property
    def starts(self) -> np.ndarray:
        return places_of(self.table["start"]) / (DAY if self.is_time else 1)

    @cached_property
    def ends(self) -> np.ndarray:
        return places_of(self.table["end"]) / (DAY if self.is_time else 1)

    @cached_property
    def _window_of(self) -> np.ndarray:
        names = pa.array(self.windows)
        return np.asarray(pc.index_in(self.table["window"].cast(pa.string()), names))

    @cached_property
    def labels(self) -> list[str]:
        """The keys as they are written, by their numbers."""
        return self._numbered[0]

    @cached_property
    def key_of(self) -> np.ndarray:
        """The number of the key of each window."""
        return self._numbered[1]

    @cached_property
    def _numbered(self) -> tuple[list[str], np.ndarray]:
        labels, codes = key_labels(self.table, self.keys)
        order = sorted(range(len(labels)), key=lambda i: _natural(labels[i]))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return [labels[i] for i in order], rank[codes]

    def numbers(self, aggregate: str) -> np.ndarray:
        """The values of an aggregate; NaN for null."""
        return numbers_of(self.table[aggregate])

    def lines(self, aggregate: str, window: str) -> Iterator[Line]:
        """One line for each key."""
        here = np.flatnonzero(self._window_of == self.windows.index(window))
        values = self.numbers(aggregate)
        order = here[np.lexsort((self.ends[here], self.key_of[here]))]
        bounds = np.flatnonzero(np.diff(self.key_of[order])) + 1
        for rows in np.split(order, bounds):
            if len(rows):
                label = self.labels[self.key_of[rows[0]]]
                yield Line(label, window, self.starts[rows], self.ends[rows], values[rows])

    def is_uneven(self, window: str) -> bool:
        """Whether windows of one spec are of many lengths, as sessions are."""
        here = self._window_of == self.windows.index(window)
        lengths = (self.ends - self.starts)[here]
        if not len(lengths):
            return False
        common = np.median(lengths)
        return bool((np.abs(lengths - common) > 0.2 * common).mean() > 0.2)


def _replayed(changelog: pa.Table) -> pa.Table:
    """The rows of a changelog that are there in the end: the last one of each window, unless that took it back."""
    parts = [
        _decoded(changelog[name])
        for name in changelog.column_names[: changelog.column_names.index("end") + 1]
    ]
    names = [f"part {i}" for i in range(len(parts))]
    rows = pa.table([*parts, pa.array(np.arange(len(changelog)))], [*names, "row"])
    last = rows.group_by(names, use_threads=False).aggregate([("row", "max")])["row_max"]
    changelog = changelog.take(np.sort(np.asarray(last)))
    return changelog.filter(pc.not_equal(changelog["op"], "delete"))


def fitting(series: Series) -> str:
    """The kind that shows these windows best."""
    if any(series.is_uneven(window) for window in series.windows):
        return "bars"
    return "heatmap" if len(series.labels) > MOST_LINES else "lines"


def is_number(type_: pa.DataType) -> bool:
    """Whether values of a type can be drawn."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(type_) for is_kind in kinds)


def require_look(kind: str, theme: str) -> None:
    """An error if there is no such kind of picture, or no such theme."""
    for what, name, known in (("theme", theme, THEMES), ("kind", kind, KINDS)):
        if name not in ("auto", *known):
            raise QueryError(f"{what} cannot be {name!r}{choices(name, ['auto', *known])}")


def _chosen(names: str | Sequence[str] | None, there: Sequence[str], *, what: str) -> list[str]:
    asked = list(there) if names is None else [names] if isinstance(names, str) else list(names)
    if names is not None and not asked:
        raise QueryError(f"{what}=[] leaves nothing to draw; without it, all are drawn")
    for name in asked:
        if name not in there:
            raise QueryError(f"there is no {what} {name!r}{choices(name, there)}")
    return asked


def _natural(label: str) -> list[tuple[int, float, str]]:
    """Numbers in a text by their size: `user 9` before `user 10`."""
    parts = re.findall(r"\d+|\D+", label)
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts]


def key_labels(table: pa.Table, keys: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The keys of a table as they are written, and the number of the key of each row."""
    if not keys:
        return [""], np.zeros(len(table), np.int64)
    columns = []
    for name in keys:
        column = _decoded(table[name])
        columns.append(pc.fill_null(_written(column), "null"))
    joined = pc.binary_join_element_wise(*columns, " · ") if len(columns) > 1 else columns[0]
    encoded = joined.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices)


def _written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as texts; bytes that are no text as Python writes them."""
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if not any(is_kind(column.type) for is_kind in kinds):
        return column.cast(pa.string())
    encoded = column.combine_chunks().dictionary_encode()
    texts = [value.decode("utf-8", "backslashreplace") for value in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string()).take(encoded.indices)])


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column, without a dictionary."""
    type_ = column.type
    return column.cast(type_.value_type) if isinstance(type_, pa.DictionaryType) else column


def numbers_of(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers as floats; NaN for null."""
    return np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan))


def places_of(column: pa.ChunkedArray) -> np.ndarray:
    """Times as milliseconds since 1970, on the clocks of their zone; other measures as they are."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        local = pc.local_timestamp(column) if type_.tz else column
        return np.asarray(local.cast(pa.int64()), dtype=np.float64) * _MILLISECONDS[type_.unit]
    if pa.types.is_date(type_):
        return np.asarray(column.cast(pa.date32()).cast(pa.int32()), dtype=np.float64) * DAY
    return numbers_of(column)
