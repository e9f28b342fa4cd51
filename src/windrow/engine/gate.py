"""Early rows that wait for a condition: which windows have been given out, and what a row does to those before it.

The engines give out all that has changed, with each look. The gate lets a row pass if its condition holds or the window is final,
and numbers the rows that pass. It remembers windows that were given out and are not final; a window for which the condition has
never held costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import Keys
from windrow.engine.intake.predicates import Condition
from windrow.engine.results import CHANGES
from windrow.errors import StateError
from windrow.expressions.building import is_computed
from windrow.expressions.formula import Formula, evaluate
from windrow.planner.window_set import FEW
from windrow.triggers import When

# The column of revisions in a table of what was given out.
REVISION = CHANGES[1].name


class Gate:
    """The windows that were given out early, by their identity: key, window, start and end."""

    def __init__(self, trigger: When, results: pa.Schema) -> None:
        self._holds = _condition(trigger, results)
        fields = list(results)[: results.get_field_index("end") + 1]
        self._schema = pa.schema([f.with_type(_plain(f.type)) for f in fields])
        self._windows = Keys(self._schema)
        # By number: the revision of the last row, and -1 where there is none, or none that can still change.
        self._revision = np.empty(0, np.int64)

    def sift(self, rows: pa.Table) -> tuple[pa.Table, Callable[[], None]]:
        """The rows that pass, and what is to be called once they were given out."""
        final, deleted = _flags(rows["final"]), _flags(pc.equal(rows["op"], "delete"))
        asked = deleted | final | self._holds(rows)
        rows, final, deleted = rows.filter(pa.array(asked)), final[asked], deleted[asked]
        number = self._numbers(rows)
        before = self._revision[number]
        known = before >= 0
        # What replaces a row that is deleted in this call is inserted anew.
        anew = known & ~deleted & np.isin(number, number[deleted])
        ops = np.where(deleted, "delete", np.where(known & ~anew, "update", "insert"))
        revision = before + 1 + anew
        passes = known | ~deleted
        at = rows.schema.get_field_index("op")
        told = rows.set_column(at, rows.schema.field(at), pa.array(ops, pa.string()))
        told = told.set_column(at + 1, rows.schema.field(at + 1), pa.array(revision))

        def commit() -> None:
            self._revision[number[deleted]] = -1
            self._revision[number[~deleted]] = np.where(final, -1, revision)[~deleted]
            live = np.flatnonzero(self._revision >= 0)
            if self._windows.count > max(FEW, 2 * len(live)):
                self._keep(live)

        return told.filter(pa.array(passes)), commit

    def _numbers(self, rows: pa.Table) -> np.ndarray:
        """Numbers for the identities of rows."""
        columns = [rows.column(f.name).cast(f.type) for f in self._schema]
        numbers = self._windows.numbers(whole(pa.table(columns, schema=self._schema)))
        assert numbers is not None
        more = self._windows.count - len(self._revision)
        self._revision = np.append(self._revision, np.full(more, -1))
        return numbers.astype(np.int64)

    def _keep(self, live: np.ndarray) -> None:
        self._windows.keep(live)
        self._revision = self._revision[live]

    def drop(self, window: str) -> None:
        """Forget the windows of this name."""
        names = self._windows.columns[self._schema.get_field_index("window")]
        self._keep(np.flatnonzero(_flags(pc.not_equal(names, window))))

    def save(self) -> pa.Table:
        """What was given out and can still change."""
        live = np.flatnonzero(self._revision >= 0)
        table = pa.Table.from_arrays(self._windows.taken(live), schema=self._windows.schema)
        return table.append_column(REVISION, pa.array(self._revision[live]))

    def load(self, table: pa.Table) -> None:
        """The opposite of `save`."""
        expected = pa.schema([*self._windows.schema, pa.field(REVISION, pa.int64())])
        revision = table.column(REVISION)
        if table.schema != expected or revision.null_count or (revision.to_numpy() < 0).any():
            raise StateError(
                "the windows of the snapshot that were given out early are not those of the query"
            )
        self._numbers(table)
        if self._windows.count != len(table):
            raise StateError("the windows of the snapshot that were given out early are not all different")
        self._revision = revision.to_numpy().copy()


def _condition(trigger: When, results: pa.Schema) -> Callable[[pa.Table], np.ndarray]:
    """What says of rows of results where the condition holds; an error if it cannot."""
    what, name = "the condition of early rows", trigger.condition.column
    if name is None or not is_computed(name):
        condition = Condition(trigger.condition, results, what=what)
        return lambda rows: condition(whole(rows))
    Formula(name, results).require_boolean(what)

    def holds(rows: pa.Table) -> np.ndarray:
        (found,) = evaluate([name], rows)
        return np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False))

    return holds


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_dictionary(kind) else kind


def _flags(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    flags: np.ndarray = (
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    )
    return flags
