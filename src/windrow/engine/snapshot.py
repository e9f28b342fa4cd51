"""The state of an operator as bytes, and back.

    8 bytes   magic             "windrow" and a zero byte
    4 bytes   version           of this format
    32 bytes  plan              SHA-256 of the query
    8 bytes   length            of the body
    4 bytes   CRC-32            of the body
    body      Arrow IPC stream  one table: name, dtype, shape, data

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

from windrow.durations import Duration
from windrow.engine.binding import Binding
from windrow.engine.emission import Ledger
from windrow.engine.keys import Keys
from windrow.engine.operator import Counters, Operator, Settings
from windrow.errors import QueryError, StateError
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
    if not isinstance(function, types.FunctionType):
        return repr(function)
    cells = [c.cell_contents for c in function.__closure__ or ()]
    shown = [_code(c) if callable(c) else repr(c) for c in cells]
    return repr((_code_object(function.__code__), shown, function.__defaults__))


def _code_object(code: types.CodeType) -> tuple[Any, ...]:
    constants = [_code_object(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames


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
        entries.append(("schema", "table", _stream(binding.schema.empty_table())))
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
            entries.append((kind, "table", _stream(parts)))
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
    elif operator.early_watermark is not None:
        raise QueryError("an operator that has a watermark but no events yet cannot be saved")
    return about


def _number(tick: Any) -> Any:
    return None if tick is None else (tick.item() if isinstance(tick, np.generic) else tick)


def _duration(duration: Duration) -> list[Any]:
    return [duration.text, duration.nanoseconds, duration.number]


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
    """Rebuilds an operator from a checked body."""

    def __init__(self, query: Query, body: bytes) -> None:
        table = _table(body)
        if table.schema != BODY:
            raise StateError("the snapshot's table has other columns than it should")
        self._query = query
        rows = zip(*(table.column(n).to_pylist() for n in BODY.names), strict=True)
        self._entries = {name: (dtype, data) for name, dtype, data in rows}
        self._about = json.loads(self._raw("about", "json"))

    def _raw(self, name: str, kind: str) -> bytes:
        if name not in self._entries:
            raise StateError(f"the snapshot lacks its part {name!r}")
        dtype, data = self._entries[name]
        if dtype != kind:
            raise StateError(f"part {name!r} of the snapshot is {dtype}, not {kind}")
        return data

    def _array(self, name: str) -> np.ndarray:
        if name not in self._entries or self._entries[name][0] not in DTYPES:
            raise StateError(f"the snapshot lacks its array {name!r}")
        dtype, data = self._entries[name]
        return np.frombuffer(data, dtype).copy()

    def operator(self) -> Operator:
        about = self._about
        ahead = about["max_ahead"]
        settings = Settings(
            about["mode"],
            Duration(*about["lateness"]),
            about["on_bad"],
            int(about["max_slices"]),
            None if ahead is None else Duration(*ahead),
        )
        operator = Operator(self._query, settings)
        if "schema" in self._entries:
            self._fill(operator)
        operator.counters = Counters(**{k: int(v) for k, v in about["counters"].items()})
        return operator

    def _fill(self, operator: Operator) -> None:
        about = self._about
        operator.bind(Binding(self._query, _table(self._raw("schema", "table")).schema))
        binding = operator.binding
        assert binding is not None
        key_table = _table(self._raw("keys", "table")).combine_chunks()
        operator.keys = Keys.of(binding.key_schema, [_one(c) for c in key_table.columns])
        keys = operator.keys.count
        if binding.key_schema.names and keys != key_table.num_rows:
            raise StateError("the snapshot's keys are not all different")
        starts, ends = self._array("starts"), self._array("ends")
        self._check_slices(starts, ends, binding.measure.dtype)
        operator.resize(len(starts) + 8, max(1, keys), slice(0, 0))
        operator.slices.starts, operator.slices.ends = starts, ends
        operator.slices.repack(len(starts) + 8)
        for name, coder in binding.coders.items():
            if coder.text:
                strings = _one(_table(self._raw(f"strings {name}", "table")).column("value"))
                if strings.type != coder.dictionary.type or strings.null_count:
                    raise StateError(f"the snapshot's strings of column {name!r} are not of its type")
                coder.dictionary = strings
        self._load_stores(operator, len(starts), keys)
        operator.watermark = about["watermark"]
        operator.highest_time = about["highest_time"]
        operator.threshold = about["threshold"]
        operator.slices.mixed_until = about["mixed_until"]
        operator.fresh_seen = bool(about["fresh_seen"])
        operator.complete_from = dict(about["complete_from"])
        operator.backlog = set(about["backlog"])
        self._load_ledger(operator.ledger, keys, operator.stride)
        operator.put_aside(*(_table(self._raw(kind, "table")) for kind in ("late", "bad")))

    def _check_slices(self, starts: np.ndarray, ends: np.ndarray, dtype: Any) -> None:
        fine = starts.dtype == dtype and ends.dtype == dtype and len(starts) == len(ends)
        if not fine or np.any(ends <= starts) or np.any(starts[1:] < ends[:-1]):
            raise StateError("the snapshot's slices are not in order")

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

    def _load_ledger(self, ledger: Ledger, keys: int, stride: int) -> None:
        entries = []
        for i, (name, start, end) in enumerate(self._about["revised"]):
            row = self._array(f"revisions {i}")
            if row.dtype != np.int32 or len(row) != keys:
                raise StateError("the snapshot's revisions do not fit its keys")
            entries.append((name, start, end, np.concatenate([row, np.zeros(stride - keys, np.int32)])))
        ledger.load(entries)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], column.type)
    )
