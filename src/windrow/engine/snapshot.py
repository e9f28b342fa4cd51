"""The state of an operator as bytes, and back.

    8 bytes   magic             "windrow" and a zero byte
    4 bytes   version           of this format
    32 bytes  plan              SHA-256 of the query
    8 bytes   length            of the body
    4 bytes   CRC-32            of the body
    body      Arrow IPC stream  one table: name, dtype, data

Reading trusts nothing: header, length and checksum first, then the Arrow table is validated in full,
then every array is checked against what the query says it must be, and every offset, slot and code
against its bounds. Only then does compiled code see it. There is no pickle, so a snapshot cannot run
code. Parts that are tables themselves (keys, late rows) are Arrow IPC streams inside `data`.
"""

from __future__ import annotations

import hashlib
import json
import struct
import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.durations import Duration
from windrow.engine.binding import Binding
from windrow.engine.keys import Keys
from windrow.engine.operator import Operator
from windrow.engine.settings import Counters, Settings
from windrow.errors import StateError, WindrowError
from windrow.measure import Point, Tick, parse_point
from windrow.query import Query

MAGIC = b"windrow\0"
VERSION = 1
HEADER = struct.Struct("<8sI32sQI")
BODY = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("dtype", pa.string(), nullable=False),
        pa.field("data", pa.large_binary(), nullable=False),
    ]
)
DTYPES = {"int8", "int32", "int64", "float64", "uint8"}


def plan_hash(query: Query) -> bytes:
    """The same for queries that compute the same; functions count by their code."""
    parts = [query.time, repr(query.key), repr(query.ordered)]
    parts += [f"{name}={_identity(window)}" for name, window in query.windows.items()]
    parts += [f"{name}={_identity(aggregate)}" for name, aggregate in query.aggregates.items()]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _identity(spec: Any) -> str:
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    shown = {k: _code(v) if callable(v) else repr(v) for k, v in fields.items()}
    return f"{type(spec).__qualname__}({shown})"


def _code(function: Callable[..., Any]) -> str:
    function = getattr(function, "py_func", function)
    if not isinstance(function, types.FunctionType):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function))}"
    cells = [c.cell_contents for c in function.__closure__ or ()]
    shown = [_code(c) if callable(c) else repr(c) for c in cells]
    return repr((_code_object(function.__code__), shown, function.__defaults__))


