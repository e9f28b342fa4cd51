"""Expressions as text, read and written by sqlglot in Spark's dialect.

Functions come out of the parser by the names that they were called by: what a function is, `functions` says and not the parser.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from windrow.errors import QueryError
from windrow.expressions.functions import FUNCTIONS
from windrow.expressions.tree import NULL, Call, Cast, Column, Literal, Node, literal
from windrow.wording import did_you_mean

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.Like: "like",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.DPipe: "concat",
}
_WRITTEN = {sign: kind for kind, sign in _BINARY.items() if sign != "concat"}


class Dialect(Spark):
    """Spark's, where functions are calls of names and nothing else."""

    class Tokenizer(Spark.Tokenizer):
        # SESSION is a function, too.
        KEYWORDS: ClassVar[Any] = {k: v for k, v in Spark.Tokenizer.KEYWORDS.items() if k != "SESSION"}

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        FUNCTIONS: ClassVar[Any] = {}
        FUNCTION_PARSERS: ClassVar[Any] = {"CAST": Spark.Parser.FUNCTION_PARSERS["CAST"]}
        NO_PAREN_FUNCTIONS: ClassVar[Any] = {}


@cache
def parse(text: str) -> Node:
    """The tree of a text.

    Raises
    ------
    QueryError
        Where the text is no expression, with the place; or an expression of what windrow does not have.

    Examples
    --------
    >>> parse("price * 2")
    Call(name='*', arguments=(Column(name='price', path=()), Literal(type='int', text='2')))
    """
    tree = parsed(text)
    try:
        return read(tree, text)
    except RecursionError:
        raise _too_deep(text) from None


