"""Trees fitted to the columns of a table: each node with its type, and each conversion written out.

The types are those that Spark gives with ANSI on: integers keep the width of the wider one, `/` gives a double, decimals grow as the
SQL standard says. What is bound has no choice left, so Arrow and Spark are told the same thing, whatever a session is set to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from windrow.errors import QueryError
from windrow.expressions.functions import CLOCK, FROM_EPOCH, PARTS, SINCE_EPOCH, UNITS
from windrow.expressions.tree import Call, Cast, Column, Literal, Node
from windrow.schema import require_columns

BOOLEAN, TEXT, DOUBLE, DATE = pa.bool_(), pa.string(), pa.float64(), pa.date32()
INT, BIGINT, FLOAT = pa.int32(), pa.int64(), pa.float32()
TIMESTAMP, LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
_INTEGERS = [pa.int8(), pa.int16(), INT, BIGINT]
# How many digits each has, which is what a decimal of it has.
_DIGITS = dict(zip(_INTEGERS, (3, 5, 10, 20), strict=True))
_NAMES: dict[str, pa.DataType] = {
    "boolean": BOOLEAN,
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": INT,
    "bigint": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": TEXT,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": LOCAL,
}
_ALSO = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "bool": "boolean", "varchar": "string",
         "text": "string", "timestampntz": "timestamp_ntz", "timestamp_ltz": "timestamp", "timestampltz": "timestamp"}  # fmt: skip
MOST_DIGITS = 38
# A decimal that would have more digits keeps so many of those behind the point.
KEPT_SCALE = 6


@dataclass(frozen=True)
class Typed:
    """A node whose type is known. `detail` is what is neither a value nor a type: a name, a constant, a unit."""

    op: str
    arguments: tuple[Typed, ...]
    type: pa.DataType
    detail: Any = None


def named_type(text: str) -> pa.DataType:
    """The type of this name in Spark SQL.

    >>> named_type("bigint"), named_type("decimal(10, 2)")
    (DataType(int64), Decimal128Type(decimal128(10, 2)))
    """
    name = text.strip().lower()
    found = re.fullmatch(r"(?:decimal|numeric|dec)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", name)
    if found is not None:
        digits, scale = int(found[1] or 10), int(found[2] or 0)
        if not 1 <= digits <= MOST_DIGITS or scale > digits:
            raise QueryError(f"there is no type {text!r}: a decimal has 1 to 38 digits")
        return pa.decimal128(digits, scale)
    type_ = _NAMES.get(_ALSO.get(name, name))
    if type_ is None:
        raise QueryError(f"there is no cast to {text!r}; choose from {', '.join(_NAMES)}, decimal(p, s)")
    return type_


def type_name(type_: pa.DataType) -> str:
    """The name of a type in Spark SQL, as far as there is one."""
    if pt.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    return next((name for name, known in _NAMES.items() if known == type_), str(type_))


def bind(node: Node, schema: pa.Schema) -> Typed:
    """A tree fitted to the columns of a table; a QueryError says what does not go together.

    >>> bind(Call("+", (Column("a"), Literal("int", "1"))), pa.schema([("a", pa.int8())])).type
    DataType(int32)
    """
    match node:
        case Column(name, path):
            return _column(name, path, schema)
        case Literal(type_, _):
            return _literal(node)
        case Cast(value, type_):
            return convert(bind(value, schema), named_type(type_), asked=True)
        case Call(name, arguments):
            bound = [bind(each, schema) for each in arguments]
            if name == "not":
                return _boolean(name, bound, 1)
            rule = _RULES.get(name)
            if rule is None:
                raise QueryError(f"there is no function {name!r}")
            return rule(name, bound)
    raise AssertionError(node)


def is_passed(node: Node) -> Node | None:
    """The column whose values an expression gives as they are, or null where a condition does not hold; None if it is no such."""
    if isinstance(node, Column) and not node.path:
        return node
    if isinstance(node, Call) and node.name == "case" and len(node.arguments) == 3:
        _, value, otherwise = node.arguments
        if isinstance(value, Column) and not value.path and otherwise == Literal("null", ""):
            return value
    return None


def _column(name: str, path: tuple[str, ...], schema: pa.Schema) -> Typed:
    require_columns(schema, (name,))
    type_, walked = schema.field(name).type, name
    for part in path:
        if not pt.is_struct(type_):
            raise QueryError(f"{walked!r} has no field {part!r}: it is of type {type_}")
        if type_.get_field_index(part) < 0:
            fields = ", ".join(repr(field.name) for field in type_)
            raise QueryError(f"{walked!r} has no field {part!r}: its fields are {fields}")
        type_, walked = type_.field(part).type, f"{walked}.{part}"
    return Typed("column", (), _met(type_), (name, path))


def _met(type_: pa.DataType) -> pa.DataType:
    """The type in which values of a column meet others: Spark has neither dictionaries nor numbers without a sign."""
    if pt.is_dictionary(type_):
        return _met(type_.value_type)
    if pt.is_large_string(type_) or pt.is_string_view(type_):
        return TEXT
    if pt.is_unsigned_integer(type_):
        wider = {8: pa.int16(), 16: INT, 32: BIGINT}
        return wider.get(type_.bit_width, pa.decimal128(20, 0))
    if pt.is_float16(type_):
        return FLOAT
    if pt.is_date64(type_):
        return DATE
    if pt.is_decimal(type_) and not pt.is_decimal128(type_) and type_.precision <= MOST_DIGITS:
        return pa.decimal128(type_.precision, type_.scale)
    return type_


def _literal(node: Literal) -> Typed:
    value = node.value
    if node.type == "null":
        return Typed("literal", (), pa.null())
    if node.type == "decimal":
        return _decimal(value)
    if node.type == "timestamp":
        return Typed("literal", (), LOCAL if value.tzinfo is None else TIMESTAMP, node)
    return Typed("literal", (), _NAMES[node.type], node)


def _decimal(value: Decimal) -> Typed:
    """A constant as a decimal of no more digits than it needs."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    type_ = pa.decimal128(max(len(digits) + max(0, int(exponent)), scale, 1), scale)
    return Typed("literal", (), type_, Literal("decimal", f"{value:f}"))