def _code_object(code: types.CodeType) -> tuple[Any, ...]:
    constants = [_constant(c) for c in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _code_object(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def save(operator: Operator) -> bytes:
    """See `Operator.snapshot`."""
    body = _stream(_body(operator))
    header = HEADER.pack(MAGIC, VERSION, plan_hash(operator.query), len(body), zlib.crc32(body))
    return header + body


def _body(operator: Operator) -> pa.Table:
    entries: list[tuple[str, str, bytes]] = []

    def put(name: str, array: np.ndarray) -> None:
        entries.append((name, str(array.dtype), np.ascontiguousarray(array).tobytes()))

    entries.append(("about", "json", json.dumps(_about(operator)).encode()))
    if operator.binding is not None:
        binding, slices, keys = operator.binding, operator.slices, operator.keys.count
        read = pa.schema([binding.schema.field(name) for name in binding.columns])
        entries.append(("schema", "table", _stream(read.empty_table())))
        key_table = pa.Table.from_arrays(operator.keys.columns, schema=operator.keys.schema)
        entries.append(("keys", "table", _stream(key_table)))
        put("starts", slices.starts)
        put("ends", slices.ends)
        for i, store in enumerate(operator.stores()):
            for name, array in store.save(slices.slots, keys).items():
                put(f"store {i} {name}", array)
        for name, coder in binding.coders.items():
            if coder.text:
                table = pa.table({"value": coder.dictionary})
                entries.append((f"strings {name}", "table", _stream(table)))
        for i, (_, _, _, row) in enumerate(operator.ledger.save()):
            put(f"revisions {i}", row[:keys])
        for kind, parts in operator.set_aside().items():
            entries.append((kind, "table", _stream(_without_extensions(parts))))
    names, dtypes, data = (list(column) for column in zip(*entries, strict=True))
    return pa.table([names, dtypes, data], schema=BODY)


def _about(operator: Operator) -> dict[str, Any]:
    settings = operator.settings
    about: dict[str, Any] = {
        "mode": settings.mode,
        "lateness": _duration(settings.lateness),
        "on_bad": settings.on_bad,
        "max_slices": settings.max_slices,
        "max_ahead": None if settings.max_ahead is None else _duration(settings.max_ahead),
        "counters": vars(operator.counters),
        "early_watermark": None if operator.early_watermark is None else vars(operator.early_watermark),
    }
    if operator.binding is not None:
        mixed = operator.slices.mixed_until
        about |= {
            "watermark": _number(operator.watermark),
            "highest_time": _number(operator.highest_time),
            "threshold": _number(operator.threshold),
            "mixed_until": _number(mixed),
            "fresh_seen": operator.fresh_seen,
            "backlog": sorted(operator.backlog),
            "complete_from": {name: _number(tick) for name, tick in operator.complete_from.items()},
            "revised": [[n, _number(s), _number(e)] for n, s, e, _ in operator.ledger.save()],
        }
    return about


def _number(tick: Any) -> Any:
    return None if tick is None else (tick.item() if isinstance(tick, np.generic) else tick)


def _duration(duration: Duration) -> list[Any]:
    return [duration.text, duration.nanoseconds, duration.number]


def _without_extensions(table: pa.Table) -> pa.Table:
    """Rows set aside keep all their columns; those of an extension type as what they are stored as."""
    for i, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.storage_type))
    return table


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def restore(query: Query, state: bytes) -> Operator:
    """See `Query.restore`."""
    body = _checked_body(query, state)
    try:
        return _Reader(query, body).operator()
    except StateError:
        raise
    except WindrowError as problem:
        raise StateError(f"the snapshot's content does not fit its query: {problem}") from problem
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, pa.ArrowException) as problem:
        raise StateError(f"the snapshot's content does not fit its query: {problem}") from problem


def _checked_body(query: Query, state: bytes) -> bytes:
    if not isinstance(state, (bytes, bytearray, memoryview)):
        raise StateError(f"a snapshot is bytes, not {type(state).__name__}")
    state = bytes(state)
    if len(state) < HEADER.size or not state.startswith(MAGIC):
        raise StateError("this is no windrow snapshot: its first bytes are not windrow's")
    _, version, plan, length, checksum = HEADER.unpack_from(state)
    if version != VERSION:
        raise StateError(f"the snapshot has format version {version}; this windrow reads version {VERSION}")
    body = state[HEADER.size :]
    if len(body) != length:
        raise StateError(f"the snapshot is truncated or has grown: {len(body):,} bytes instead of {length:,}")
    if zlib.crc32(body) != checksum:
        raise StateError("the snapshot is corrupted: its checksum does not match")
    if plan != plan_hash(query):
        raise StateError("the snapshot belongs to another query: windows, aggregates, key or time differ")
    return body


def _table(data: bytes) -> pa.Table:
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


