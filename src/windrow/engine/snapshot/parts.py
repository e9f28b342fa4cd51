"""The parts of a snapshot: named arrays and tables, written one by one and read with suspicion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.durations import Duration
from windrow.errors import StateError
from windrow.measure import INT64_MAX, INT64_MIN, Measure, Point, Tick

BODY = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("dtype", pa.string(), nullable=False),
        pa.field("data", pa.large_binary(), nullable=False),
    ]
)
DTYPES = {"int8", "int32", "int64", "float64", "uint8", "bool"}


class Writer:
    """Collects parts."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str, bytes]] = []

    def text(self, name: str, text: str) -> None:
        self._entries.append((name, "json", text.encode()))

    def array(self, name: str, array: np.ndarray) -> None:
        self._entries.append((name, str(array.dtype), np.ascontiguousarray(array).tobytes()))

    def table(self, name: str, table: pa.Table) -> None:
        self._entries.append((name, "table", stream_of(table)))

    def body(self) -> bytes:
        names, dtypes, data = (list(column) for column in zip(*self._entries, strict=True))
        return stream_of(pa.table([names, dtypes, data], schema=BODY))


class Reader:
    """Gives parts back. Each must be there, be of its kind, and be read."""

    def __init__(self, body: bytes) -> None:
        table = table_of(body)
        if table.schema != BODY:
            raise StateError("the snapshot's table has other columns than it should")
        rows = zip(*(table.column(n).to_pylist() for n in BODY.names), strict=True)
        self._entries = {name: (dtype, data) for name, dtype, data in rows}
        self._unread = set(self._entries)

    def text(self, name: str) -> bytes:
        return self._raw(name, "json")

    def has(self, name: str) -> bool:
        return name in self._entries

    def table(self, name: str) -> pa.Table:
        return table_of(self._raw(name, "table"))

    def _raw(self, name: str, kind: str) -> bytes:
        if name not in self._entries:
            raise StateError(f"the snapshot lacks its part {name!r}")
        dtype, data = self._entries[name]
        if dtype != kind:
            raise StateError(f"part {name!r} of the snapshot is {dtype}, not {kind}")
        self._unread.discard(name)
        return data

    def array(self, name: str, dtype: Any = None) -> np.ndarray:
        """A copy of an array, of this dtype if one is given."""
        if name not in self._entries or self._entries[name][0] not in DTYPES:
            raise StateError(f"the snapshot lacks its array {name!r}")
        kind, data = self._entries[name]
        if dtype is not None and np.dtype(kind) != np.dtype(dtype):
            raise StateError(f"the snapshot's array {name!r} is of type {kind}, not {np.dtype(dtype)}")
        self._unread.discard(name)
        return np.frombuffer(data, kind).copy()

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """All arrays whose names begin with `prefix`, by the rest of their names."""
        return {n[len(prefix) :]: self.array(n) for n in self._entries if n.startswith(prefix)}

    def rename(self, old: str, new: str) -> None:
        """Read what has the prefix `old` under the prefix `new`, instead of what was there."""
        moved = {new + n[len(old) :]: entry for n, entry in self._entries.items() if n.startswith(old)}
        self._entries = {n: e for n, e in self._entries.items() if not n.startswith((old, new))} | moved
        self._unread = set(self._entries) & (self._unread | set(moved))

    def require_all_read(self) -> None:
        if self._unread:
            raise StateError(f"the snapshot has a part that nobody reads: {min(self._unread)!r}")


def stream_of(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def table_of(data: bytes) -> pa.Table:
    """The opposite of `stream_of`, validated in full; extension types are refused."""
    try:
        with pa.ipc.open_stream(data) as reader:
            for field in reader.schema:
                if isinstance(field.type, pa.BaseExtensionType):
                    raise StateError(f"the snapshot holds an extension type in {field.name!r}")
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as problem:
        raise StateError(f"the snapshot holds an invalid Arrow stream: {problem}") from problem
    return table


def one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def number(tick: Any) -> Any:
    """A tick as JSON can hold it."""
    return tick.item() if isinstance(tick, np.generic) else tick


def tick_of(measure: Measure, value: Any) -> Tick | None:
    """A point on the measure: an int, or a float on a float measure."""
    if value is None or type(value) is (float if measure.floating else int):
        return value
    raise StateError(f"{value!r} in the snapshot is not a point on the measure")


def known_tick(measure: Measure, value: Any, what: str) -> Tick:
    """As `tick_of`, where there must be one."""
    tick = tick_of(measure, value)
    if tick is None:
        raise StateError(f"the snapshot does not say {what}")
    if not measure.floating and not INT64_MIN <= tick <= INT64_MAX:
        raise StateError(f"{tick} in the snapshot is not a 64-bit number, and cannot say {what}")
    return tick


def duration_of(text: Any, nanoseconds: Any, number: Any) -> Duration:
    """A duration of these parts."""
    if not isinstance(text, str) or not _is_one(nanoseconds, number):
        raise StateError(f"{[text, nanoseconds, number]!r} in the snapshot is not a duration")
    return Duration(text, nanoseconds, number)


def point_of(nanoseconds: Any, number: Any) -> Point:
    """A point of these parts."""
    if not _is_one(nanoseconds, number):
        raise StateError(f"{[nanoseconds, number]!r} in the snapshot is not a point")
    return Point(nanoseconds, number)


def _is_one(nanoseconds: Any, number: Any) -> bool:
    """Whether one of the two is set, to a number of its kind that is no NaN."""
    if nanoseconds is None:
        return type(number) in (int, float) and number == number
    return type(nanoseconds) is int and number is None