# -- conversions -----------------------------------------------------------------------------------


def convert(value: Typed, type_: pa.DataType, *, asked: bool = False) -> Typed:
    """The value as another type; `asked` if that was written, so that it may fail for a row."""
    if value.type == type_:
        return value
    if pt.is_null(value.type):
        return Typed("literal", (), type_)
    if value.op == "literal" and not asked and is_number(value.type) and is_number(type_):
        return Typed("literal", (), type_, value.detail)
    if not asked and pt.is_timestamp(value.type) and pt.is_timestamp(type_):
        return Typed("cast", (value,), type_)
    if not _converts(value.type, type_):
        hint = ": cast it to a decimal or an integer first" if pt.is_floating(value.type) else ""
        raise QueryError(f"there is no cast from {type_name(value.type)} to {type_name(type_)}{hint}")
    return Typed("cast", (value,), type_)


def _converts(one: pa.DataType, other: pa.DataType) -> bool:
    if pt.is_string(one):
        return (
            pt.is_boolean(other) or is_integer(other) or pt.is_float64(other) or pt.is_decimal(other)
            or other in (DATE, TIMESTAMP, LOCAL)
        )  # fmt: skip
    if pt.is_string(other):
        return pt.is_boolean(one) or is_integer(one) or one == DATE
    if is_number(one):
        if pt.is_decimal(other):
            return not pt.is_floating(one)
        return is_number(other) or (pt.is_boolean(other) and not pt.is_decimal(one))
    if pt.is_boolean(one):
        return is_integer(other) or pt.is_floating(other)
    if one == DATE or pt.is_timestamp(one):
        return other == DATE or pt.is_timestamp(other)
    return False


def is_integer(type_: pa.DataType) -> bool:
    """Whether it is an integer as Spark has them."""
    return type_ in _INTEGERS


def is_number(type_: pa.DataType) -> bool:
    """Whether it is a number as Spark has them."""
    return is_integer(type_) or type_ in (FLOAT, DOUBLE) or pt.is_decimal(type_)