class _Reader:
    """Rebuilds an operator from a checked body. Each part must be there, be read, and make sense."""

    def __init__(self, query: Query, body: bytes) -> None:
        table = _table(body)
        if table.schema != BODY:
            raise StateError("the snapshot's table has other columns than it should")
        self._query = query
        rows = zip(*(table.column(n).to_pylist() for n in BODY.names), strict=True)
        self._entries = {name: (dtype, data) for name, dtype, data in rows}
        self._unread = set(self._entries)
        self._about = _json(self._raw("about", "json"))

    def _raw(self, name: str, kind: str) -> bytes:
        if name not in self._entries:
            raise StateError(f"the snapshot lacks its part {name!r}")
        dtype, data = self._entries[name]
        if dtype != kind:
            raise StateError(f"part {name!r} of the snapshot is {dtype}, not {kind}")
        self._unread.discard(name)
        return data

    def _array(self, name: str) -> np.ndarray:
        if name not in self._entries or self._entries[name][0] not in DTYPES:
            raise StateError(f"the snapshot lacks its array {name!r}")
        dtype, data = self._entries[name]
        self._unread.discard(name)
        return np.frombuffer(data, dtype).copy()

    def operator(self) -> Operator:
        about = self._about
        operator = Operator(self._query, _settings(about))
        early = about["early_watermark"]
        operator.early_watermark = None if early is None else parse_point(_point(early), what="watermark")
        if "schema" in self._entries:
            self._fill(operator)
        counters = Counters(**about["counters"])
        if not all(type(v) is int and v >= 0 for v in vars(counters).values()):
            raise StateError("the snapshot's counters are not counts")
        operator.counters = counters
        if self._unread:
            raise StateError(f"the snapshot has a part that nobody reads: {min(self._unread)!r}")
        return operator

    def _fill(self, operator: Operator) -> None:
        operator.bind(Binding(self._query, _table(self._raw("schema", "table")).schema))
        binding = operator.binding
        assert binding is not None
        key_table = _table(self._raw("keys", "table")).combine_chunks()
        if key_table.schema != operator.keys.schema:
            raise StateError("the snapshot's keys are not of the types of the key columns")
        operator.keys = Keys.of(binding.key_schema, [_one(c) for c in key_table.columns])
        keys = operator.keys.count
        if binding.key_schema.names and keys != key_table.num_rows:
            raise StateError("the snapshot's keys are not all different")
        starts, ends = self._array("starts"), self._array("ends")
        self._check_slices(operator, starts, ends)
        operator.resize(len(starts) + 8, max(1, keys), slice(0, 0))
        operator.slices.starts, operator.slices.ends = starts, ends
        operator.slices.repack(len(starts) + 8)
        self._load_strings(binding)
        self._load_stores(operator, len(starts), keys)
        self._load_clock(operator)
        self._load_ledger(operator, keys)
        self._load_set_aside(operator)

    def _check_slices(self, operator: Operator, starts: np.ndarray, ends: np.ndarray) -> None:
        dtype, longest = operator.slices.starts.dtype, operator.windows.longest
        fine = starts.dtype == dtype and ends.dtype == dtype and len(starts) == len(ends)
        if not fine or np.any(ends <= starts) or np.any(starts[1:] < ends[:-1]):
            raise StateError("the snapshot's slices are not in order")
        low, high = operator.lowest - longest, operator.highest + operator.lateness + longest
        if len(starts) and (starts[0].item() < low or ends[-1].item() > high):
            raise StateError("the snapshot's slices lie outside the times that the query can handle")

    def _load_strings(self, binding: Binding) -> None:
        for name, coder in binding.coders.items():
            if not coder.text:
                continue
            strings = _one(_table(self._raw(f"strings {name}", "table")).column("value"))
            if strings.type != coder.dictionary.type or strings.null_count:
                raise StateError(f"the snapshot's strings of column {name!r} are not of its type")
            order = pc.sort_indices(strings).to_numpy()
            if len(strings.unique()) != len(strings) or np.any(order != np.arange(len(order))):
                raise StateError(f"the snapshot's strings of column {name!r} are not in order")
            coder.dictionary = strings

    def _load_stores(self, operator: Operator, slices: int, keys: int) -> None:
        binding = operator.binding
        assert binding is not None
        slots = np.arange(slices)
        for i, store in enumerate(operator.stores()):
            prefix = f"store {i} "
            arrays = {n[len(prefix) :]: self._array(n) for n in self._entries if n.startswith(prefix)}
            try:
                store.load(arrays, slots, keys)
            except ValueError as problem:
                raise StateError(f"part {prefix.strip()!r} of the snapshot: {problem}") from problem
        for (_, columns), store in binding.stores.items():
            for position, column in enumerate(columns):
                coder = binding.coders.get(column)
                if coder is not None and coder.text:
                    codes = store.codes(position)
                    if len(codes) and (codes[0] < 0 or codes[-1] >= len(coder.dictionary)):
                        raise StateError(f"the snapshot refers to unknown strings of column {column!r}")

    def _load_clock(self, operator: Operator) -> None:
        about = self._about
        windows = operator.windows.names
        known = {f"window {n}" for n in windows} | {f"aggregate {n}" for n in self._query.aggregates}
        if not set(about["complete_from"]) <= known or not set(about["backlog"]) <= set(windows):
            raise StateError("the snapshot speaks of windows or aggregates that the query does not have")
        operator.watermark = self._tick(operator, about["watermark"])
        operator.highest_time = self._tick(operator, about["highest_time"])
        threshold = self._tick(operator, about["threshold"])
        if threshold is None:
            raise StateError("the snapshot does not say from when on events are late")
        operator.threshold = threshold
        operator.slices.mixed_until = self._tick(operator, about["mixed_until"])
        operator.fresh_seen = bool(about["fresh_seen"])
        ticks = {name: self._tick(operator, tick) for name, tick in about["complete_from"].items()}
        operator.complete_from = {name: tick for name, tick in ticks.items() if tick is not None}
        operator.backlog = set(about["backlog"])

    def _tick(self, operator: Operator, value: Any) -> Tick | None:
        """A point on the measure: an int, or a float on a float measure."""
        if value is None or type(value) is (float if operator.binding.measure.floating else int):  # type: ignore[union-attr]
            return value
        raise StateError(f"{value!r} in the snapshot is not a point on the measure")

    def _load_ledger(self, operator: Operator, keys: int) -> None:
        entries = []
        for i, (name, start, end) in enumerate(self._about["revised"]):
            row = self._array(f"revisions {i}")
            if row.dtype != np.int32 or len(row) != keys or name not in operator.windows.names:
                raise StateError("the snapshot's revisions do not fit its windows and keys")
            first, last = self._tick(operator, start), self._tick(operator, end)
            if first is None or last is None:
                raise StateError("the snapshot's revisions are of windows without a start or an end")
            entries.append(
                (name, first, last, np.concatenate([row, np.zeros(operator.stride - keys, np.int32)]))
            )
        operator.ledger.load(entries)

    def _load_set_aside(self, operator: Operator) -> None:
        late, bad = (_table(self._raw(kind, "table")) for kind in ("late", "bad"))
        for field in operator.binding.schema:  # type: ignore[union-attr]
            for table in (late, bad):
                if field.name not in table.column_names or table.schema.field(field.name).type != field.type:
                    raise StateError(f"the rows set aside in the snapshot lack column {field.name!r}")
        if "bad_reason" not in bad.column_names:
            raise StateError("the bad rows in the snapshot come without a reason")
        operator.put_aside(late, bad)


def _json(text: bytes) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise StateError(f"the snapshot's description is no JSON: {problem}") from problem
    if not isinstance(about, dict):
        raise StateError("the snapshot's description is not what it should be")
    return about


def _settings(about: dict[str, Any]) -> Settings:
    """The operator's options, checked as those of a user are."""
    ahead = about["max_ahead"]
    slices = about["max_slices"]
    if type(slices) is not int:
        raise StateError(f"max_slices in the snapshot is {slices!r}")
    return Settings.of(
        about["mode"],
        _read_duration(about["lateness"]),
        about["on_bad"],
        slices,
        None if ahead is None else _read_duration(ahead),
    )


def _read_duration(parts: Any) -> Duration:
    text, nanoseconds, number = parts
    if not isinstance(text, str) or (nanoseconds is None) == (number is None):
        raise StateError(f"{parts!r} in the snapshot is not a duration")
    return Duration(text, nanoseconds, number)


def _point(early: dict[str, Any]) -> Point:
    if sum(type(v) in (int, float) for v in early.values()) != 1:
        raise StateError(f"{early!r} in the snapshot is not a watermark")
    return Point(**early)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], column.type)
    )
