"""SQL says what queries in Python say; what it cannot say is told with its place."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.expressions.tree import Column
from windrow.statements.reading import statements
from windrow.testing.compare import rows_of, same

START = datetime(2024, 2, 29, 23, 50)
TRADES = pa.table(
    {
        "ts": pa.array([START + timedelta(seconds=40 * i) for i in range(40)], pa.timestamp("us")),
        "user": ["ann", "bob", None, "ann"] * 10,
        "price": [float(i % 7) if i % 5 else None for i in range(40)],
        "quantity": [i % 4 for i in range(40)],
        "status": ["ok", "failed"] * 20,
    }
)
KEYED = {"time": "ts", "key": "user"}


def assert_same(expected: pa.Table, found: pa.Table) -> None:
    """The same rows, in any order."""
    assert expected.schema.names == found.schema.names
    one, other = (
        sorted((list(row.values()) for row in rows_of(table)), key=repr) for table in (expected, found)
    )
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert all(map(same, a, b)), (a, b)


def renamed(rows: pa.Table, **names: str) -> pa.Table:
    return pa.table([rows[name] for name in names], list(names.values()))


@pytest.mark.parametrize(
    ("source", "window"),
    [
        ("TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL '1' MINUTE))", wr.tumbling("1 minute")),
        ("TUMBLE(trades, ts, INTERVAL '1 minute', INTERVAL '5 seconds')", wr.tumbling("1 minute", offset="5 seconds")),
        ("TABLE(TUMBLE(DATA => TABLE trades, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' MINUTES))", wr.tumbling("10 minutes")),
        ("HOP(trades, ts, INTERVAL '1' MINUTE, INTERVAL '3' MINUTES)", wr.sliding("3 minutes", every="1 minute")),
        ("CUMULATE(trades, ts, INTERVAL '1' MINUTE, INTERVAL '3' MINUTES)", wr.cumulate("3 minutes", step="1 minute")),
        ("TABLE(SESSION(TABLE trades PARTITION BY user, DESCRIPTOR(ts), INTERVAL '50' SECONDS))", wr.session("50 seconds")),
        ("sliding(trades, ts, '2 minutes', every => '1 minute')", wr.sliding("2 minutes", every="1 minute")),
        ("threshold(trades, ts, price > 2 and status = 'ok')", wr.threshold("price > 2 and status = 'ok'")),
        ("tumbling(trades, ts, rows => 3)", wr.tumbling(rows=3)),
        ("calendar(trades, ts, '1 day')", wr.calendar("1 day")),
    ],
)  # fmt: skip
def test_a_window_of_a_table_is_the_window_of_a_query(source: str, window: Any) -> None:
    text = f"SELECT user, window_start, window_end, count(*) AS n, sum(price * quantity) FILTER (WHERE status = 'ok') AS total FROM {source}"
    query = wr.query(
        **KEYED,
        windows={"w": window},
        aggregates={"n": wr.count(), "total": wr.sum(wr.expr("price * quantity"), where="status = 'ok'")},
    )
    names = {"user": "user", "start": "window_start", "end": "window_end", "n": "n", "total": "total"}
    expected = renamed(query.run(TRADES), **names)
    assert_same(expected, wr.sql(text + " GROUP BY user, window_start, window_end", trades=TRADES))
    assert_same(expected, wr.sql(text, trades=TRADES))


@pytest.mark.parametrize(
    ("call", "aggregate"),
    [
        ("avg(price)", wr.mean("price")),
        ("count(price)", wr.count("price")),
        ("count(DISTINCT status)", wr.distinct("status")),
        ("percentile(price, 0.9)", wr.quantile("price", 0.9)),
        ("max_by(status, price)", wr.argmax("status", by="price")),
        ("string_agg(status, ',')", wr.concat("status", separator=",")),
        ("stddev_pop(price)", wr.stddev("price", ddof=0)),
        ("corr(price, quantity)", wr.correlation("price", "quantity")),
        ("quantile(price, 0.5, interpolation => 'lower')", wr.quantile("price", 0.5, interpolation="lower")),
        (
            "weighted_mean(price, weight => quantity + 1)",
            wr.weighted_mean("price", weight=wr.col("quantity") + 1),
        ),
    ],
)
def test_an_aggregate_is_that_of_a_query(call: str, aggregate: Any) -> None:
    query = wr.query(**KEYED, windows={"w": wr.tumbling("5 minutes")}, aggregates={"a": aggregate})
    expected = renamed(query.run(TRADES), user="user", start="window_start", a="a")
    text = (
        f"SELECT user, window_start, {call} AS a FROM TUMBLE(trades, ts, INTERVAL '5' MINUTES) GROUP BY user"
    )
    assert_same(expected, wr.sql(text, trades=TRADES))


@given(least=st.integers(0, 3), more=st.integers(0, 5), minutes=st.sampled_from([1, 2, 5]))
def test_filters_groups_and_having_are_those_of_duckdb(least: int, more: int, minutes: int) -> None:
    said = (
        "SELECT upper({user}) AS who, window_start, count(*) AS n, sum(price) / count(*) AS rate, "
        f"max(quantity) FILTER (WHERE status = 'ok') AS most FROM {{source}} WHERE quantity >= {least} "
        f"GROUP BY upper({{user}}), window_start HAVING count(*) * 2 > {more}"
    )
    source = f"TUMBLE(trades, ts, INTERVAL '{minutes}' MINUTES)"
    trades = TRADES  # noqa: F841 - DuckDB finds it by its name
    bucket = f"(SELECT *, time_bucket(INTERVAL '{minutes} minutes', ts) AS window_start FROM trades)"
    expected = duckdb.sql(said.format(user='"user"', source=bucket)).to_arrow_table()
    found = wr.sql(said.format(user="user", source=source), trades=TRADES)
    assert_same(expected.cast(found.schema), found)


def test_several_statements_share_one_pass_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    run = wr.Query.run
    monkeypatch.setattr(wr.Query, "run", lambda self, *a, **k: passes.append(self) or run(self, *a, **k))
    text = (
        "SELECT user, max(price) AS m FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY user;"
        "SELECT user, count(*) AS n FROM HOP(trades, ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTES) GROUP BY user;"
        "SELECT count(*) AS n FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)"
    )
    first, second, third = wr.sql(text, trades=TRADES)
    assert [len(each.windows) for each in passes] == [2, 1]
    assert first.column_names == ["user", "m"]
    assert second.column_names == ["user", "n"]
    assert sum(third["n"].to_pylist()) == len(TRADES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT sum(prise) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "line 1, column 12: there is no column 'prise'; did you mean 'price'"),
        ("SELECT\n summ(price)\nFROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "line 2, column 2: there is no function 'summ'; did you mean 'sum'"),
        ("SELECT count(*)\nFROM TUMBEL(trades, ts, INTERVAL '1' MINUTE)", "line 2, column 6: there is no window 'tumbel'; did you mean 'tumble'"),
        ("SELECT price, count(*) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY user", "'price' is no aggregate: put it into GROUP BY"),
        ("SELECT count(*) FROM trades", "a window of a table is needed"),
        ("SELECT count(*) FROM TUMBLE(trade, ts, INTERVAL '1' MINUTE)", "there is no table 'trade'; did you mean 'trades'"),
        ("SELECT count(*) FROM TUMBLE(trades, ts)", "tumble takes a table, its time, and then size, offset"),
        ("SELECT count(*) FROM TUMBLE(trades, ts, INTERVAL '0' MINUTES)", "must be"),
        ("SELECT count(* FROM TUMBLE(trades", "not SQL that windrow can read: line 1"),
        ("SELECT * FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "name the columns"),
        ("SELECT count(*) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) ORDER BY 1", "ORDER BY is not possible"),
        ("SELECT count(*) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) WHERE sum(price) > 1", "the aggregate 'sum' cannot stand here"),
        ("SELECT count(*) AS a, max(price) AS a FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "two columns are called 'a'"),
        ("SELECT quantile(price) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "quantile takes column, q, interpolation"),
        ("SELECT sum(DISTINCT price) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "DISTINCT is possible in count only"),
        ("DELETE FROM trades", "SELECT .. FROM a window of a table, and nothing else"),
        ("SELECT count(*) FROM TABLE(SESSION(TABLE trades PARTITION BY user, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY status", "PARTITION BY user needs user in GROUP BY"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY user WITH ROLLUP", "ROLLUP is not possible"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY ALL", "GROUP BY ALL is not possible"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY CUBE(user)", "'CUBE (user)' in"),
        ("SELECT count(*) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) TABLESAMPLE (10 PERCENT)", "column 75: TABLESAMPLE is not possible"),
        ("SELECT count(*) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) PIVOT (sum(x) FOR k IN ('a'))", "PIVOT is not possible"),
        ("SELECT count(*) FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) LATERAL VIEW explode(x) y AS z", "LATERAL VIEW is not possible"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) SORT BY user", "column 66: SORT BY is not possible"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) CLUSTER BY user", "CLUSTER BY is not possible"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) DISTRIBUTE BY user", "DISTRIBUTE BY is not possible"),
        ("SELECT user INTO z FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "line 1, column 18: INTO is not possible"),
        ("SELECT AS STRUCT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "SELECT AS is not possible"),
        ("SELECT a FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) AS w(a, b)", "AS with names of columns is not possible"),
        ("SELECT user FROM (TUMBLE(trades, ts, INTERVAL '1' MINUTE)) TABLESAMPLE (10 PERCENT)", "TABLESAMPLE is not possible"),
        ("SELECT user FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) LIMIT 3", "LIMIT is not possible"),
        ("SELECT sum(" + " + ".join(["price"] * 400) + ") FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)", "is nested too deeply"),
        (" ", "SQL is a text"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(wr.QueryError) as caught:
        wr.sql(text, trades=TRADES)
    assert said in str(caught.value)


def test_identifiers_are_names_whatever_is_in_them() -> None:
    odd = pa.table({"ts": [1, 2, 7], "a` + (b": [1, 2, 3], "select": ["x", "y", "x"]})
    text = "SELECT `select`, sum(`a`` + (b` * 2) AS `a ``sum` FROM TUMBLE(odd, ts, 10) GROUP BY `select`"
    assert wr.sql(text, odd=odd).to_pylist() == [{"select": "x", "a `sum": 8}, {"select": "y", "a `sum": 4}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("string_agg(status, ',')", "string_agg(status, ';')"),
        ("covar_pop(price, quantity)", "covar_samp(price, quantity)"),
        ("quantile(price, 0.3)", "quantile(price, 0.30000001)"),
        ("kll_quantile(price, 0.3)", "kll_quantile(price, 0.30000001)"),
        ("tdigest_quantile(price, 0.3)", "tdigest_quantile(price, 0.30000001)"),
        ("bloom_filter(status, capacity => 9, error => 0.3)", "bloom_filter(status, capacity => 9, error => 0.30000001)"),
        ("histogram(price, low => 0, high => 3, bins => 2)", "histogram(price, low => 0, high => 3.0000001, bins => 2)"),
    ],
)  # fmt: skip
def test_aggregates_that_differ_a_little_are_two(one: str, other: str) -> None:
    source = "FROM TUMBLE(trades, ts, INTERVAL '5' MINUTES)"
    together = statements(f"SELECT {one} AS a, {other} AS b, {one} AS c {source}")
    (a, first), (b, second) = together[0].aggregates
    assert a != b
    assert first != second
    assert [str(tree) for _, tree in together[0].items] == [str(Column(name)) for name in (a, b, a)]
    apart = statements(f"SELECT {one} AS a {source}; SELECT {other} AS a {source}")
    assert [each.aggregates for each in apart] == [((a, first),), ((b, second),)]


def test_texts_are_joined_by_the_separator_of_each_call() -> None:
    text = "SELECT string_agg(status, ',') AS a, string_agg(status, ';') AS b FROM TUMBLE(trades, ts, INTERVAL '1' DAY)"
    first = wr.sql(text, trades=TRADES.slice(0, 3)).to_pylist()[0]
    assert (first["a"], first["b"]) == ("ok,failed,ok", "ok;failed;ok")
    apart = "; ".join(
        f"SELECT string_agg(status, '{by}') AS a FROM TUMBLE(trades, ts, INTERVAL '1' DAY)" for by in ",;"
    )
    assert [each["a"][0].as_py() for each in wr.sql(apart, trades=TRADES.slice(0, 3))] == [
        "ok,failed,ok",
        "ok;failed;ok",
    ]


def test_what_can_be_read_once_is_read_for_all_statements() -> None:
    text = (
        "SELECT user, count(*) AS n FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE) GROUP BY user;"
        "SELECT count(*) AS n FROM TUMBLE(trades, ts, INTERVAL '1' MINUTE)"
    )
    for events in (iter(TRADES.to_batches(max_chunksize=9)), TRADES.to_reader()):
        assert [sum(each["n"].to_pylist()) for each in wr.sql(text, trades=events)] == [len(TRADES)] * 2
