"""What tables of a lakehouse share: which rows a micro-batch takes away and which it adds, and in which types.

changes        insert a   update a   insert b   update b   delete b
taken away     a  b                            all rows of identities that are updated or deleted
added          a, as the update has it         in their order, behind the last update or delete of their identity
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import QueryError
from windrow.pipelines.spec import IDENTITY
from windrow.pipelines.upsert import Changes
from windrow.spark.results import conformed

# No identity is taken away.
NOTHING = pa.array([], pa.string())


def replaced(changes: Changes) -> pa.Array:
    """The identities whose rows in the table are taken away, each once."""
    rows = changes.rows
    return rows.filter(pc.not_equal(rows["op"], "insert"))[IDENTITY].unique()


def remaining(changes: Changes) -> pa.Table:
    """The rows that are added, without their `op`."""
    rows = changes.rows.combine_chunks()
    number = rows[IDENTITY].combine_chunks().dictionary_encode().indices.to_numpy()
    place, op = np.arange(len(rows)), rows["op"]
    last = np.zeros(len(rows), np.int64)
    changed = pc.not_equal(op, "insert").to_numpy()
    np.maximum.at(last, number[changed], place[changed])
    stays = pc.not_equal(op, "delete").to_numpy() & (place >= last[number])
    return rows.filter(pa.array(stays)).drop_columns(["op"])


def storable(schema: pa.Schema) -> pa.Schema:
    """The same columns in types that such tables keep: instants are those of UTC, and any value may be lacking."""
    return pa.schema([(field.name, _storable(field.name, field.type)) for field in schema])


def _storable(name: str, type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", "UTC" if type_.tz else None)
    if pa.types.is_duration(type_) or pa.types.is_interval(type_) or pa.types.is_time(type_):
        raise QueryError(
            f"column {name!r} is of type {type_}, for which tables of a lakehouse have no type: cast it"
        )
    if pa.types.is_struct(type_):
        return pa.struct([(part.name, _storable(name, part.type)) for part in type_])
    if pa.types.is_list(type_):
        return pa.list_(_storable(name, type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(_storable(name, type_.key_type), _storable(name, type_.item_type))
    return type_


def fitted(rows: pa.Table, schema: pa.Schema, *, table: str) -> pa.Table:
    """The rows in the columns of a table that is there; those that it has and the rows have not are null."""
    lacking = [name for name in rows.column_names if name not in schema.names]
    if lacking:
        raise QueryError(
            f"table {table!r} is there and has no column {', '.join(lacking)}: it is of another query, or of an "
            "earlier form of this one; add what is lacking, or name a table that is not there yet"
        )
    return pa.Table.from_batches(conformed(rows, schema), schema)
