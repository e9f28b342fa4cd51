"""Windows into a table that can be changed, each micro-batch exactly once.

    micro-batch 7   insert a   insert b                 table   a b          batch 7
    micro-batch 8   update a   delete b   insert c      table   a' c         batch 8
    micro-batch 8   (again, after a crash)              table   a' c         batch 8: nothing is done

A changelog names rows by identity (key, window, start, end): `insert` adds a row, `update` replaces it, `delete` takes away
all rows of the identity. A target applies a whole micro-batch and the note that it did so in one transaction. Spark runs a
micro-batch again if it does not know that it has ended; the note tells. Micro-batches of another checkpoint, whose numbers mean
other rows, are refused.

Windows are small beside their events: those of a micro-batch come to the driver, as Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, VariantType

from windrow.errors import QueryError, StateError
from windrow.pipelines.identity import as_json, identity_columns, require_windows
from windrow.pipelines.spec import IDENTITY, SIDE
from windrow.spark.schema import named
from windrow.spec import QuerySpec

# Values that have parts travel as JSON.
NESTED = (ArrayType, MapType, StructType, VariantType)


@dataclass(frozen=True)
class Batch:
    """A micro-batch of a stream: its number, and the checkpoint whose numbering it is."""

    stream: str
    number: int
    checkpoint: str

    def follows(self, last: int | None, checkpoint: str | None, *, gaps: bool = False) -> bool:
        """Whether it is to be applied behind the batch that was applied last; an error if it cannot follow it.

        `gaps` says that batches without changes leave no note.
        """
        if last is None:
            return True
        foreign = checkpoint != self.checkpoint
        if foreign or self.number < last or (self.number > last + 1 and not gaps):
            whose = " of another checkpoint" if foreign else ""
            raise StateError(
                f"stream {self.stream!r} has applied micro-batches up to {last}, and this is micro-batch {self.number}"
                f"{whose}: go on from the checkpoint that belongs to the table, or "
                "give the stream and the table new names"
            )
        return self.number > last


@dataclass(frozen=True)
class Changes:
    """What a micro-batch changes: `rows` of windows in order, with `identity` and `op`; `sides` are late and bad rows."""

    rows: pa.Table
    sides: pa.Table | None
    types: dict[str, DataType]


class Target(Protocol):
    """A table that takes micro-batches of changes; `as_text` if values with parts are to be JSON, and bytes hexadecimal."""

    as_text: ClassVar[bool]

    def apply(self, batch: Batch, changes: Changes) -> None:
        """Apply the changes and note the batch, both or neither; do nothing if the batch was applied before."""


@dataclass(frozen=True)
class Upsert:
    """A function for `foreachBatch` that writes changes of windows into a target."""

    query: QuerySpec
    target: Target
    stream: str

    def __call__(self, df: DataFrame, number: int) -> None:
        require_windows(df, self.query)
        checkpoint = _checkpoint(df)
        # One action: each further one would run the micro-batch again.
        table = self._selected(df).toArrow()
        sides = None
        if "side" in df.columns:
            is_side = pc.is_valid(table["side"])
            sides = table.filter(is_side).select(SIDE)
            table = table.filter(pc.invert(is_side)).drop_columns(list(SIDE))
        types = {field.name: field.dataType for field in df.schema}
        self.target.apply(Batch(self.stream, number, checkpoint), Changes(table, sides, types))

    def _selected(self, df: DataFrame) -> DataFrame:
        """All columns as a database can read them, and what identifies each row."""
        columns = []
        for field in df.schema:
            column = named(field.name)
            if self.target.as_text and isinstance(field.dataType, NESTED):
                column = sf.to_json(column)
            elif self.target.as_text and isinstance(field.dataType, BinaryType):
                column = sf.concat(sf.lit("\\x"), sf.hex(column))
            columns.append(column.alias(field.name))
        if "op" not in df.columns:
            columns.append(sf.lit("insert").alias("op"))
        identity = sf.substring(sf.sha2(as_json(identity_columns(self.query)), 256), 1, 32)
        return df.select(*columns, identity.alias(IDENTITY))


def upsert(query: QuerySpec, target: Target, *, stream: str) -> Upsert:
    """The function for `writeStream.foreachBatch` that keeps a table equal to the windows of a query.

    Late and bad rows, which `side_rows=True` adds to the windows, go to a table of their own.

    Parameters
    ----------
    query
        The query whose windows are written.
    target
        The table: `Postgres`, `Delta`, `Iceberg`, or one of your own.
    stream
        The name of this stream in the target's notes of what was applied.

    Returns
    -------
    Upsert
        A function of a micro-batch and its number, which applies each micro-batch once.

    Examples
    --------
    >>> import windrow as wr
    >>> from windrow.pipelines.postgres import Postgres
    >>> q = wr.query(time="ts", key="user", windows={"w": wr.tumbling("1 minute")}, aggregates={"n": wr.count()})
    >>> totals = upsert(q, Postgres("dbname=shop", table="totals"), stream="orders")
    >>> def start(windows):
    ...     return windows.writeStream.foreachBatch(totals).option("checkpointLocation", "state/").start()
    """
    return Upsert(query, target, stream)


def _checkpoint(df: DataFrame) -> str:
    """The id that Spark keeps in the checkpoint of the stream that calls."""
    try:
        context = df.sparkSession.sparkContext
    except PySparkAttributeError:
        raise QueryError(
            "Spark Connect does not tell to which checkpoint a micro-batch belongs, so none can be applied exactly once: "
            "run the stream in a session of its own (windrow pipeline --master, or spark-submit)"
        ) from None
    found = context.getLocalProperty("sql.streaming.queryId")
    if found is None:
        raise QueryError("only a stream can be applied: give this function to writeStream.foreachBatch")
    return found
