"""The fields of an operator of the user's own in its snapshot: those that `state_fields` names, as JSON and Arrow.

    state_fields      saved and restored: numbers, strings, dates, Arrow and NumPy arrays, and lists, sets, dicts of these
    constant_fields   never change, whatever they are
    all others        must be as they were when the operator was made, or there is no snapshot: it would lose them

Nothing is pickled. A dict of another class (`defaultdict`, `Counter`) is filled in place, so that it stays one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.engine.intake.columns import whole
from windrow.engine.snapshot.parts import one, stream_of, table_of
from windrow.errors import StateError

PLAIN = (type(None), bool, int, float, str)
SEQUENCES: dict[str, type] = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
DICTS = (defaultdict, OrderedDict, Counter)
DATA = (*PLAIN, list, dict, set, deque, bytearray, np.ndarray)
NUMBERS = "biufcmMSU"
# What is kept as a table: of which types, as a table, and back.
TABLES: dict[str, tuple[tuple[type, ...], Callable[[Any], pa.Table], Callable[[pa.Table], Any]]] = {
    "table": ((pa.Table,), lambda v: v, lambda t: t),
    "batch": ((pa.RecordBatch,), lambda v: pa.Table.from_batches([v]), whole),
    "chunked": ((pa.ChunkedArray,), lambda v: pa.table({"v": v}), lambda t: t["v"]),
    "array": ((pa.Array,), lambda v: pa.table({"v": v}), lambda t: one(t["v"])),
    "scalar": ((pa.Scalar,), lambda v: pa.table({"v": pa.repeat(v, 1)}), lambda t: t["v"][0]),
    "value": (
        (datetime, date, time, timedelta, Decimal),
        lambda v: pa.table({"v": pa.array([v])}),
        lambda t: t["v"][0].as_py(),
    ),
}
# Objects of these types hold nothing that changes; nor do those of frozen dataclasses.
CONSTANTS = (
    *(FunctionType, BuiltinFunctionType, MethodType, partial, type, ModuleType, Enum),
    *(pa.Schema, pa.DataType, pa.Field, pc.Expression, *(kinds[0] for kinds, *_ in TABLES.values())),
)
TAKEN = "numbers, strings, dates, Arrow and NumPy arrays, and lists, tuples, sets and dicts of these"


class _Unsaved(Exception):
    """A value that cannot be saved, and why."""


class _Encoder:
    """A value as JSON, and its arrays and tables as `blobs`, to which JSON refers by number."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._seen: set[int] = set()

    def __call__(self, value: Any, *, is_field: bool = False) -> Any:
        """`is_field` says that there is an object to fill in place when it is restored."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is bytes:
            return ["bytes", value.hex()]
        if kind in (list, set, dict, deque, np.ndarray, *DICTS):
            if id(value) in self._seen:
                raise _Unsaved(f"it holds the same {kind.__name__} twice, which would become two")
            self._seen.add(id(value))
        if kind in SEQUENCES.values():
            return [kind.__name__, [self(item) for item in value]]
        if kind is deque:
            return ["deque", [self(item) for item in value], value.maxlen]
        if kind is dict or (is_field and kind in DICTS):
            return ["dict", [[self(key), self(item)] for key, item in value.items()]]
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in NUMBERS:
            array = np.asarray(value)
            name = "ndarray" if isinstance(value, np.ndarray) else "number"
            return [name, array.dtype.str, list(array.shape), self._blob(array.tobytes())]
        return self._table(value)

    def _table(self, value: Any) -> Any:
        for name, (kinds, to_table, back) in TABLES.items():
            if isinstance(value, kinds):
                table = to_table(value)
                if any(isinstance(type_, pa.BaseExtensionType) for type_ in table.schema.types):
                    raise _Unsaved("it holds Arrow data of an extension type")
                if name == "value" and (type(back(table)), back(table)) != (type(value), value):
                    break
                return [name, self._blob(stream_of(table))]
        raise _Unsaved(f"it holds an object of type {type(value).__name__}")

    def _blob(self, data: bytes) -> int:
        self.blobs.append(data)
        return len(self.blobs) - 1


def _decoded(tree: Any, blobs: list[bytes]) -> Any:
    """The opposite of `_Encoder`; an error of some kind where it is not what that has made."""
    match tree:
        case None | bool() | int() | float() | str():
            return tree
        case ["bytes", text]:
            return bytes.fromhex(text)
        case ["list" | "tuple" | "set" | "frozenset" as kind, items]:
            return SEQUENCES[kind](_decoded(item, blobs) for item in items)
        case ["deque", items, longest]:
            return deque((_decoded(item, blobs) for item in items), longest)
        case ["dict", pairs]:
            return {_decoded(key, blobs): _decoded(item, blobs) for key, item in pairs}
        case ["ndarray" | "number" as kind, dtype, shape, at]:
            array = np.frombuffer(blobs[at], dtype).reshape(shape).copy()
            return array if kind == "ndarray" else array[()]
        case [str() as kind, at]:
            return TABLES[kind][2](table_of(blobs[at]))
    raise ValueError(f"{tree!r} is no value")


def save(operator: Any) -> dict[str, bytes]:
    """The parts of a snapshot that hold the operator's fields; an error if it would lose one."""
    require_declared(operator)
    names = _declared(operator, "state_fields")
    if not names:
        return {}
    encode, trees = _Encoder(), {}
    for name in names:
        try:
            trees[name] = encode(getattr(operator, name), is_field=True)
        except (AttributeError, _Unsaved, RecursionError, pa.ArrowException) as problem:
            raise StateError(
                f"the field {name!r} of {type(operator).__name__} cannot be saved: {problem}. "
                f"A snapshot has {TAKEN}"
            ) from None
    blobs = {f"field {i}": blob for i, blob in enumerate(encode.blobs)}
    return {"fields": json.dumps(trees).encode(), **blobs}


