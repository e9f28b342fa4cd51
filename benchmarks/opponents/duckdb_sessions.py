"""A session in DuckDB.

Sessions are numbered by a running sum over the events that come too long after the one before. The
form that trusts the order of the table leaves out what SQL demands, and is faster for it.
"""

from __future__ import annotations

from benchmarks.opponents import SESSION, Form
from benchmarks.opponents.duckdb_job import ask, load, to_arrow

__all__ = ["FORMS", "load", "to_arrow"]


def sessions(order: str) -> str:
    return f"""
        WITH marked AS (
            SELECT ts, value, coalesce(ts - lag(ts) OVER ({order}) > INTERVAL 1 SECOND, false) AS new
            FROM events
        ),
        numbered AS (
            SELECT ts, value, sum(new::INT) OVER ({order} ROWS UNBOUNDED PRECEDING) AS session FROM marked
        )
        SELECT min(ts) AS start, max(ts) + INTERVAL 1 SECOND AS "end", sum(value)::BIGINT AS total
        FROM numbered GROUP BY session
    """


FORMS = (
    Form(SESSION, "window functions, GROUP BY", lambda c: ask(c, sessions("ORDER BY ts"))),
    Form(SESSION, "the same in the order of the table", lambda c: ask(c, sessions(""))),
)
