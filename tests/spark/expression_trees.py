"""Random expressions, over a table of all types with values that are apt to be computed wrong."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from windrow.expressions.tree import Call, Cast, Column, Literal, Node, literal

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moments(*seconds: float) -> list[datetime]:
    return [EPOCH + timedelta(seconds=each) for each in seconds]


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [0, 1, -1, 127, -128, 7, None]),
    "i16": (pa.int16(), [0, 1, -1, 32767, -32768, 300, None]),
    "i32": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), 65536, 3, None]),
    "i64": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 2**32, 5, None]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 3.4e38, 0.5, None]),
    "f64": (pa.float64(), [0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 1e308, 5e-324, 9.3e18, 0.1, None]),
    "d10": (pa.decimal128(10, 2), [*map(Decimal, ("0", "1.25", "-99999999.99", "0.01", "-0.05")), None]),
    "d38": (pa.decimal128(38, 6), [*map(Decimal, ("0", "9" * 32 + ".999999", "-1.000001", "2.5")), None]),
    "b": (pa.bool_(), [True, False, None]),
    "s": (pa.string(), ["", "a", "Zürich", " x ", "12", "-7", "1.5e3", "true", "2024-02-29", "2024-02-30", "99999999999", "%_", "straße", None]),
    "d": (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(1900, 3, 1), date(2262, 1, 1), None]),
    "ts": (pa.timestamp("us", tz="UTC"), [*_moments(0, -1.5, 1.7e9, 951_868_799.999999, -2.2e9), None]),
}  # fmt: skip
FIELDS = pa.struct([("n", pa.int32()), ("t", pa.string())])
INTEGERS, FLOATS, DECIMALS = ["i8", "i16", "i32", "i64"], ["f32", "f64"], ["d10", "d38"]
NUMBERS = [*INTEGERS, *FLOATS, *DECIMALS]
KINDS = [*NUMBERS, "b", "s", "d", "ts"]


def table(rows: int, seed: int) -> pa.Table:
    """Rows of values that are drawn independently of each other."""
    import random

    chance = random.Random(seed)
    columns = {
        name: pa.array([chance.choice(values) for _ in range(rows)], type_)
        for name, (type_, values) in VALUES.items()
    }
    fields = [
        None
        if chance.random() < 0.2
        else {"n": chance.choice([None, 1, -5, 2**31 - 1]), "t": chance.choice(["u", None])}
        for _ in range(rows)
    ]
    return pa.table({**columns, "st": pa.array(fields, FIELDS)})


def _leaves(kind: str) -> st.SearchStrategy[Node]:
    column: Node = Column(kind)
    constants: list[Node] = {
        "b": [literal(True), literal(False), literal(None)],
        "s": [literal("a"), literal("x b"), literal("")],
        "d": [literal(date(2024, 2, 29))],
        "ts": [literal(datetime(2024, 2, 29, 12, 30, tzinfo=UTC))],
        "f64": [literal(0.5), literal(-1e3), literal(math.nan), literal(-0.0)],
        "d10": [literal(Decimal("1.50")), literal(Decimal("-3"))],
        "i32": [literal(2), literal(0), literal(-7)],
        "i64": [literal(2**40)],
    }.get(kind, [])
    found = [column, column, *constants]
    if kind == "i32":
        found.append(Column("st", ("n",)))
    if kind == "s":
        found.append(Column("st", ("t",)))
    return st.sampled_from(found)


@cache
def trees(kind: str, depth: int) -> st.SearchStrategy[Node]:
    """Expressions about as deep; `kind` is what they are meant to give, as the column of that name."""
    if depth == 0:
        return _leaves(kind)
    below = lambda wanted: trees(wanted, depth - 1)  # noqa: E731

    def call(name: str, *kinds: str) -> st.SearchStrategy[Node]:
        return st.tuples(*map(below, kinds)).map(lambda found: Call(name, found))

    def any_of(kinds: list[str]) -> st.SearchStrategy[Node]:
        return st.deferred(lambda: st.sampled_from(kinds).flatmap(below))

    def pair(name: str, kinds: list[str]) -> st.SearchStrategy[Node]:
        return st.tuples(any_of(kinds), any_of(kinds)).map(lambda found: Call(name, found))

    options = [
        _leaves(kind),
        st.tuples(below("b"), below(kind), below(kind)).map(lambda found: Call("case", found)),
        call("coalesce", kind, kind),
        call("greatest", kind, kind),
        call("least", kind, kind),
    ]
    if kind in NUMBERS:
        options += [pair(op, NUMBERS) for op in "+-*/"]
        options += [call(op, kind, kind) for op in "+-*"]
        options += [call("negative", kind), call("abs", kind)]
    if kind in INTEGERS:
        options += [call(op, kind, kind) for op in ("%", "div", "&", "|", "^")]
        types = {"i8": "tinyint", "i16": "smallint", "i32": "int", "i64": "bigint"}
        options += [st.tuples(any_of([*NUMBERS, "s", "b"])).map(lambda found: Cast(found[0], types[kind]))]
    if kind == "i32":
        parts = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")
        options += [call(part, "d") for part in parts] + [
            call(part, "ts") for part in ("year", "hour", "minute", "second")
        ]
        options += [call("length", "s"), call("datediff", "d", "d")]
    if kind == "i64":
        options += [
            call("unix_millis", "ts"),
            call("unix_seconds", "ts"),
            call("floor", "f64"),
            call("ceil", "f64"),
        ]
    if kind == "f64":
        options += [call(op, "f64") for op in ("sqrt", "exp", "ln", "log10", "log2", "sign", "round")]
        options += [call("power", "f64", "f64"), call("%", "f64", "f64")]
        options += [st.tuples(any_of([*NUMBERS, "s"])).map(lambda found: Cast(found[0], "double"))]
    if kind == "d10":
        options += [
            st.tuples(any_of([*INTEGERS, *DECIMALS, "s"])).map(lambda found: Cast(found[0], "decimal(10, 2)"))
        ]
    if kind == "b":
        options += [pair(op, NUMBERS) for op in ("=", "<", ">=", "!=", "<=>")]
        options += [call(op, same, same) for op in ("=", "<=", "<=>") for same in ("s", "d", "ts", "b")]
        options += [call("and", "b", "b"), call("or", "b", "b"), call("not", "b"), call("isnan", "f64")]
        options += [st.sampled_from(KINDS).flatmap(lambda each: call("is null", each))]
        options += [
            below("s").map(lambda found: Call("like", (found, literal("%a_")))),
            below("s").map(lambda found: Cast(found, "boolean")),
        ]
        options += [
            below("i32").map(lambda found: Call("in", (found, literal(1), literal(-7), literal(None))))
        ]
        options += [below("s").map(lambda found: Call("startswith", (found, literal("Z"))))]
    if kind == "s":
        options += [call(op, "s") for op in ("upper", "lower", "trim", "reverse")] + [
            call("concat", "s", "s")
        ]
        options += [
            st.tuples(below("s"), st.integers(-4, 4), st.integers(-1, 5)).map(
                lambda found: Call("substring", (found[0], literal(found[1]), literal(found[2])))
            ),
            st.tuples(any_of([*INTEGERS, "b", "d"])).map(lambda found: Cast(found[0], "string")),
            st.tuples(st.sampled_from(["left", "right"]), below("s"), st.integers(-1, 3)).map(
                lambda found: Call(found[0], (found[1], literal(found[2])))
            ),
        ]
    if kind == "d":
        days: Node = Literal("int", "-40")
        options += [st.tuples(any_of(["ts", "s"])).map(lambda found: Cast(found[0], "date"))]
        options += [below("d").map(lambda found: Call("date_add", (found, days)))]
    if kind == "ts":
        options += [below("d").map(lambda found: Cast(found, "timestamp"))]
        units = ["year", "quarter", "month", "week", "day", "hour", "minute"]
        options += [
            st.tuples(st.sampled_from(units), below("ts")).map(
                lambda found: Call("date_trunc", (literal(found[0]), found[1]))
            )
        ]
        options += [call("timestamp_seconds", "i32")]
    return st.one_of(options)


any_trees = st.sampled_from(KINDS).flatmap(lambda kind: trees(kind, 3))
