"""A Delta table that follows a stream of windows, without a jar: `deltalake` writes it.

One commit per micro-batch that has changes, and in the same commit the number of the micro-batch, as the log of a Delta table has it
for such writers: a transaction of the application (`txn`). It says what was applied last, also to whoever restores the table.

    {"txn": {"appId": "orders", "version": 8}}     {"add": ...}     {"remove": ...}

Late and bad rows have a table of their own, whose name ends in `_side`, and whose log says the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from windrow.pipelines.lakehouse import NOTHING, fitted, remaining, replaced, storable
from windrow.pipelines.spec import IDENTITY
from windrow.pipelines.upsert import Batch, Changes


@dataclass(frozen=True)
class Delta:
    """A Delta table, made by the first micro-batch that has windows.

    Parameters
    ----------
    location
        The folder of the table, or its address in a store of objects.
    options
        How to get there (`storage_options` of `deltalake`): region, credentials, and what else a store of objects asks.

    Examples
    --------
    >>> Delta("s3://lake/totals", options={"AWS_REGION": "eu-central-1"}).location
    's3://lake/totals'
    """

    location: str
    options: Mapping[str, str] = field(default_factory=dict)

    as_text: ClassVar[bool] = False

    def apply(self, batch: Batch, changes: Changes) -> None:
        """Apply the changes and note the batch in one commit; nothing if it was applied before."""
        if changes.sides is not None:
            self._commit(self.location.rstrip("/") + "_side", batch, changes.sides, NOTHING)
        self._commit(self.location, batch, remaining(changes), replaced(changes))

    def _commit(self, location: str, batch: Batch, added: pa.Table, away: pa.Array) -> None:
        if not len(added) and not len(away):
            return
        options = dict(self.options)
        if not DeltaTable.is_deltatable(location, storage_options=options):
            DeltaTable.create(location, storable(added.schema), mode="ignore", storage_options=options)
        table = DeltaTable(location, storage_options=options)
        # The second is there to find out that the first is of another checkpoint.
        noted = [batch.stream, f"{batch.stream} {batch.checkpoint}"]
        last, mine = map(table.transaction_version, noted)
        checkpoint = batch.checkpoint if mine is not None else None
        if not batch.follows(last, checkpoint, gaps=True):
            return
        commit = CommitProperties(app_transactions=[Transaction(name, batch.number) for name in noted])
        added = fitted(added, pa.schema(table.schema()), table=location)
        if not len(away):
            write_deltalake(table, added, mode="append", storage_options=options, commit_properties=commit)
        else:
            _merge(table, added, away, commit)


def _merge(table: DeltaTable, added: pa.Table, away: pa.Array, commit: CommitProperties) -> None:
    """Take rows away and add others in one commit: those to be added match nothing."""
    gone = pa.table({IDENTITY: pa.chunked_array(away), REPLACED: [True] * len(away)})
    rows = pa.concat_tables(
        [gone, added.append_column(REPLACED, pa.array([False] * len(added)))], promote_options="default"
    )
    merge = table.merge(
        rows,
        f"source.`{REPLACED}` AND target.`{IDENTITY}` = source.`{IDENTITY}`",
        source_alias="source",
        target_alias="target",
        commit_properties=commit,
    )
    values = {f"`{name}`": f"source.`{name}`" for name in added.column_names}
    merge.when_matched_delete().when_not_matched_insert(values, f"NOT source.`{REPLACED}`").execute()


REPLACED = "windrow replaced"
