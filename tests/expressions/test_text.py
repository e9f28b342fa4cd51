"""Expressions as text: what is read is written again, and what cannot be read is told with its place."""

from __future__ import annotations

import functools
import operator
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

import windrow as wr
from windrow.expressions.text import parse, written
from windrow.expressions.tree import Call, Column

TEXTS = [
    "price * quantity",
    "a.b.c + 1",
    "a - (b - c)",
    "(a + b) * -c",
    "not (a and b) or c",
    "(a = b) = c",
    "(not a) = b",
    "a <=> b",
    "a == b and a != c",
    "x in (1, 2, null) and y not in ('u')",
    "x between 1 and 3",
    "a like 'x%' or a is not null",
    "case when x > 1 then 2 when x > 0 then 1 end",
    "case x when 1 then 'one' else 'more' end",
    "cast(x as decimal(10, 2)) + x::int",
    "date '2024-01-01' < d and ts >= timestamp '2024-01-01 10:00:00'",
    "upper(trim(a)) || 'X'",
    "if(isnull(a), nvl(b, 0), nullif(c, 0))",
    "1.50 + 1e3 + 12345678901 - 3",
    "`we ird` + `select` + `a``b`",
    "`end` - start + `inner` + `order` + time + value + key + `left`",
    "it = 'it\\'s'",
    "a div 2 + a % 3 + a & 7 | 1 ^ b",
    "date_trunc('hour', ts) = ts and year(ts) > 2020",
    "cast('nan' as double) = x",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_the_same_expression_when_it_was_written_and_read_again(text: str) -> None:
    tree = parse(text)
    assert parse(written(tree)) == tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("price *", "line 1, column 7: something is missing"),
        ("a +\n b c d", "line 2"),
        ("upr(x)", "there is no function 'upr'; did you mean 'upper'"),
        ("upper(x, y)", r"upper takes 1 value\(s\), not 2"),
        ("select 1", "not possible in an expression"),
        ("x in (select 1)", "a list of constants, not a query"),
        ("cast(x as array<int>)", "there is no cast to"),
        ("date '2024-13-01' < d", "is no date"),
        ("sum(x)", "there is no function 'sum'"),
        ("", "an expression is a text"),
        ("t.*", "no column|not possible"),
    ],
)
def test_what_is_no_expression_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(wr.QueryError, match=said):
        wr.expr(text)


def test_python_and_text_make_the_same_trees() -> None:
    a, b = wr.col("a"), wr.col("b")
    pairs = [
        (a * b + 1, "a * b + 1"),
        (1 - a / 2, "1 - a / 2"),
        (~(a > b) & (b == 3) | a.is_null(), "not a > b and b = 3 or a is null"),
        (a.isin([1, 2]), "a in (1, 2)"),
        (a.between(1, b), "a between 1 and b"),
        (a.field("x").like("u%"), "a.x like 'u%'"),
        (a.cast("decimal(9, 1)") % -b, "cast(a as decimal(9, 1)) % negative(b)"),
        (wr.lit(None), "null"),
    ]
    for made, text in pairs:
        assert made.equals(wr.expr(text)), text
        assert hash(made) == hash(wr.expr(text))


def test_an_expression_is_a_value() -> None:
    made = wr.col("a") + 1
    assert pickle.loads(pickle.dumps(made)).equals(made)
    assert repr(made) == "expr('a + 1')"
    with pytest.raises(AttributeError, match="does not change"):
        made.node = None
    with pytest.raises(wr.QueryError, match="write & for and"):
        bool(wr.col("a") == 1)
    with pytest.raises(wr.QueryError, match="a constant is"):
        wr.col("a") + object()


def test_equal_expressions_make_equal_specs_and_others_do_not() -> None:
    assert wr.sum(wr.col("a") * wr.col("b")) == wr.sum(wr.expr("a*b"))
    assert wr.sum(wr.expr("a * b")) != wr.sum("a * b")
    assert wr.count(where="a > 1") == wr.count(where=wr.col("a") > 1)
    assert str(wr.sum("x", where="a > 1")) == "sum(x where a > 1)"
    assert str(wr.count(where="a > 1")) == "count(where a > 1)"


def test_a_query_without_expressions_does_not_import_the_parser() -> None:
    code = (
        "import sys, windrow as wr, pyarrow as pa\n"
        "q = wr.query(time='t', windows={'w': wr.tumbling(5)}, aggregates={'n': wr.count()})\n"
        "q.run(pa.table({'t': [1, 2]}))\n"
        "assert 'sqlglot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("column", ["all", "distinct", "interval", "set"])
def test_a_column_may_be_called_by_a_word_of_sql(column: str) -> None:
    call = Call("greatest", (Column(column), Column(column)))
    assert parse(written(call)) == call


def test_the_least_integer_is_a_constant() -> None:
    least = wr.col("x") == -(2**63)
    assert least.equals(wr.expr(str(least)))
    assert wr.expr("-9223372036854775808").equals(wr.lit(-(2**63)))


@pytest.mark.parametrize(
    "use",
    [
        str,
        repr,
        lambda made: wr.count(where=made > 0),
        lambda made: wr.expr("+".join(["x"] * 1200)),
    ],
)
def test_what_is_nested_too_deeply_is_refused(use: Callable[[wr.Expr], object]) -> None:
    made = functools.reduce(operator.add, [wr.col("x")] * 1200)
    with pytest.raises(wr.QueryError, match="is nested too deeply"):
        use(made)
