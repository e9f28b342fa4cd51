"""A table in PostgreSQL that follows a stream of windows.

One transaction per micro-batch:

    lock the stream's line in windrow_batches      applied before? then there is nothing to do
    COPY the changes into a temporary table        columns, not rows: Arrow writes the CSV
    DELETE what they replace, INSERT what remains  by identity
    note the batch                                 and commit

The table is made if it is not there: the columns of the windows, and `identity`, a hash of what identifies a row, which has
the index. `revision` is kept in update mode, `op` is not: a row that is there was not deleted.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql
from pyspark.sql.types import BinaryType, DataType, DecimalType

from windrow.errors import QueryError
from windrow.pipelines.spec import IDENTITY, ORDER
from windrow.pipelines.upsert import NESTED, Batch, Changes

# A row without a text is null, and one with an empty text is not: all that is there is in quotes.
CSV = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
TYPES = {
    "string": "text",
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
SIDES = {"side": "text", "side_reason": "text", "side_row": "jsonb"}


@dataclass(frozen=True)
class Postgres:
    """A table of PostgreSQL, made by the first micro-batch.

    Parameters
    ----------
    dsn
        Where the database is, as libpq reads it; passwords better come from its own files.
    table
        The name of the table, with or without a schema.

    Examples
    --------
    >>> Postgres("host=db dbname=shop", table="reports.totals").table
    'reports.totals'
    """

    dsn: str
    table: str

    as_text: ClassVar[bool] = True

    def apply(self, batch: Batch, changes: Changes) -> None:
        """Apply the changes and note the batch in one transaction; nothing if it was applied before."""
        with psycopg.connect(self.dsn) as connection, connection.transaction():
            if not _is_new(connection, batch):
                return
            columns = _columns(changes)
            self._make(connection, columns)
            _copy(connection, columns, changes.rows)
            for statement in (REPLACED, REMAINING):
                connection.execute(_filled(statement, self._name(), columns))
            if changes.sides is not None:
                self._add_sides(connection, changes.sides)
            _note(connection, batch)

    def _name(self, ending: str = "") -> sql.Identifier:
        *schema, table = self.table.split(".")
        return sql.Identifier(*schema, table + ending)

    def _make(self, connection: psycopg.Connection[Any], columns: Mapping[str, str]) -> None:
        stored = {name: kind for name, kind in columns.items() if name != "op"}
        made = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self._name().as_string(connection)],
        ).fetchall()
        if not made:
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self._name(), _declared(stored)))
            index = sql.SQL("CREATE INDEX ON {} ({})")
            connection.execute(index.format(self._name(), sql.Identifier(IDENTITY)))
        lacking = [name for name in stored if made and (name,) not in made]
        if lacking:
            raise QueryError(
                f"table {self.table!r} is there and has no column {', '.join(lacking)}: it is of another query, or of an "
                "earlier form of this one; add what is lacking, or name a table that is not there yet"
            )

    def _add_sides(self, connection: psycopg.Connection[Any], sides: pa.Table) -> None:
        table = self._name("_side")
        connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(table, _declared(SIDES)))
        _stream(connection, table, SIDES, sides)


# Names in braces are filled in: the table, its columns, and what identifies a change.
REPLACED = """
DELETE FROM {table} USING (SELECT DISTINCT {identity} FROM changes WHERE op <> 'insert') AS replaced
WHERE {table}.{identity} = replaced.{identity}
"""
# Of the changes of one row, those behind its last update or delete count, and that update itself.
REMAINING = """
INSERT INTO {table} ({columns}) SELECT {columns} FROM (
    SELECT *, max({order}) FILTER (WHERE op <> 'insert') OVER (PARTITION BY {identity}) AS last FROM changes
) AS numbered
WHERE op <> 'delete' AND {order} >= coalesce(last, 0)
ORDER BY {order}
"""


def _filled(statement: str, table: sql.Identifier, columns: Mapping[str, str]) -> sql.Composed:
    names = sql.SQL(", ").join([sql.Identifier(name) for name in columns if name != "op"])
    identity, order = sql.Identifier(IDENTITY), sql.Identifier(ORDER)
    # Our own text, with braces alone to be filled.
    return sql.SQL(statement).format(table=table, columns=names, identity=identity, order=order)


def _columns(changes: Changes) -> dict[str, str]:
    """The columns of the changes and their types in the database."""
    known = {
        **{name: _type(name, kind) for name, kind in changes.types.items()},
        "op": "text",
        IDENTITY: "uuid",
    }
    return {name: known[name] for name in changes.rows.column_names}


def _type(name: str, kind: DataType) -> str:
    if isinstance(kind, NESTED):
        return "jsonb"
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision}, {kind.scale})"
    if isinstance(kind, BinaryType):
        return "bytea"
    found = TYPES.get(kind.simpleString())
    if found is None:
        raise QueryError(
            f"column {name!r} is of type {kind.simpleString()}, for which PostgreSQL has no type: cast it"
        )
    return found


def _declared(columns: Mapping[str, str]) -> sql.Composed:
    lines = [sql.SQL("{} ").format(sql.Identifier(name)) + sql.SQL(kind) for name, kind in columns.items()]
    return sql.SQL(", ").join(lines)


def _copy(connection: psycopg.Connection[Any], columns: Mapping[str, str], rows: pa.Table) -> None:
    """The changes as a temporary table, numbered in their order."""
    declared = _declared({**columns, ORDER: "bigint"})
    connection.execute(sql.SQL("CREATE TEMPORARY TABLE changes ({}) ON COMMIT DROP").format(declared))
    numbered = rows.append_column(ORDER, pa.array(np.arange(len(rows))))
    _stream(connection, sql.Identifier("changes"), {**columns, ORDER: "bigint"}, numbered)


def _stream(
    connection: psycopg.Connection[Any], table: sql.Identifier, columns: Mapping[str, str], rows: pa.Table
) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(table, names)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for part in rows.select(list(columns)).to_batches():
            written = io.BytesIO()
            pa.csv.write_csv(part, written, CSV)
            copy.write(written.getbuffer())


def _is_new(connection: psycopg.Connection[Any], batch: Batch) -> bool:
    """Whether the batch is still to be applied; the stream's line stays locked until the transaction ends."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS windrow_batches (stream text PRIMARY KEY, batch bigint, checkpoint text)"
    )
    connection.execute(
        "INSERT INTO windrow_batches (stream) VALUES (%s) ON CONFLICT DO NOTHING", [batch.stream]
    )
    line = "SELECT batch, checkpoint FROM windrow_batches WHERE stream = %s FOR UPDATE"
    found = connection.execute(line, [batch.stream]).fetchone()
    assert found is not None
    return batch.follows(*found)


def _note(connection: psycopg.Connection[Any], batch: Batch) -> None:
    connection.execute(
        "UPDATE windrow_batches SET batch = %s, checkpoint = %s WHERE stream = %s",
        [batch.number, batch.checkpoint, batch.stream],
    )
