"""The frame of a snapshot: header and body, settings and counters, and one section per engine."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from windrow.durations import Duration
from windrow.engine.engines import engine_of
from windrow.engine.intake.keys import Keys
from windrow.engine.metrics import Counters
from windrow.engine.operator_state import OperatorState
from windrow.engine.ordered.engine import Ordered
from windrow.engine.snapshot import aligned, common, ordered, sessions, spanning, version_3
from windrow.engine.snapshot.description import described, rebuilt, require_compatible
from windrow.engine.snapshot.parts import Reader, Writer, duration_of, number, point_of, tick_of
from windrow.engine.snapshot.plan import plan_hash
from windrow.errors import StateError, WindrowError
from windrow.measure import parse_point
from windrow.options import OperatorOptions
from windrow.planner.plan import Plan
from windrow.spec import QuerySpec
from windrow.triggers import CLOSE, Trigger, trigger_of
from windrow.watermarks import Now, Watermark, watermark

if TYPE_CHECKING:
    from windrow.engine.engines import AnyEngine

State = TypeVar("State", bound=OperatorState)
MAGIC = b"windrow\0"
VERSION = 7
# Version 3 has other sections for sessions and for windows that depend on order, and up to version 5 events that wait for their
# order are rows as they came; from version 7 on there is a description of the query. All else is the same.
READABLE = (3, 5, 6, VERSION)
OLD_SECTION = (
    "the snapshot is of format version 3, in which windows that depend on the order of events, and sessions beside windows of "
    "time, share slices as they do not any more: begin anew from the source of the events"
)
# What each kind of engine writes and reads besides what is common.
SECTIONS: dict[str, Any] = {"aligned": aligned, "ordered": ordered, "sessions": sessions}
# What engines were called that are "aligned" now.
ALIGNED = ("spanning", "prorated")
HEADER = struct.Struct("<8sI32sQI")


def save(operator: OperatorState) -> bytes:
    """See `Operator.snapshot`."""
    writer = Writer()
    sections = [_write(writer, engine, f"engine {i} ") for i, engine in enumerate(operator.engines)]
    writer.text("about", json.dumps(_about(operator) | {"engines": sections}))
    if operator.schema is not None:
        common.write_keys(writer, operator.engines[0].keys)
        writer.table("schema", _without_extensions(operator.schema.empty_table()))
        if operator.span_input is not None:
            spanning.write_input(writer, operator.span_input)
        if operator.unfetched:
            writer.table("unfetched", pa.concat_tables(operator.unfetched))
        if operator.following is not None:
            partitions, newest, silent = operator.following.save()
            writer.table("partitions", partitions)
            writer.array("newest", newest)
            writer.array("silent", silent)
        if operator.gate is not None:
            writer.table("given out early", operator.gate.save())
        for kind, rows in operator.set_aside().items():
            writer.table(kind, _without_extensions(rows))
    return framed(plan_hash(operator.query), writer.body())


def framed(plan: bytes, body: bytes) -> bytes:
    """A body behind its header; `plan` is a hash of what it belongs to."""
    return HEADER.pack(MAGIC, VERSION, plan, len(body), checksum(VERSION, plan, body)) + body


def checksum(version: int, plan: bytes, body: bytes) -> int:
    """Up to version 6 a changed hash was told by the query that it was of."""
    return zlib.crc32(body) if version < 7 else zlib.crc32(body, zlib.crc32(plan))


def _write(writer: Writer, engine: AnyEngine, prefix: str) -> dict[str, Any]:
    """Write the section of an engine; what JSON says about it."""
    common.write(writer, engine, prefix)
    kind = engine.part.kind
    section = SECTIONS[kind].write(writer, engine, prefix)
    return common.about(engine) | {"kind": kind} | section


def _read(
    reader: Reader,
    query: QuerySpec,
    settings: OperatorOptions,
    schema: pa.Schema,
    keys: Keys,
    about: dict[str, Any],
    prefix: str,
) -> AnyEngine:
    windows = about["windows"]
    if not windows or not set(windows) <= set(query.windows):
        raise StateError("the snapshot speaks of windows that the query does not have")
    named = replace(query, windows=MappingProxyType({name: query.windows[name] for name in windows}))
    plan = Plan.of(named, schema, settings)
    kinds = [part.kind for part in plan.parts]
    is_old = version_3.is_section(reader, prefix)
    if is_old and kinds != ["sessions"]:
        raise StateError(OLD_SECTION)
    kind = "sessions" if is_old else "aligned" if about["kind"] in ALIGNED else about["kind"]
    if kind not in SECTIONS:
        raise StateError(f"the snapshot has an engine of the unknown kind {kind!r}")
    if kinds != [kind]:
        raise StateError("the snapshot's engine cannot answer the windows of the query")
    engine = engine_of(plan.parts[0], keys)
    common.read(reader, engine, about, prefix)
    (version_3 if is_old else SECTIONS[kind]).read(reader, engine, about, prefix)
    common.check_codes(engine)
    return engine


def in_other_mode(engine: Ordered, options: OperatorOptions) -> AnyEngine:
    """An engine of these options and the same state, but for what was emitted: as if it had been saved and restored."""
    engine.forget_emitted()
    writer = Writer()
    about, part = _write(writer, engine, ""), replace(engine.part, options=options)
    fresh = engine_of(part, engine.keys)
    common.read(reader := Reader(writer.body()), fresh, about, "")
    SECTIONS[part.kind].read(reader, fresh, about, "")
    return fresh


def _about(operator: OperatorState) -> dict[str, Any]:
    settings, early = operator.settings, operator.early_watermark
    return vars(settings) | {
        "lateness": _duration(settings.allowed_lateness),
        "max_ahead": None if settings.bound_ahead is None else _duration(settings.bound_ahead),
        "counters": vars(operator.counters),
        "early_watermark": None if early is None else vars(early),
        "watermark": number(operator.watermark),
        "highest_time": number(operator.highest_time),
        "said": number(operator.said),
        "emit": CLOSE if settings.trigger is None else settings.trigger.described(),
        "looked_events": operator.looked_events,
        "looked_to": number(operator.looked_to),
        "follows": None if operator.follows is None else _followed(operator.follows),
        "query": described(operator),
    }


def _followed(spec: Watermark) -> dict[str, Any]:
    idle = None if spec.idle is None else _duration(spec.idle)
    return {"delay": _duration(spec.delay), "idle": idle, "per": list(spec.per)}


def _follows(said: dict[str, Any]) -> Watermark:
    """The opposite of `_followed`, checked as what a user says is."""
    idle = None if said["idle"] is None else duration_of(*said["idle"])
    return watermark(delay=duration_of(*said["delay"]), idle=idle, per=said["per"])


def _duration(duration: Duration) -> list[Any]:
    return [duration.text, duration.nanoseconds, duration.number]


def _without_extensions(table: pa.Table) -> pa.Table:
    """Rows set aside keep all their columns; those of an extension type as what they are stored as."""
    for i, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.storage_type))
    return table


def restore(
    query: QuerySpec,
    state: bytes,
    make: Callable[[QuerySpec, OperatorOptions], State],
    emit: str | Trigger = CLOSE,
) -> State:
    """The operator that wrote `state`; `make` gives an empty one.

    Its query is `query` or, if this is another one, what was asked then: see `description.rebuilt`. If its rows came early under a
    condition, that is the one of `emit`.
    """
    version, plan, body = _parts(state)
    try:
        reader = Reader(body)
        if plan != plan_hash(query):
            query = _query_of(reader, query, version)
        return _operator(query, reader, make, emit)
    except StateError:
        raise
    except WindrowError as problem:
        raise StateError(f"the snapshot's content does not fit its query: {problem}") from problem
    except (
        KeyError,
        ValueError,
        TypeError,
        IndexError,
        AttributeError,
        ArithmeticError,
        pa.ArrowException,
    ) as problem:
        raise StateError(f"the snapshot's content does not fit its query: {problem}") from problem


def _query_of(reader: Reader, query: QuerySpec, version: int) -> QuerySpec:
    """The query of a snapshot of another one than `query`, which can go on from there."""
    about = _json(reader.text("about")).get("query")
    if about is None:
        raise StateError(
            "the snapshot belongs to another query: windows, aggregates, key or time differ. Only snapshots of format version "
            f"{VERSION} say which, and this one has {version}: restore it with the query as it was, and take a snapshot of that"
        )
    require_compatible(about, query)
    return rebuilt(about, query)


def described_query(state: bytes) -> dict[str, Any] | None:
    """What a snapshot says of its query; None if it says nothing."""
    reader = Reader(_parts(state)[2])
    found = _json(reader.text("about")).get("query") if reader.has("about") else None
    return found if isinstance(found, dict) else None


def unframed(expected: bytes, state: bytes, owner: str) -> bytes:
    """The body of a snapshot, if it is whole and belongs to what has the hash `expected`."""
    _, plan, body = _parts(state)
    if plan != expected:
        raise StateError(f"the snapshot belongs to another {owner}")
    return body


def _parts(state: bytes) -> tuple[int, bytes, bytes]:
    """The version of a snapshot, the hash of what it belongs to, and its body, if it is whole."""
    if not isinstance(state, (bytes, bytearray, memoryview)):
        raise StateError(f"a snapshot is bytes, not {type(state).__name__}")
    state = bytes(state)
    if len(state) < HEADER.size or not state.startswith(MAGIC):
        raise StateError("this is not a windrow snapshot: its first bytes are not windrow's")
    _, version, plan, length, expected = HEADER.unpack_from(state)
    if version not in READABLE:
        *others, last = READABLE
        raise StateError(
            f"the snapshot has format version {version}; this windrow reads versions {', '.join(map(str, others))} and {last}"
        )
    body = state[HEADER.size :]
    if len(body) != length:
        raise StateError(f"the snapshot is truncated or has grown: {len(body):,} bytes instead of {length:,}")
    if checksum(version, plan, body) != expected:
        raise StateError("the snapshot is corrupted: its checksum does not match")
    return version, plan, body


def _operator(
    query: QuerySpec,
    reader: Reader,
    make: Callable[[QuerySpec, OperatorOptions], State],
    emit: str | Trigger,
) -> State:
    about = _json(reader.text("about"))
    operator = make(query, _settings(about, emit))
    early = about["early_watermark"]
    operator.early_watermark = None if early is None else parse_point(point_of(**early), what="watermark")
    counters = Counters(**about["counters"])
    if not all(type(v) is int and 0 <= v < 2**62 for v in vars(counters).values()):
        raise StateError("the snapshot's counters are not counts")
    operator.counters = counters
    if about.get("follows") is not None:
        operator.follows = _follows(about["follows"])
    operator.looked_events = about.get("looked_events", 0)
    if type(operator.looked_events) is not int or not 0 <= operator.looked_events <= counters.events:
        raise StateError("the snapshot's last look was at events that have not come")
    if about["engines"]:
        _fill(operator, reader, about)
    reader.require_all_read()
    return operator


def _fill(operator: OperatorState, reader: Reader, about: dict[str, Any]) -> None:
    sections = about["engines"]
    answered = [name for section in sections for name in section["windows"]]
    if sorted(answered) != sorted(operator.query.windows):
        raise StateError("the snapshot does not answer each window of the query once")
    schema = reader.table("schema").schema
    keys = common.read_keys(reader, pa.schema([schema.field(name) for name in operator.query.key]))
    engines = [
        _read(reader, operator.query, operator.settings, schema, keys, section, f"engine {i} ")
        for i, section in enumerate(sections)
    ]
    operator.fit(engines, schema)
    if operator.span_input is not None:
        spanning.read_input(reader, operator.span_input)
    operator.watermark = tick_of(operator.measure, about["watermark"])
    operator.highest_time = tick_of(operator.measure, about["highest_time"])
    operator.said = tick_of(operator.measure, about.get("said"))
    operator.looked_to = tick_of(operator.measure, about.get("looked_to"))
    if isinstance(operator.query.time, Now) and operator.watermark is not None:
        # The clock of now may be behind that of the snapshot, where windows have ended.
        unit = operator.measure.tick_nanoseconds or 1
        operator.clock.latest = min(int(operator.watermark) * unit, 2**63 - 1)
    if operator.gate is not None:
        operator.gate.load(reader.table("given out early"))
    if operator.following is not None:
        newest = reader.array("newest", operator.measure.dtype)
        operator.following.load(
            reader.table("partitions"), newest, reader.array("silent", np.dtype(np.int64))
        )
    if reader.has("unfetched"):
        operator.unfetched = [reader.table("unfetched")]
        if operator.unfetched[0].schema != operator.engines[0].result_schema:
            raise StateError("the snapshot's rows that were not fetched are not those of the query")
    if any(engine.watermark != operator.watermark for engine in operator.engines):
        raise StateError("the snapshot's engines have come to different watermarks")
    _put_aside(operator, reader)


def _put_aside(operator: OperatorState, reader: Reader) -> None:
    late, bad = reader.table("late"), reader.table("bad")
    assert operator.schema is not None
    for name in {name for engine in operator.engines for name in engine.binding.columns}:
        for table in (late, bad):
            type_ = operator.schema.field(name).type
            if name not in table.column_names or table.schema.field(name).type != type_:
                raise StateError(f"the rows set aside in the snapshot lack column {name!r}")
    if "bad_reason" not in bad.column_names:
        raise StateError("the bad rows in the snapshot come without a reason")
    operator.put_aside(late, bad)


def _json(text: bytes) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise StateError(f"the snapshot's description is not JSON: {problem}") from problem
    if not isinstance(about, dict):
        raise StateError("the snapshot's description is not what it should be")
    return about


def _settings(about: dict[str, Any], emit: str | Trigger) -> OperatorOptions:
    """The operator's options, checked as those of a user are; `emit` is what is said now."""
    about.setdefault("emit", CLOSE)
    said = {field.name: about[field.name] for field in fields(OperatorOptions)}
    said["emit"] = trigger_of(said["emit"], emit)
    if type(said["max_slices"]) is not int:
        raise StateError(f"max_slices in the snapshot is {said['max_slices']!r}")
    said["lateness"] = duration_of(*said["lateness"])
    if said["max_ahead"] is not None:
        said["max_ahead"] = duration_of(*said["max_ahead"])
    return OperatorOptions(**said)
