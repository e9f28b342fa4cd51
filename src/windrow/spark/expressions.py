"""Expressions as columns of Spark: the same trees that `windrow.expressions.arrow` runs, made of PySpark's functions.

Each node is a column, and beside it, where it can fail, a column that says for which rows it does, and why: by the numbers of
`windrow.expressions.arrow`. What fails is computed by functions that give null instead, so neither the settings of a session nor the
order in which Spark computes things matters.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache, reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

from windrow.engine.intake.projection import REASON
from windrow.errors import QueryError
from windrow.expressions.arrow import MISFIT, OVERFLOW, PROBLEMS, ZERO, pattern_for
from windrow.expressions.building import is_computed, shown
from windrow.expressions.formula import Formula
from windrow.expressions.functions import CLOCK, FROM_EPOCH, PARTS, SINCE_EPOCH
from windrow.expressions.typing import Typed
from windrow.spark.compatibility import spark_schema
from windrow.spark.schema import arrow_schema, named, require_names
from windrow.spec import QuerySpec

# Which rows are bad: null, or the number of what is wrong; None where none can be.
Bad: TypeAlias = "Column | None"


def column(formula: Formula) -> tuple[Column, Bad]:
    """The values of an expression, and which rows are bad."""
    values, bad = _of(formula.typed)
    return values.cast(spark_type(formula.typed.type)), bad


def raising(formula: Formula) -> Column:
    """The values of an expression; a bad row is an error that names the expression and what it reads."""
    values, bad = column(formula)
    if bad is None:
        return values
    error = sf.raise_error(problem(formula, bad)).cast(spark_type(formula.typed.type))
    return sf.when(bad.isNotNull(), error).otherwise(values)


def problem(formula: Formula, bad: Column) -> Column:
    """What is wrong with a bad row, as text."""
    read = [
        sf.concat(sf.lit(f"{name!r}: "), sf.coalesce(named(name).cast("string"), sf.lit("None")))
        for name in formula.columns
    ]
    why = sf.lit(PROBLEMS[OVERFLOW])
    for number in (ZERO, MISFIT):
        why = sf.when(bad == number, sf.lit(PROBLEMS[number])).otherwise(why)
    values = sf.concat_ws(", ", *read)
    return sf.concat(sf.lit(f"column {shown(formula.name)!r}, value {{"), values, sf.lit("}: "), why)


@cache
def spark_type(type_: pa.DataType) -> DataType:
    """The type of Spark that stands for one of Arrow."""
    found: DataType = spark_schema(pa.schema([("x", type_)])).fields[0].dataType
    return found


def _of(node: Typed) -> tuple[Column, Bad]:
    match node.op:
        case "column":
            name, path = node.detail
            return reduce(lambda value, part: value.getField(part), path, named(name)), None
        case "literal":
            return _constant(node), None
        case "and" | "or":
            return _logic(node)
        case "case":
            return _case(node)
        case "coalesce":
            return _coalesced(node)
    values: list[Column] = []
    bad: Bad = None
    absent: Bad = None
    for argument in node.arguments:
        value, wrong = _of(argument)
        if wrong is not None:
            bad = _first(bad, wrong if absent is None else sf.when(~absent, wrong))
        if node.op not in ("is null", "<=>", "greatest", "least"):
            here = value.isNull()
            absent = here if absent is None else absent | here
        values.append(value)
    if node.op in _FAILING:
        answer, wrong = _FAILING[node.op](node, *values)
        return answer, _first(bad, wrong)
    return _PLAIN[node.op](node, *values), bad


def _first(bad: Bad, wrong: Bad) -> Bad:
    if bad is None or wrong is None:
        return wrong if bad is None else bad
    return sf.coalesce(bad, wrong)


def _logic(node: Typed) -> tuple[Column, Bad]:
    (left, bad), (right, also) = (_of(each) for each in node.arguments)
    answer = left & right if node.op == "and" else left | right
    if also is None:
        return answer, bad
    decided = sf.coalesce(left == sf.lit(node.op == "or"), sf.lit(False))
    return answer, _first(bad, sf.when(~decided, also))


def _case(node: Typed) -> tuple[Column, Bad]:
    parts = [_of(each) for each in node.arguments]
    values, bad = parts[-1]
    certain = all(wrong is None for _, wrong in parts)
    bad = sf.lit(None).cast("int") if bad is None else bad
    for (condition, wrong), (result, also) in zip(parts[-3::-2], parts[-2::-2], strict=True):
        values = sf.when(condition, result).otherwise(values)
        here = sf.lit(None).cast("int") if also is None else also
        bad = sf.when(condition, here).otherwise(bad)
        if wrong is not None:
            bad = sf.coalesce(wrong, bad)
    return values, None if certain else bad


def _coalesced(node: Typed) -> tuple[Column, Bad]:
    parts = [_of(each) for each in node.arguments]
    bad: Bad = None
    for value, wrong in parts[::-1]:
        behind = None if bad is None else sf.when(value.isNull(), bad)
        bad = _first(wrong, behind)
    return sf.coalesce(*(value for value, _ in parts)), bad


def _constant(node: Typed) -> Column:
    if node.detail is None:
        return sf.lit(None).cast(spark_type(node.type))
    value = node.detail.value
    if pt.is_decimal(node.type):
        value = Decimal(value)
    if pt.is_floating(node.type):
        value = float(value)
    if pt.is_timestamp(node.type):
        value = node.detail.text
    return sf.lit(value).cast(spark_type(node.type))


# -- what may fail ---------------------------------------------------------------------------------


def _unless_null(answer: Column, *values: Column, why: Column | None = None) -> Column:
    """Bad where there are values and no answer."""
    there = reduce(lambda a, b: a & b, [value.isNotNull() for value in values])
    reason = sf.lit(OVERFLOW) if why is None else why
    return sf.when(answer.isNull() & there, reason)


def _arithmetic(node: Typed, a: Column, b: Column) -> tuple[Column, Bad]:
    if pt.is_floating(node.type):
        return {"+": a + b, "-": a - b, "*": a * b}[node.op], None
    tried = {"+": sf.try_add, "-": sf.try_subtract, "*": sf.try_multiply}[node.op](a, b)
    return tried, _unless_null(tried, a, b)


def _divided(node: Typed, a: Column, b: Column) -> tuple[Column, Bad]:
    answer = sf.try_divide(a, b)
    return answer, _unless_null(answer, a, b, why=sf.when(b == 0, sf.lit(ZERO)).otherwise(sf.lit(OVERFLOW)))


def _whole_division(node: Typed, a: Column, b: Column) -> tuple[Column, Bad]:
    overflows = (a == sf.lit(-(2**63))) & (b == sf.lit(-1))
    answer = sf.when((b != 0) & ~overflows, sf.call_function("div", a, b))
    return answer, _unless_null(answer, a, b, why=sf.when(b == 0, sf.lit(ZERO)).otherwise(sf.lit(OVERFLOW)))


def _remainder(node: Typed, a: Column, b: Column) -> tuple[Column, Bad]:
    answer = sf.when(b != 0, a % b)
    return answer, _unless_null(answer, a, b, why=sf.lit(ZERO))


def _negated(node: Typed, a: Column) -> tuple[Column, Bad]:
    if pt.is_decimal(node.type):
        # Spark's own minus rounds to 34 digits.
        type_ = spark_type(node.type)
        other = sf.try_subtract(sf.lit(Decimal(0)).cast(type_), a).cast(type_)
        return other if node.op == "negative" else sf.when(a < 0, other).otherwise(a), None
    answer = -a if node.op == "negative" else sf.abs(a)
    if not pt.is_integer(node.type):
        return answer, None
    least = sf.lit(-(2 ** (node.type.bit_width - 1))).cast(spark_type(node.type))
    answer = sf.when(a != least, answer)
    return answer, _unless_null(answer, a)


def _to_whole(node: Typed, a: Column) -> tuple[Column, Bad]:
    whole = sf.floor if node.op == "floor" else sf.ceil
    if pt.is_integer(node.arguments[0].type):
        return whole(a), None
    # NaN is larger than all other numbers.
    answer = sf.when((a >= sf.lit(-(2.0**63))) & (a < sf.lit(2.0**63)), whole(a))
    return answer, _unless_null(answer, a)


def _from_epoch(node: Typed, a: Column) -> tuple[Column, Bad]:
    limit = 2**63 // (1_000_000 // FROM_EPOCH[node.op])
    fits = (a >= sf.lit(-limit)) & (a <= sf.lit(min(limit, 2**63 - 1)))
    answer = sf.when(fits, getattr(sf, node.op)(a))
    return answer, _unless_null(answer, a)


def _cast(node: Typed, a: Column) -> tuple[Column, Bad]:
    one, other = node.arguments[0].type, node.type
    type_ = spark_type(other)
    if pt.is_string(one):
        trimmed = sf.regexp_replace(a, r"^[ \t\n\x0B\f\r]+|[ \t\n\x0B\f\r]+$", "")
        answer = sf.when(trimmed.rlike(pattern_for(other)), trimmed.try_cast(type_))
        return answer, _unless_null(answer, a, why=sf.lit(MISFIT))
    may_fail = pt.is_decimal(other) or (
        pt.is_integer(other)
        and not pt.is_boolean(one)
        and not (pt.is_integer(one) and one.bit_width <= other.bit_width)
    )
    if not may_fail:
        return a.cast(type_), None
    answer = a.try_cast(type_)
    return answer, _unless_null(answer, a)


# -- what may not ----------------------------------------------------------------------------------


def _by_name(node: Typed, *values: Column) -> Column:
    answer: Column = getattr(sf, _OTHER_NAMES.get(node.op, node.op))(*values)
    return answer


def _position(node: Typed, place: int) -> Any:
    detail = node.arguments[place].detail
    return None if detail is None else detail.value


def _part_of(node: Typed, a: Column, *positions: Column) -> Column:
    if len(positions) == 1:
        positions = (*positions, sf.lit(2**31 - 1))
    return sf.substring(a, *positions)


def _in(node: Typed, a: Column, *others: Column) -> Column:
    return a.isin(*others)


def _like(node: Typed, a: Column, b: Column) -> Column:
    pattern = _position(node, 1)
    return sf.lit(None).cast("boolean") if pattern is None else a.like(pattern)


_OTHER_NAMES = {"day": "dayofmonth", "power": "pow", "sign": "signum", "length": "char_length"}
_FAILING: dict[str, Callable[..., tuple[Column, Bad]]] = {
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    **dict.fromkeys(("negative", "abs"), _negated),
    **dict.fromkeys(("floor", "ceil"), _to_whole),
    **dict.fromkeys(FROM_EPOCH, _from_epoch),
    "/": _divided,
    "div": _whole_division,
    "%": _remainder,
    "cast": _cast,
}
_PLAIN: dict[str, Callable[..., Column]] = {
    **dict.fromkeys(
        ("greatest", "least", "sqrt", "exp", "ln", "log10", "log2", "power", "sign", "isnan"), _by_name
    ),
    **dict.fromkeys(
        ("upper", "lower", "length", "trim", "ltrim", "rtrim", "reverse", "concat", "replace"), _by_name
    ),
    **dict.fromkeys(
        ("startswith", "endswith", "contains", "left", "right", "date_add", "date_sub", "datediff"), _by_name
    ),
    **dict.fromkeys((*PARTS, *CLOCK, *SINCE_EPOCH), _by_name),
    "not": lambda node, a: ~a,
    "is null": lambda node, a: a.isNull(),
    "=": lambda node, a, b: a == b,
    "<": lambda node, a, b: a < b,
    "<=": lambda node, a, b: a <= b,
    "<=>": lambda node, a, b: a.eqNullSafe(b),
    "in": _in,
    "like": _like,
    "&": lambda node, a, b: a.bitwiseAND(b),
    "|": lambda node, a, b: a.bitwiseOR(b),
    "^": lambda node, a, b: a.bitwiseXOR(b),
    "round": lambda node, a: sf.round(a, 0),
    "substring": _part_of,
    "date_trunc": lambda node, a: sf.date_trunc(node.detail, a),
}


# -- queries ---------------------------------------------------------------------------------------


def computed(query: QuerySpec, df: DataFrame, *, diverts: bool) -> DataFrame:
    """The events that pass the filter of a query, with a column for each of its expressions.

    A row of which something cannot be computed is an error; with `diverts` the column `REASON` says why, and is null for all others.
    """
    sources = query.source_columns
    require_names(df, sources)
    schema, reasons = arrow_schema(df.schema, list(sources)), []
    for name in query.key_expressions:
        if name in df.columns:
            raise QueryError(
                f"the key {name!r} is computed, and events have a column of that name: give it another one"
            )
    if query.where is not None:
        formula = Formula(query.where, schema)
        formula.require_boolean("where of the query")
        holds, bad = column(formula)
        if bad is not None and diverts:
            reasons.append(_reason(formula, bad))
            holds = bad.isNotNull() | holds
        else:
            holds = raising(formula)
        df = df.where(holds)
    names = [name for name in query.columns if is_computed(name)]
    columns = []
    for name, source in {**query.key_expressions, **dict(zip(names, names, strict=True))}.items():
        formula = Formula(source, schema)
        values, bad = column(formula)
        if bad is not None and diverts:
            reasons.append(_reason(formula, bad))
        elif bad is not None:
            values = raising(formula)
        columns.append(values.alias(str.__str__(name)))
    if reasons:
        columns.append(sf.coalesce(*reasons, sf.lit(None)).cast("string").alias(REASON))
    return df.select("*", *columns) if columns else df


def _reason(formula: Formula, bad: Column) -> Column:
    why = sf.lit(f"column {shown(formula.name)!r}: {PROBLEMS[OVERFLOW]}")
    for number in (ZERO, MISFIT):
        said = f"column {shown(formula.name)!r}: {PROBLEMS[number]}"
        why = sf.when(bad == number, sf.lit(said)).otherwise(why)
    return sf.when(bad.isNotNull(), why)


def over_result(name: str, df: DataFrame) -> Column:
    """An expression over the columns of a result."""
    return raising(Formula(name, arrow_schema(df.schema, df.columns)))


def selected(query: QuerySpec, result: pa.Schema, df: DataFrame) -> DataFrame:
    """Windows with the columns that expressions over them add."""
    columns = [raising(Formula(source, result)).alias(name) for name, source in query.select.items()]
    return df.select("*", *columns) if columns else df
