"""The columns that a source declares, as the Arrow types in which Spark will send them; read without Spark.

ts timestamp, user string, price decimal(10, 2), tags array<string>      Spark SQL
{"type": "record", "fields": [{"name": "user", "type": "string"}]}       Avro
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from windrow.errors import QueryError
from windrow.wording import choices

MOMENT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
_SQL = {
    name: type_
    for names, type_ in (
        ("boolean", pa.bool_()),
        ("tinyint byte", pa.int8()),
        ("smallint short", pa.int16()),
        ("int integer", pa.int32()),
        ("bigint long", pa.int64()),
        ("float real", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("time", pa.time64("ns")),
        ("timestamp timestamp_ltz", MOMENT),
        ("timestamp_ntz", LOCAL),
        ("void", pa.null()),
        ("variant", pa.struct([("value", pa.binary()), ("metadata", pa.binary())])),
        ("geometry geography", pa.struct([("srid", pa.int32()), ("wkb", pa.binary())])),
    )
    for name in names.split()
}
_WITH_PARTS = ("decimal", "dec", "numeric", "array", "map", "struct", "interval")
_TOKEN = re.compile(r"""`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+|\S""")
_AVRO = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp-millis": MOMENT,
    "timestamp-micros": MOMENT,
    "local-timestamp-millis": LOCAL,
    "local-timestamp-micros": LOCAL,
}
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def sql_columns(text: str) -> pa.Schema:
    """Columns as Spark SQL writes them.

    >>> sql_columns("ts timestamp, `the user` string NOT NULL, m map<string, array<int>>").field(2).type
    MapType(map<string, list<item: int32>>)
    """
    reader = _Reader(text)
    fields = reader.columns()
    if reader.tokens:
        raise reader.wrong()
    return pa.schema(fields)


class _Reader:
    """A list of columns, token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = _TOKEN.findall(text)

    def wrong(self) -> QueryError:
        found = repr(self.tokens[0]) if self.tokens else "its end"
        return QueryError(
            f'columns and their types are needed, such as "ts timestamp, user string", '
            f"and {found} is unexpected in {self.text!r}"
        )

    def take(self, pattern: str) -> str:
        """The next token, in lower case, if it is one of these; else nothing."""
        fits = self.tokens and re.fullmatch(pattern, self.tokens[0], re.IGNORECASE | re.DOTALL)
        return self.tokens.pop(0).lower() if fits else ""

    def need(self, pattern: str) -> str:
        found = self.take(pattern)
        if not found:
            raise self.wrong()
        return found

    def columns(self) -> list[pa.Field]:
        fields = [self.column()]
        while self.take(","):
            fields.append(self.column())
        return fields

    def column(self) -> pa.Field:
        """A name, its type, and what else can be said of a column."""
        name = self.tokens[0] if self.tokens else ""
        self.need(r"\w+|`.+`")
        self.take(":")
        found = pa.field(name[1:-1].replace("``", "`") if name.startswith("`") else name, self.type())
        while self.take("not|null|comment|'.*'|\".*\""):
            pass
        return found

    def type(self) -> pa.DataType:
        word = self.need(r"\w+")
        if word in ("decimal", "dec", "numeric"):
            digits = self.sizes() or [10]
            if not 1 <= digits[0] <= 38:
                raise QueryError(f"a decimal has between 1 and 38 digits, not {digits[0]}")
            return pa.decimal128(*digits[:2])
        if word == "interval":  # Arrow has durations; months have no fixed length
            units = []
            while unit := self.take("year|month|day|hour|minute|second|to"):
                units.append(unit)
            fixed = units and not {"year", "month"} & {*units}
            return pa.duration("us") if fixed else pa.month_day_nano_interval()
        if word in _SQL:
            self.sizes()
            if self.take("collate"):
                self.need(r"\w+")
            return _SQL[word]
        if word not in _WITH_PARTS:
            raise QueryError(f"there is no type {word!r}{choices(word, [*_SQL, *_WITH_PARTS])}")
        self.need("<")
        if word == "array":
            found = pa.list_(self.type())
        elif word == "map":
            key = self.type()
            self.need(",")
            found = pa.map_(key, self.type())
        else:
            found = pa.struct(self.columns())
        self.need(">")
        return found

    def sizes(self) -> list[int]:
        """Numbers in parentheses, if there are any."""
        found: list[int] = []
        if self.take(r"\("):
            while not self.take(r"\)"):
                found += map(int, re.findall(r"\d+", self.need(r"\w+|[,:]")))
        return found


def avro_columns(text: str) -> pa.Schema:
    """The fields of an Avro record.

    >>> text = '{"type": "record", "name": "e", "fields": [{"name": "x", "type": ["null", "int"]}]}'
    >>> avro_columns(text).field("x").type
    DataType(int32)
    """
    try:
        record = _avro_type(json.loads(text), dict(_AVRO))
        return pa.schema(list(record))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise QueryError(f"an Avro schema is a record with fields, as JSON, not {text!r}") from None


def _avro_type(written: Any, known: dict[str, pa.DataType]) -> pa.DataType:
    """A type as Spark reads it; `known` are those that have a name, to which what is found here is added."""
    if isinstance(written, str):
        return known[written.rpartition(".")[2]]
    if isinstance(written, list):
        return _avro_union([kind for kind in written if kind != "null"], known)
    kind, logical = written["type"], written.get("logicalType")
    if logical == "decimal":
        found = pa.decimal128(written["precision"], written.get("scale", 0))
    elif logical in known:
        found = known[logical]
    elif kind in ("record", "error"):
        found = pa.struct([pa.field(f["name"], _avro_type(f["type"], known)) for f in written["fields"]])
    elif kind == "array":
        found = pa.list_(_avro_type(written["items"], known))
    elif kind == "map":
        found = pa.map_(pa.string(), _avro_type(written["values"], known))
    elif kind in ("enum", "fixed"):
        found = pa.string() if kind == "enum" else pa.binary()
    else:
        found = _avro_type(kind, known)
    if "name" in written:
        known[written["name"].rpartition(".")[2]] = found
    return found


def _avro_union(kinds: list[Any], known: dict[str, pa.DataType]) -> pa.DataType:
    """The one type, the wider of two numbers, or a struct with a member for each."""
    if len(kinds) < 2:
        return _avro_type(kinds[0] if kinds else "null", known)
    if all(isinstance(kind, str) for kind in kinds) and frozenset(kinds) in _WIDER:
        return known[_WIDER[frozenset(kinds)]]
    return pa.struct([pa.field(f"member{i}", _avro_type(kind, known)) for i, kind in enumerate(kinds)])
