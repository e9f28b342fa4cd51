"""Conditions as a person writes them in a file: `speed > 80 and not parked`, as expressions of pyarrow.

    name                 a boolean column, left to windrow as it is
    name > 80            comparisons, arithmetic, and, or, not, parentheses, numbers, quoted texts, True, False

The grammar is Python's; what else Python has (calls, attributes, indices) is refused, so nothing can be run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc

from windrow.errors import QueryError

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def condition(text: str) -> str | pc.Expression:
    """The predicate that a text says: the name of a column, or an expression.

    >>> condition("is_stop")
    'is_stop'
    >>> condition("speed > 80 and not parked")
    <pyarrow.compute.Expression ((speed > 80) and invert(parked))>
    """
    if text.isidentifier():
        return text
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise QueryError(f'{text!r} is not a condition; write it as "speed > 80 and not parked"') from None
    return _expression(parsed, text)


def _expression(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Name(id=name):
            return pc.field(name)
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return pc.scalar(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~_expression(operand, text)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return pc.scalar(-value)
        case ast.BoolOp(op=op, values=values):
            join = operator.and_ if isinstance(op, ast.And) else operator.or_
            return reduce(join, [_expression(value, text) for value in values])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _ARITHMETIC[type(op)](_expression(left, text), _expression(right, text))
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in _COMPARISONS for op in ops
        ):
            terms = [_expression(term, text) for term in (left, *others)]
            pairs = zip(ops, pairwise(terms), strict=True)
            return reduce(operator.and_, [_COMPARISONS[type(op)](one, other) for op, (one, other) in pairs])
    raise QueryError(
        f"{ast.unparse(node)!r} in {text!r} is not possible in a condition: columns, numbers, quoted texts, comparisons, "
        "+ - * /, and, or, not and parentheses are"
    )