def read(operator: Any, parts: dict[str, bytes]) -> dict[str, Any]:
    """The values of fields that a snapshot has, by name; its parts are taken out of `parts`."""
    require_declared(operator)
    try:
        trees = json.loads(parts.pop("fields", b"{}"))
        blobs = [parts.pop(f"field {i}") for i in range(sum(name.startswith("field ") for name in parts))]
        values = {name: _decoded(tree, blobs) for name, tree in trees.items()}
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError) as problem:
        raise StateError(f"the fields in the snapshot are not what they should be: {problem}") from problem
    names = _declared(operator, "state_fields")
    if sorted(values) != sorted(names):
        shown = (", ".join(map(repr, sorted(some))) or "none" for some in (values, names))
        raise StateError(
            "the snapshot has the fields {}; state_fields of the operator names {}".format(*shown)
        )
    return values


def put(operator: Any, values: dict[str, Any]) -> None:
    """Have fields hold what `read` has found."""
    for name, value in values.items():
        known = getattr(operator, name, None)
        if isinstance(known, DICTS):
            known.clear()
            known.update(value)
        else:
            setattr(operator, name, value)


# -- what is not declared ------------------------------------------------------------------------


def _declared(operator: Any, which: str) -> tuple[str, ...]:
    """The names in `state_fields` or `constant_fields` of the operator's class and all of its bases."""
    found: list[str] = []
    for kind in type(operator).__mro__:
        names = vars(kind).get(which, ())
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise StateError(
                f"{which} of {kind.__name__} is a tuple of names, as in ('total',); not {names!r}"
            )
        found += names
    return tuple(dict.fromkeys(found))


def _of_windrow(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "windrow"


def traces(operator: Any) -> dict[str, Any]:
    """What tells later on whether attributes that are not declared have changed."""
    return {name: _trace(value) for name, value in _undeclared(operator).items()}


def _undeclared(operator: Any) -> dict[str, Any]:
    """The attributes that are neither declared nor windrow's: the operator's, and data of its classes."""
    kinds = type(operator).__mro__
    known = {name for kind in kinds for name in vars(kind).get("_internals", ())}
    known |= {*_declared(operator, "state_fields"), *_declared(operator, "constant_fields")}
    found = dict(vars(operator))
    for kind in kinds:
        for name, value in vars(kind).items():
            if isinstance(value, MemberDescriptorType) and hasattr(operator, name):  # of __slots__
                found[name] = getattr(operator, name)
            elif isinstance(value, DATA) and not _of_windrow(kind) and not name.startswith("__"):
                found.setdefault(name, value)
    return {name: value for name, value in found.items() if name not in known}


def _trace(value: Any) -> Any:
    """Equal for the same value later on if it has not changed; None if that cannot be known."""
    if isinstance(value, CONSTANTS) or getattr(getattr(value, "__dataclass_params__", None), "frozen", False):
        return id(value), value  # as long as it is held, no other object has this number
    encode = _Encoder()
    try:
        text = json.dumps(encode(value, is_field=True))
    except (_Unsaved, RecursionError, pa.ArrowException):
        return None
    return hashlib.sha256(b"\0".join([text.encode(), *encode.blobs])).digest()


def require_declared(operator: Any) -> None:
    """A StateError if a snapshot would lose an attribute, or cannot know."""
    kind = type(operator)
    by_hand = next((base for base in kind.__mro__ if "state" in vars(base)), None)
    if by_hand is not None and not _of_windrow(by_hand):
        return
    for name, value in _undeclared(operator).items():
        trace = _trace(value)
        if trace is None:
            raise StateError(
                f"the attribute {name!r} of {kind.__name__} is an object of type {type(value).__name__}, and it is "
                f"not known whether it changes. If it never does, say constant_fields = ({name!r},) in the class; "
                f"if it does, keep what it holds in fields that state_fields names: {TAKEN}"
            )
        if trace != operator._at_first.get(name):
            raise StateError(
                f"the attribute {name!r} of {kind.__name__} has changed since the operator was made, and a snapshot "
                f"would lose it: say state_fields = ({name!r},) in the class to have it saved and restored, "
                "or constant_fields if it may be lost"
            )