def _as_decimal(type_: pa.DataType) -> pa.DataType:
    return type_ if pt.is_decimal(type_) else pa.decimal128(_DIGITS[type_], 0)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type of which both are; None if there is none."""
    if one == other or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    if is_number(one) and is_number(other):
        if pt.is_floating(one) or pt.is_floating(other):
            return DOUBLE
        if pt.is_decimal(one) or pt.is_decimal(other):
            a, b = _as_decimal(one), _as_decimal(other)
            scale = max(a.scale, b.scale)
            digits = max(a.precision - a.scale, b.precision - b.scale) + scale
            return pa.decimal128(digits, scale) if digits <= MOST_DIGITS else None
        return max(one, other, key=_INTEGERS.index)
    times = [t for t in (one, other) if pt.is_timestamp(t)]
    if len(times) == 2:
        finest = max((one, other), key=lambda t: ("s", "ms", "us", "ns").index(t.unit))
        zone = one.tz or other.tz
        return pa.timestamp(finest.unit, tz=zone)
    if len(times) == 1 and DATE in (one, other):
        return times[0]
    return None


def _in_common(name: str, values: Sequence[Typed]) -> list[Typed]:
    """The values as one type."""
    values = [_without_text(value, values) for value in values]
    # A constant has as many digits as it needs, where it meets a decimal.
    if any(pt.is_decimal(value.type) for value in values):
        values = [
            _decimal(Decimal(v.detail.value)) if v.op == "literal" and is_integer(v.type) else v
            for v in values
        ]
    type_: pa.DataType | None = values[0].type
    for value in values[1:]:
        type_ = None if type_ is None else _wider(type_, value.type)
    if type_ is None:
        raise _mismatch(name, values)
    return [convert(value, type_) for value in values]


def _without_text(value: Typed, others: Sequence[Typed]) -> Typed:
    """A constant text beside dates or times as one of these."""
    if value.op != "literal" or not pt.is_string(value.type) or value.detail is None:
        return value
    for other in others:
        if other.type == DATE or pt.is_timestamp(other.type):
            kind = "date" if other.type == DATE else "timestamp"
            try:
                made = Literal(kind, value.detail.text.strip())
                made.value  # noqa: B018 - it raises where the text is none
            except ValueError:
                raise QueryError(f"{value.detail.text!r} is no {kind}, and is compared with one") from None
            return _literal(made)
    return value


def _mismatch(name: str, values: Sequence[Typed]) -> QueryError:
    types = [type_name(value.type) for value in values]
    said = " and ".join(types) if len(types) == 2 else ", ".join(types)
    return QueryError(f"{name} cannot take {said}: cast one of them")


# -- rules -----------------------------------------------------------------------------------------


def _boolean(name: str, values: Sequence[Typed], count: int = 2) -> Typed:
    for value in values:
        if not (pt.is_boolean(value.type) or pt.is_null(value.type)):
            raise QueryError(f"{name} takes conditions, and not {type_name(value.type)}")
    return Typed(name, tuple(convert(value, BOOLEAN) for value in values), BOOLEAN)


def _arithmetic(name: str, values: Sequence[Typed]) -> Typed:
    if name in ("+", "-") and values[0].type == DATE and is_integer(values[1].type):
        return _date_moved("date_add" if name == "+" else "date_sub", values)
    for value in values:
        if not (is_number(value.type) or pt.is_null(value.type)):
            raise _mismatch(name, values)
    types = [value.type for value in values]
    if all(map(pt.is_null, types)):
        return Typed("literal", (), DOUBLE)
    if any(map(pt.is_decimal, types)) and not any(map(pt.is_floating, types)):
        return _of_decimals(name, values)
    if name == "/":
        return Typed("/", tuple(convert(value, DOUBLE) for value in values), DOUBLE)
    if name == "div":
        if any(map(pt.is_floating, types)):
            raise QueryError("div takes integers: / divides others")
        return Typed("div", tuple(convert(value, BIGINT) for value in values), BIGINT)
    both = _in_common(name, values)
    return Typed(name, tuple(both), both[0].type)


def _of_decimals(name: str, values: Sequence[Typed]) -> Typed:
    if name in ("%", "div"):
        raise QueryError(f"{name} does not take decimals: cast them to integers or doubles")
    exact = [
        _decimal(Decimal(v.detail.value)) if v.op == "literal" and is_integer(v.type) else v for v in values
    ]
    known = next(v.type for v in exact if pt.is_decimal(v.type))
    a, b = (convert(v, known if pt.is_null(v.type) else _as_decimal(v.type)) for v in exact)
    (p, s), (q, t) = (a.type.precision, a.type.scale), (b.type.precision, b.type.scale)
    if name == "*":
        if p + q + 1 > 76:
            raise _too_many_digits(name, a, b)
        digits, scale = p + q + 1, s + t
    elif name == "/":
        scale = max(KEPT_SCALE, s + q + 1)
        digits = p - s + t + scale
        if p + max(0, scale - q + t - s) + q + 1 > 76:
            raise _too_many_digits(name, a, b)
    else:
        scale = max(s, t)
        digits = max(p - s, q - t) + scale + 1
    return Typed(name, (a, b), _adjusted(digits, scale))


def _too_many_digits(name: str, a: Typed, b: Typed) -> QueryError:
    return QueryError(
        f"{type_name(a.type)} {name} {type_name(b.type)} needs more than 76 digits on the way: cast one to fewer, or to double"
    )


def _adjusted(digits: int, scale: int) -> pa.DataType:
    if digits <= MOST_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - (digits - scale), min(scale, KEPT_SCALE)))


def _comparison(name: str, values: Sequence[Typed]) -> Typed:
    values = _in_common(name, values)
    type_ = values[0].type
    if pt.is_nested(type_):
        raise QueryError(f"{name} does not compare {type_name(type_)}")
    swapped = {">": "<", ">=": "<="}
    if name in swapped:
        values = values[::-1]
    made = Typed(swapped.get(name, "=" if name == "!=" else name), tuple(values), BOOLEAN)
    return Typed("not", (made,), BOOLEAN) if name == "!=" else made


def _case(name: str, values: Sequence[Typed]) -> Typed:
    conditions = _boolean("case", values[:-1:2]).arguments
    results = _in_common("case", [*values[1:-1:2], values[-1]])
    parts = [part for pair in zip(conditions, results[:-1], strict=True) for part in pair]
    return Typed("case", (*parts, results[-1]), results[-1].type)


def _in(name: str, values: Sequence[Typed]) -> Typed:
    if any(value.op != "literal" for value in values[1:]) or len(values) < 2:
        raise QueryError("in takes a list of constants")
    common = _in_common("in", values)
    return Typed("in", tuple(common), BOOLEAN)


def _same(name: str, values: Sequence[Typed]) -> Typed:
    common = _in_common(name, values)
    if name in ("greatest", "least") and pt.is_nested(common[0].type):
        raise QueryError(f"{name} does not compare {type_name(common[0].type)}")
    return Typed(name, tuple(common), common[0].type)


def _of_numbers(result: Callable[[pa.DataType], pa.DataType], *, decimals: bool = False) -> Any:
    def rule(name: str, values: Sequence[Typed]) -> Typed:
        (value,) = values
        if not is_number(value.type) or (pt.is_decimal(value.type) and not decimals):
            raise QueryError(
                f"{name} does not take {type_name(value.type)}: cast it to a number that it takes"
            )
        return Typed(name, (value,), result(value.type))

    return rule


def _of_doubles(name: str, values: Sequence[Typed]) -> Typed:
    for value in values:
        if not (is_number(value.type) or pt.is_null(value.type)):
            raise QueryError(f"{name} takes numbers, not {type_name(value.type)}")
    return Typed(name, tuple(convert(value, DOUBLE) for value in values), DOUBLE)


def _round(name: str, values: Sequence[Typed]) -> Typed:
    value, places = values[0], values[1] if len(values) > 1 else None
    digits = 0
    if places is not None:
        if places.op != "literal" or not is_integer(places.type) or places.detail is None:
            raise QueryError("round takes a constant number of digits")
        digits = places.detail.value
    if is_integer(value.type) and digits >= 0:
        return value
    if pt.is_floating(value.type) and digits == 0:
        return Typed("round", (value,), value.type)
    raise QueryError(
        f"round does not take {type_name(value.type)} with {digits} digits: cast(.. as decimal(p, s)) rounds decimals"
    )


def _texts(result: pa.DataType, *, numbers: int = 0) -> Any:
    def rule(name: str, values: Sequence[Typed]) -> Typed:
        split = len(values) - numbers if numbers else len(values)
        split = 1 if name in ("substring", "left", "right") else split
        for value in values[:split]:
            if not (pt.is_string(value.type) or pt.is_null(value.type)):
                raise QueryError(f"{name} takes texts, not {type_name(value.type)}: cast it to string")
        for value in values[split:]:
            if not is_integer(value.type) or value.op != "literal" or value.type == BIGINT:
                raise QueryError(f"{name} takes constant positions, which are whole numbers")
        if name in ("startswith", "endswith", "contains", "replace"):
            for value in values[1:]:
                if value.op != "literal":
                    raise QueryError(f"{name} takes a constant text behind the first one")
        return Typed(name, (*(convert(v, TEXT) for v in values[:split]), *values[split:]), result)

    return rule


def _like(name: str, values: Sequence[Typed]) -> Typed:
    if values[1].op != "literal":
        raise QueryError("like takes a constant pattern")
    pattern = values[1].detail.value if values[1].detail is not None else ""
    if isinstance(pattern, str) and re.search(r"(?<!\\)(\\\\)*\\(?![_%\\])", pattern):
        raise QueryError(f"in the pattern {pattern!r}, a backslash stands before %, _ or another backslash")
    return _texts(BOOLEAN)(name, values)


def _part(name: str, values: Sequence[Typed]) -> Typed:
    (value,) = values
    if not (pt.is_timestamp(value.type) or (value.type == DATE and name in PARTS)):
        raise QueryError(
            f"{name} takes a {'time' if name in CLOCK else 'date or a time'}, not {type_name(value.type)}"
        )
    return Typed(name, (value,), INT)


def _truncated(name: str, values: Sequence[Typed]) -> Typed:
    unit, value = values
    known = (
        unit.detail.value.lower() if unit.op == "literal" and pt.is_string(unit.type) and unit.detail else ""
    )
    if known not in UNITS:
        raise QueryError(f"date_trunc takes one of the constants {', '.join(UNITS)} first")
    if not (pt.is_timestamp(value.type) or value.type == DATE):
        raise QueryError(f"date_trunc takes a date or a time, not {type_name(value.type)}")
    if value.type == DATE:
        value = convert(value, TIMESTAMP)
    return Typed("date_trunc", (value,), value.type, known)


def _date_moved(name: str, values: Sequence[Typed]) -> Typed:
    day, days = values
    if pt.is_timestamp(day.type):
        day = convert(day, DATE)
    if day.type != DATE or not is_integer(days.type) or days.type == BIGINT:
        raise QueryError(f"{name} takes a date and a number of days that is an int")
    return Typed(name, (day, convert(days, INT)), DATE)


def _days_between(name: str, values: Sequence[Typed]) -> Typed:
    days = [convert(v, DATE) if pt.is_timestamp(v.type) else v for v in values]
    if any(v.type != DATE for v in days):
        raise QueryError("datediff takes two dates")
    return Typed(name, tuple(days), INT)


def _since_epoch(name: str, values: Sequence[Typed]) -> Typed:
    (value,) = values
    if not pt.is_timestamp(value.type) or value.type.tz is None:
        raise QueryError(f"{name} takes a time in a zone, not {type_name(value.type)}")
    return Typed(name, (value,), BIGINT)


def _from_epoch(name: str, values: Sequence[Typed]) -> Typed:
    (value,) = values
    if not is_integer(value.type):
        raise QueryError(f"{name} takes a whole number, not {type_name(value.type)}")
    return Typed(name, (convert(value, BIGINT),), TIMESTAMP)


def _bits(name: str, values: Sequence[Typed]) -> Typed:
    if not all(is_integer(v.type) for v in values):
        raise _mismatch(name, values)
    both = _in_common(name, values)
    return Typed(name, tuple(both), both[0].type)


def _is_null(name: str, values: Sequence[Typed]) -> Typed:
    return Typed(name, tuple(values), BOOLEAN)


def _is_nan(name: str, values: Sequence[Typed]) -> Typed:
    if not pt.is_floating(values[0].type):
        raise QueryError(f"isnan takes a float or a double, not {type_name(values[0].type)}")
    return Typed(name, tuple(values), BOOLEAN)


_RULES: dict[str, Callable[[str, Sequence[Typed]], Typed]] = {
    **dict.fromkeys(("and", "or"), _boolean),
    **dict.fromkeys(("+", "-", "*", "/", "%", "div"), _arithmetic),
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "<=>"), _comparison),
    **dict.fromkeys(("&", "|", "^"), _bits),
    **dict.fromkeys(("coalesce", "greatest", "least"), _same),
    **dict.fromkeys(("abs", "negative"), _of_numbers(lambda type_: type_, decimals=True)),
    **dict.fromkeys(("ceil", "floor"), _of_numbers(lambda type_: BIGINT)),
    **dict.fromkeys(("sqrt", "exp", "ln", "log10", "log2", "power", "sign"), _of_doubles),
    **dict.fromkeys(
        ("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "concat", "replace"), _texts(TEXT)
    ),
    **dict.fromkeys(("startswith", "endswith", "contains"), _texts(BOOLEAN)),
    **dict.fromkeys(("substring", "left", "right"), _texts(TEXT, numbers=1)),
    **dict.fromkeys((*PARTS, *CLOCK), _part),
    **dict.fromkeys(SINCE_EPOCH, _since_epoch),
    **dict.fromkeys(FROM_EPOCH, _from_epoch),
    **dict.fromkeys(("date_add", "date_sub"), _date_moved),
    "datediff": _days_between,
    "length": _texts(INT),
    "case": _case,
    "in": _in,
    "is null": _is_null,
    "isnan": _is_nan,
    "like": _like,
    "round": _round,
    "date_trunc": _truncated,
}
