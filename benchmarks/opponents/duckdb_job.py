"""The batch job in DuckDB.

SQL has no sliding window aggregate, so a row has to meet each of its 60 windows: directly by a join
with the 60 offsets, or hand-sliced to seconds first. Slices can then be joined with the offsets, or laid on a
grid of all keys and seconds for a window frame of 60 rows, which is faster.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from benchmarks.opponents import BOTH, SLIDING, TUMBLING, Form

TUMBLE = """
    SELECT key, date_trunc('minute', ts) AS start, sum(value)::BIGINT AS total, max(value) AS top
    FROM events GROUP BY ALL
"""
TUMBLE_BUCKETS = """
    SELECT key, time_bucket(INTERVAL 60 SECONDS, ts) AS start, sum(value)::BIGINT AS total, max(value) AS top
    FROM events GROUP BY ALL
"""
SLIDE = """
    SELECT key, epoch_ms(ts) // 1000 - o.range AS second, sum(value)::BIGINT AS total, max(value) AS top
    FROM events, range(60) AS o GROUP BY ALL
"""
MAKE_SLICES = """
    CREATE OR REPLACE TEMP TABLE slices AS
    SELECT key, epoch_ms(ts) // 1000 AS second, sum(value)::BIGINT AS part, max(value) AS most
    FROM events GROUP BY ALL
"""
TUMBLE_SLICES = """
    SELECT key, second // 60 * 60 AS second, sum(part)::BIGINT AS total, max(most) AS top
    FROM slices GROUP BY ALL
"""
SLIDE_SLICES_BY_JOIN = """
    SELECT key, second - o.range AS second, sum(part)::BIGINT AS total, max(most) AS top
    FROM slices, range(60) AS o GROUP BY ALL
"""
SLIDE_SLICES_BY_FRAME = """
    WITH bounds AS (SELECT min(second) - 59 AS low, max(second) + 1 AS high FROM slices),
    grid AS (
        SELECT key, unnest(range(low, high)) AS second
        FROM (SELECT DISTINCT key FROM slices), bounds
    )
    SELECT key, second, (sum(part) OVER minute)::BIGINT AS total, max(most) OVER minute AS top
    FROM grid LEFT JOIN slices USING (key, second)
    WINDOW minute AS (PARTITION BY key ORDER BY second ROWS BETWEEN CURRENT ROW AND 59 FOLLOWING)
    QUALIFY total IS NOT NULL
"""

Connection = duckdb.DuckDBPyConnection


def load(events: pa.Table, threads: int) -> Connection:
    """A database in memory with the events in a table of its own kind."""
    connection = duckdb.connect(config={"threads": threads})
    connection.register("arrow_events", events)
    connection.execute("CREATE TABLE events AS SELECT * FROM arrow_events")
    return connection


def to_arrow(result: pa.Table) -> pa.Table:
    """With `start` for those forms that count in seconds."""
    if "second" not in result.column_names:
        return result
    milliseconds = pa.array(result["second"].to_numpy() * 1_000).cast(pa.timestamp("ms"))
    return result.drop_columns("second").append_column("start", milliseconds)


def ask(connection: Connection, *queries: str) -> list[pa.Table]:
    return [connection.sql(query).to_arrow_table() for query in queries]


def ask_slices(connection: Connection, *queries: str) -> list[pa.Table]:
    connection.execute(MAKE_SLICES)
    return ask(connection, *queries)


FORMS = (
    Form(TUMBLING, "date_trunc, GROUP BY", lambda c: ask(c, TUMBLE)),
    Form(TUMBLING, "time_bucket, GROUP BY", lambda c: ask(c, TUMBLE_BUCKETS)),
    Form(SLIDING, "join with offsets, GROUP BY", lambda c: ask(c, SLIDE)),
    Form(SLIDING, "hand-sliced, join", lambda c: ask_slices(c, SLIDE_SLICES_BY_JOIN), hand_sliced=True),
    Form(SLIDING, "hand-sliced, frame", lambda c: ask_slices(c, SLIDE_SLICES_BY_FRAME), hand_sliced=True),
    Form(
        BOTH,
        "hand-sliced once, frame",
        lambda c: ask_slices(c, TUMBLE_SLICES, SLIDE_SLICES_BY_FRAME),
        hand_sliced=True,
    ),
)
