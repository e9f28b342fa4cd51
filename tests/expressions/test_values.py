"""Expressions over Arrow columns: their values by hand, their types, and what cannot be fitted to a table.

That they are the values of Spark is compared in tests/spark/test_expressions.py.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from windrow.engine.intake.projection import REASON, projection_of
from windrow.expressions.building import column_name
from windrow.expressions.formula import evaluate
from windrow.rolling import Rolling

EVENTS = pa.table(
    {
        "i": pa.array([1, -7, None], pa.int64()),
        "small": pa.array([100, -128, 3], pa.int8()),
        "unsigned": pa.array([255, 0, 1], pa.uint8()),
        "x": [0.5, math.nan, -0.0],
        "d": pa.array([Decimal("1.25"), Decimal("-0.05"), None], pa.decimal128(10, 2)),
        "b": [True, None, False],
        "s": ["Straße", " a ", None],
        "word": pa.array(["u", "v", "u"]).dictionary_encode(),
        "day": [date(2024, 2, 29), date(1969, 12, 31), None],
        "ts": pa.array(
            [
                datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
                datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
                None,
            ],
            pa.timestamp("ms", "Europe/Berlin"),
        ),
        "st": [{"n": 1, "deep": {"m": 5}}, None, {"n": None, "deep": None}],
    }
)


def values(text: str) -> list[Any]:
    found: list[Any] = evaluate([column_name(wr.expr(text + " "))], EVENTS)[0].to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 1", [2, -6, None]),
        ("i / 2", [0.5, -3.5, None]),
        ("i % 2", [1, -1, None]),
        ("i div 2", [0, -3, None]),
        ("i > 0 or b", [True, None, None]),
        ("i > 0 and b", [True, False, False]),
        ("x = cast('nan' as double)", [False, True, False]),
        ("x > 100", [False, True, False]),
        ("x = 0", [False, False, True]),
        ("greatest(x, 0.0)", [0.5, "nan", 0.0]),
        ("least(x, 1)", [0.5, 1.0, 0.0]),
        ("d * 2", [Decimal("2.50"), Decimal("-0.10"), None]),
        ("cast(d as decimal(10, 1))", [Decimal("1.3"), Decimal("-0.1"), None]),
        ("case when i > 0 then 'up' when i < 0 then 'down' else 'unknown' end", ["up", "down", "unknown"]),
        ("coalesce(i, small)", [1, -7, 3]),
        ("nullif(i, 1)", [None, -7, None]),
        ("i in (1, 2)", [True, False, None]),
        ("i in (2, null)", [None, None, None]),
        ("i between -7 and 0", [False, True, None]),
        ("s like 'S%'", [True, False, None]),
        ("upper(s)", ["STRASSE", " A ", None]),
        ("trim(s) || '!'", ["Straße!", "a!", None]),
        ("substring(s, 2, 3)", ["tra", "a ", None]),
        ("substring(s, -2)", ["ße", "a ", None]),
        ("length(s)", [6, 3, None]),
        ("word = 'u'", [True, False, True]),
        ("unsigned + 1", [256, 1, 2]),
        ("b is null", [False, True, False]),
        ("i <=> null", [False, False, True]),
        ("st.n + 1", [2, None, None]),
        ("st.deep.m", [5, None, None]),
        ("year(day) * 100 + month(day)", [202402, 196912, None]),
        ("dayofweek(day)", [5, 4, None]),
        ("hour(ts)", [3, 0, None]),
        ("day(ts)", [31, 1, None]),
        ("ts > date '2000-01-01'", [True, False, None]),
        ("ts > '2024-03-31 03:29:59'", [True, False, None]),
        ("cast(ts as date)", [date(2024, 3, 31), date(1970, 1, 1), None]),
        ("cast(trim('12') as int) + i", [13, 5, None]),
        ("round(x)", [1.0, "nan", 0.0]),
        ("ln(x)", [math.log(0.5), "nan", None]),
        ("1 + 1", [2, 2, 2]),
    ],
)
def test_an_expression_has_these_values(text: str, expected: list[Any]) -> None:
    found = values(text)
    assert ["nan" if isinstance(v, float) and math.isnan(v) else v for v in found] == expected


@pytest.mark.parametrize(
    ("text", "row", "said"),
    [
        ("i * 9223372036854775807", 1, "overflows"),
        ("small + small", 0, "overflows"),
        ("negative(small)", 1, "overflows"),
        ("1 / (i - 1)", 0, "division by zero"),
        ("i % (i + 7)", 1, "division by zero"),
        ("cast(trim(s) as int)", 0, "cannot be cast"),
        ("cast(i + 200 as tinyint)", 0, "overflows"),
        ("cast(x as int)", 1, "overflows"),
    ],
)
def test_a_row_that_cannot_be_computed_is_named_with_its_values(text: str, row: int, said: str) -> None:
    with pytest.raises(wr.DataError, match=said) as caught:
        values(text)
    assert caught.value.row == row
    assert caught.value.column == str(wr.expr(text))
    assert set(caught.value.value) <= set(EVENTS.column_names)


@pytest.mark.parametrize(
    "text",
    [
        "case when i != 1 then 1 / (i - 1) end",
        "i = 1 or 1 / (i - 1) > 0",
        "i != 1 and 1 / (i - 1) > 0",
        "coalesce(small, 1 / (i - 1))",
        "cast(null as int) + 1 / (i - 1)",
        "if(i = 1, 0, 1 / (i - 1))",
    ],
)
def test_what_is_not_looked_at_does_not_fail(text: str) -> None:
    assert len(values(text)) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing + 1", "there is no column 'nothing'"),
        ("s + 1", "cannot take string and int: cast one of them"),
        ("s > 1", "cannot take string and int"),
        ("not i", "not takes conditions"),
        ("st.m", "its fields are 'n', 'deep'"),
        ("i.m", "has no field 'm'"),
        ("year(i)", "takes a date or a time"),
        ("cast(x as string)", "no cast from double to string"),
        ("cast(x as decimal(5, 1))", "no cast from double to decimal"),
        ("round(x, 2)", "round does not take double with 2 digits"),
        ("i in (i, 1)", "in takes a list of constants"),
        ("s like s", "like takes a constant pattern"),
        ("st = st", "does not compare"),
        ("upper(i)", "upper takes texts"),
        ("case when i then 1 end", "takes conditions"),
        ("d % 2", "does not take decimals"),
    ],
)
def test_what_does_not_fit_the_columns_is_refused(text: str, said: str) -> None:
    with pytest.raises(wr.QueryError, match=said):
        values(text)


def test_the_bounds_of_every_width_overflow_where_python_says_so() -> None:
    for type_ in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        edge = 2 ** (type_.bit_width - 1)
        numbers = [0, 1, -1, 2, edge - 1, -edge, edge // 2, -(edge // 2) - 1, 3]
        pairs = [(a, b) for a in numbers for b in numbers]
        columns = {name: pa.array([pair[i] for pair in pairs], type_) for i, name in enumerate("ab")}
        for sign, of in (("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)):
            for row, (a, b) in enumerate(pairs):
                table = pa.table({name: array.slice(row, 1) for name, array in columns.items()})
                expected = of(a, b)
                if -edge <= expected < edge:
                    assert evaluate([f"= a {sign} b"], table)[0].to_pylist() == [expected]
                else:
                    with pytest.raises(wr.DataError, match="overflows"):
                        evaluate([f"= a {sign} b"], table)


def test_what_computes_no_expressions_says_so() -> None:
    rolling = Rolling(wr.sum(wr.expr("x * 2")), rows=2)
    with pytest.raises(
        wr.QueryError, match=r"only queries compute expressions: compute 'x \* 2' into a column before"
    ):
        rolling.process(pa.table({"t": [1, 2], "x": [1, 2]}))


@pytest.mark.parametrize("unit", ["hour", "minute", "second"])
def test_times_in_the_hour_that_clocks_show_twice_are_cut_where_they_are(unit: str) -> None:
    instants = [datetime(2024, 10, 27, hour, 30, 15, 9, UTC) for hour in (0, 1, 2)]
    table = pa.table({"t": pa.array([*instants, None], pa.timestamp("us", "Europe/Berlin"))})
    cut = {"hour": {"minute": 0, "second": 0}, "minute": {"second": 0}, "second": {}}[unit]
    (found,) = evaluate([f"= date_trunc('{unit}', t)"], table)
    expected = [*(each.replace(microsecond=0, **cut) for each in instants), None]
    assert found.cast(pa.timestamp("us", "UTC")).to_pylist() == expected


def test_a_midnight_that_clocks_show_twice_is_the_second_one_where_it_has_come() -> None:
    seconds = [1730608215, 1730611815, 1730615415]  # 00:30:15, again, and 01:30:15; as Spark has them
    instants = pa.array(seconds, pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "America/Havana"))
    (found,) = evaluate(["= date_trunc('day', t)"], pa.table({"t": instants}))
    days = [int(day.timestamp()) for day in found.cast(pa.timestamp("us", "UTC")).to_pylist()]
    assert days == [seconds[0] - 1815, seconds[1] - 1815, seconds[1] - 1815]


def test_rows_of_errors_are_those_of_the_batch_that_came() -> None:
    asked = wr.query(
        time="t",
        windows={"w": wr.tumbling(9)},
        aggregates={"a": wr.sum(wr.expr("1 div v"))},
        where="10 div w > 1",
    )
    columns = {"t": range(5), "v": [1, 1, 1, 0, 1], "w": [1, 1, 99, 1, 1]}
    why = pa.array(["column 'c': bad", None, None, None, None])
    batch = pa.record_batch({**columns, REASON: why})
    project = projection_of(asked)
    assert project is not None
    with pytest.raises(wr.DataError, match="row 3"):
        project(batch, on_bad="raise")
    assert project(batch, on_bad="divert").rows.tolist() == [1, 4]
    with pytest.raises(wr.DataError, match="row 2"):
        project(batch.set_column(2, "w", pa.array([1, 1, 0, 1, 1])), on_bad="raise")
