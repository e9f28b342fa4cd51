"""What a row of windows is known by: its key, the window's name, start and end.

Both as columns and as one JSON text, which is the same for the same row in every run, session and time zone: a reader of
a topic, or a table, can tell a row that came twice from two rows. The end belongs to it: cumulated windows share a start.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from windrow.errors import QueryError
from windrow.spark.schema import named
from windrow.spec import QuerySpec

# Nulls are written, so that all rows have the same fields.
JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}


def identity_columns(query: QuerySpec) -> tuple[str, ...]:
    """The columns that tell one row of a query's windows from all others."""
    return (*query.key, "window", "start", "end")


def require_windows(df: DataFrame, query: QuerySpec) -> None:
    """An error unless the columns are those of the query's windows."""
    lacking = [name for name in (*identity_columns(query), *query.aggregates) if name not in df.columns]
    if lacking:
        raise QueryError(
            f"these are not the windows of the query: there is no column {', '.join(lacking)}; "
            "give what query.on_spark returned"
        )


def as_json(names: tuple[str, ...] | list[str]) -> Column:
    """These columns as one JSON text."""
    return sf.to_json(sf.struct(*[named(name).alias(name) for name in names]), JSON)
