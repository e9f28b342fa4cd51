"""Flights over sliding hours in DuckDB.

SQL has no windows for rows that last: a flight has to meet each of its windows. Here it lists those that it overlaps. A
join of flights and windows on two inequalities says the same, but took hundreds of times as long, and is left out.
"""

from __future__ import annotations

from benchmarks.opponents import IN_THE_AIR, Form
from benchmarks.opponents.duckdb_job import ask, load, to_arrow

__all__ = ["FORMS", "load", "to_arrow"]

ROWS = "count(*) AS flights, sum(minutes)::BIGINT AS minutes, max(minutes) AS longest"
UNNEST = f"""
    SELECT origin, make_timestamp_ms(900000 * number) AS start, {ROWS}
    FROM (
        SELECT origin, minutes, unnest(range(
            (epoch_ms(departed) - 3600000) // 900000 + 1, (epoch_ms(landed) - 1) // 900000 + 1
        )) AS number
        FROM events
    )
    GROUP BY ALL
"""


FORMS = (Form(IN_THE_AIR, "unnest, GROUP BY", lambda c: ask(c, UNNEST)),)
