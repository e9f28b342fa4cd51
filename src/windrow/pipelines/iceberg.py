"""An Iceberg table that follows a stream of windows, without a jar: `pyiceberg` writes it.

One transaction of the catalog per micro-batch that has changes: snapshots that take rows away and add others, and the number of the
micro-batch, as a property of the table. The snapshots say it, too, for readers of the history.

    windrow.orders = "8 5a1c.."      the last micro-batch of stream orders that was applied, and its checkpoint

Late and bad rows have a table of their own, whose name ends in `_side`, and whose properties say the same of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import In

from windrow.pipelines.lakehouse import NOTHING, fitted, remaining, replaced, storable
from windrow.pipelines.spec import IDENTITY
from windrow.pipelines.upsert import Batch, Changes

NOTED = "windrow."


@dataclass(frozen=True)
class Iceberg:
    """A table in a catalog of Iceberg, made by the first micro-batch that has windows.

    Parameters
    ----------
    table
        The name of the table, with its namespace, which is made as well.
    catalog
        The name of the catalog, as `pyiceberg` knows it from its file `.pyiceberg.yaml`; "default" by default.
    options
        Properties of the catalog, such as `uri` and `warehouse`, beside or in place of those in that file.

    Examples
    --------
    >>> Iceberg("shop.totals", options={"type": "rest", "uri": "http://127.0.0.1:8181"}).table
    'shop.totals'
    """

    table: str
    catalog: str = "default"
    options: Mapping[str, str] = field(default_factory=dict)

    as_text: ClassVar[bool] = False

    def apply(self, batch: Batch, changes: Changes) -> None:
        """Apply the changes and note the batch in one transaction; nothing if it was applied before."""
        catalog = load_catalog(self.catalog, **self.options)
        if changes.sides is not None:
            _commit(catalog, f"{self.table}_side", batch, changes.sides, NOTHING)
        _commit(catalog, self.table, batch, remaining(changes), replaced(changes))


def _commit(catalog: Catalog, name: str, batch: Batch, added: pa.Table, away: pa.Array) -> None:
    if not len(added) and not len(away):
        return
    if not catalog.table_exists(name):
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        catalog.create_table_if_not_exists(name, storable(added.schema))
    table = catalog.load_table(name)
    noted = table.properties.get(NOTED + batch.stream)
    last, checkpoint = noted.split() if noted else (None, None)
    if not batch.follows(None if last is None else int(last), checkpoint, gaps=True):
        return
    note = {NOTED + batch.stream: f"{batch.number} {batch.checkpoint}"}
    with table.transaction() as transaction:
        if len(away):
            gone = In(IDENTITY, away.to_pylist())  # type: ignore[call-arg, arg-type]  # typed as its fields are
            with warnings.catch_warnings():  # what came and went within the micro-batch was never there
                warnings.filterwarnings("ignore", "Delete operation did not match any records")
                transaction.delete(gone, snapshot_properties=note)
        if len(added):
            schema = table.schema().as_arrow()
            transaction.append(fitted(added, schema, table=name), snapshot_properties=note)
        transaction.set_properties(note)