def parsed(text: str) -> exp.Expr:
    """What sqlglot makes of a text; an error says where it stops being one."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f'an expression is a text such as "price * quantity", not {text!r}')
    try:
        return sqlglot.parse_one(text, read=Dialect)
    except SqlglotError as problem:
        raise QueryError(unreadable(text, problem, "an expression")) from None
    except RecursionError:
        raise _too_deep(text) from None


def _too_deep(text: str) -> QueryError:
    return QueryError(
        f"the expression {text[:60]!r}... is nested too deeply: compute parts of it into columns before"
    )


def unreadable(text: str, problem: SqlglotError, what: str) -> str:
    """What is wrong with a text that sqlglot cannot read, with line and column."""
    found = getattr(problem, "errors", None) or [{}]
    first = found[0]
    said = str(first.get("description") or str(problem).splitlines()[0]).rstrip(".")
    if said.startswith("Required keyword"):
        said = "something is missing"
    place = f"line {first['line']}, column {first['col']}: " if first.get("line") else ""
    near = f" near {first['highlight']!r}" if first.get("highlight") else ""
    return f"{text!r} is not {what}: {place}{said}{near}"


def read(node: exp.Expr, text: str) -> Node:
    """The tree of what sqlglot has parsed; `text` is for errors."""

    def all_of(items: list[exp.Expr]) -> tuple[Node, ...]:
        return tuple(read(item, text) for item in items)

    match node:
        case exp.Paren():
            return read(node.this, text)
        case exp.Column() | exp.Dot():
            names = [part.name for part in node.parts]
            if not all(names) or "*" in names:
                raise QueryError(f"{node.sql('spark')!r} in {text!r} is no column")
            return Column(names[0], tuple(names[1:]))
        case exp.Identifier():
            return Column(node.name)
        case exp.Literal():
            return literal(node.this) if node.is_string else _number(node.this)
        case exp.Boolean():
            return literal(bool(node.this))
        case exp.Null():
            return NULL
        case exp.Neg(this=exp.Literal() as number) if not number.is_string:
            return _number("-" + number.this)
        case exp.Neg():
            return Call("negative", (read(node.this, text),))
        case exp.Not():
            return Call("not", (read(node.this, text),))
        case exp.Is():
            return _is(node, text)
        case exp.Between():
            value, low, high = all_of([node.this, node.args["low"], node.args["high"]])
            return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))
        case exp.In():
            if node.args.get("query") or node.args.get("unnest"):
                raise QueryError(f"in {text!r}: in takes a list of constants, not a query")
            return Call("in", all_of([node.this, *node.expressions]))
        case exp.Case():
            return _case(node, text)
        case exp.If():
            otherwise = node.args.get("false")
            values = all_of([node.this, node.args["true"]])
            return Call("case", (*values, NULL if otherwise is None else read(otherwise, text)))
        case exp.Cast():
            return _cast(node, text)
        case exp.Escape():
            raise QueryError(f"in {text!r}: like escapes by a backslash, and by nothing else")
        case exp.Anonymous():
            name = str(node.this).lower()
            if name not in FUNCTIONS:
                raise QueryError(f"in {text!r}: there is no function {name!r}{did_you_mean(name, FUNCTIONS)}")
            return FUNCTIONS[name].call(name, all_of(node.expressions))
    sign = _BINARY.get(type(node))
    if sign is not None:
        return Call(sign, all_of([node.this, node.expression]))
    raise QueryError(f"{node.sql('spark')!r} in {text!r} is not possible in an expression")


def _number(text: str) -> Literal:
    from decimal import Decimal

    if re.fullmatch(r"-?\d+", text):
        return literal(int(text))
    return literal(float(text) if "e" in text.lower() else Decimal(text))


def _is(node: exp.Is, text: str) -> Node:
    value, other = read(node.this, text), read(node.expression, text)
    if other == NULL:
        return Call("is null", (value,))
    return Call("<=>", (value, other))


def _case(node: exp.Case, text: str) -> Node:
    parts: list[Node] = []
    for branch in node.args["ifs"]:
        condition = read(branch.this, text)
        if node.this is not None:
            condition = Call("=", (read(node.this, text), condition))
        parts += [condition, read(branch.args["true"], text)]
    otherwise = node.args.get("default")
    return Call("case", (*parts, NULL if otherwise is None else read(otherwise, text)))


def _cast(node: exp.Cast, text: str) -> Node:
    from windrow.expressions.typing import named_type, type_name

    try:
        type_ = type_name(named_type(node.to.sql(Spark)))
    except QueryError as problem:
        raise QueryError(f"in {text!r}: {problem}") from None
    value = read(node.this, text)
    if isinstance(value, Literal) and value.type == "string":
        if type_ in ("date", "timestamp"):  # DATE '2024-01-01' comes as a cast, too
            made = Literal(type_, value.text.strip())
            try:
                return literal(made.value)
            except ValueError:
                raise QueryError(f"in {text!r}: {value.text!r} is no {type_}") from None
        if type_ == "double" and value.text in ("nan", "inf", "-inf"):
            return Literal("double", value.text)
    return Cast(value, type_)


# -- writing ---------------------------------------------------------------------------------------


def written(node: Node) -> str:
    """The text of a tree, which `parse` makes the same tree of.

    Raises
    ------
    QueryError
        Where the tree has more levels than Python can follow, some hundred.

    Examples
    --------
    >>> written(parse("a+b*2 > 3 and not c"))
    'a + b * 2 > 3 AND NOT c'
    """
    try:
        return _text(node)
    except RecursionError:
        raise QueryError(
            "an expression is nested too deeply: compute parts of it into columns before"
        ) from None


@cache
def _text(node: Node) -> str:
    return _made(node).sql(Dialect)


def _made(node: Node) -> exp.Expr:
    match node:
        case Column(name, path):
            parts = [exp.to_identifier(part, quoted=not _is_plain(part)) for part in (name, *path)]
            return exp.Dot.build([exp.column(parts[0]), *parts[1:]]) if path else exp.column(parts[0])
        case Literal():
            return _constant(node)
        case Cast(value, type_):
            return exp.Cast(this=_made(value), to=exp.DataType.build(type_, dialect="spark"))
        case Call(name, arguments):
            return _call(name, [_made(each) for each in arguments])
    raise AssertionError(node)


@cache
def _is_plain(name: str) -> bool:
    """Whether a name is read as a column without quotes."""
    if _PLAIN.fullmatch(name) is None or name.upper() in _RESERVED:
        return False
    try:
        found = sqlglot.parse_one(f"{name} + {name}", read=Dialect)
    except SqlglotError:
        return False
    return isinstance(found, exp.Add) and all(
        isinstance(each, exp.Column) for each in (found.this, found.expression)
    )


# Words that mean something else in some places only.
_RESERVED = {
    "ALL",
    "AND",
    "CASE",
    "ELSE",
    "END",
    "IN",
    "IS",
    "LIKE",
    "NOT",
    "OR",
    "THEN",
    "WHEN",
    "BETWEEN",
    "ESCAPE",
    "DIV",
    "DATE",
    "TIMESTAMP",
}


def _constant(node: Literal) -> exp.Expr:
    text = node.text
    match node.type:
        case "null":
            return exp.Null()
        case "boolean":
            return exp.Boolean(this=text == "true")
        case "string":
            return exp.Literal.string(text)
        case "date" | "timestamp":
            return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(node.type, dialect="spark"))
        case "double":
            if text in ("nan", "inf", "-inf"):
                return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("double"))
            text = text if "e" in text else f"{text}e0"
        case "decimal" if "." not in text:
            text += "."
    number = exp.Literal.number(text.removeprefix("-"))
    return exp.Neg(this=number) if text.startswith("-") else number


def _call(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    match name:
        case "not":
            return exp.Not(this=_enclosed(arguments[0]))
        case "is null":
            return exp.Is(this=_enclosed(arguments[0]), expression=exp.Null())
        case "in":
            return exp.In(this=_enclosed(arguments[0]), expressions=arguments[1:])
        case "case":
            pairs = zip(arguments[:-1:2], arguments[1:-1:2], strict=True)
            ifs = [exp.If(this=condition, true=value) for condition, value in pairs]
            return exp.Case(ifs=ifs, default=None if isinstance(arguments[-1], exp.Null) else arguments[-1])
        case _ if name in _WRITTEN:
            kind = _WRITTEN[name]
            # Equal precedence is read from the left.
            left, right = arguments
            return kind(this=_enclosed(left, kind, left=True), expression=_enclosed(right, kind, left=False))
    return exp.Anonymous(this=name.upper() if name != "negative" else "NEGATIVE", expressions=arguments)


_BINDING: list[set[Any]] = [
    {exp.Or},
    {exp.And},
    {exp.Not},
    {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Like, exp.In, exp.Is},
    {exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor},
    {exp.Add, exp.Sub},
    {exp.Mul, exp.Div, exp.IntDiv, exp.Mod},
]
_TIGHT: dict[Any, int] = {kind: level for level, kinds in enumerate(_BINDING) for kind in kinds}
_COMPARING = _TIGHT[exp.EQ]


def _enclosed(inner: exp.Expr, outer: type[exp.Expr] | None = None, *, left: bool = False) -> exp.Expr:
    """An operand in parentheses, where it would be read as another one without."""
    level = _TIGHT.get(type(inner))
    if level is None:
        return inner
    around = len(_BINDING) if outer is None else _TIGHT[outer]
    same = left and level == around and type(inner) in (outer, exp.Mul, exp.Add, exp.Sub, exp.And, exp.Or)
    if level > around or (same and level not in (_COMPARING, _COMPARING + 1)):
        return inner
    return exp.Paren(this=inner)
