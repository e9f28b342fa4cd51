"""The aggregates that a window computes, and the columns that they read, as codes, which they share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars, Sketch
from windrow.engine.functions.user_functions import bind, lower_failed
from windrow.engine.intake.columns import Coder, settled
from windrow.engine.intake.numbers import frozen
from windrow.engine.partials.scalars import lowered
from windrow.engine.snapshot.parts import Reader, Writer, one
from windrow.errors import DataError, QueryError, StateError
from windrow.policies.window_state import WindowState
from windrow.rolling.codes import require_codes
from windrow.schema import require_columns

# At most this many strings are never tidied up.
FEW_STRINGS = 4096


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate that a window computes, bound to the types of its columns."""

    name: str
    aggregate: Aggregate
    bound: Bound

    @classmethod
    def of(cls, name: str, aggregate: Aggregate, schema: pa.Schema) -> BoundAggregate:
        """Bound to the columns of a schema; a QueryError if that cannot be."""
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"{name}: an aggregate of windrow is needed, not {aggregate!r}")
        require_columns(schema, aggregate.columns)
        types = [schema.field(column).type for column in aggregate.columns]
        return cls(name, aggregate, bind(aggregate, types))

    @property
    def columns(self) -> tuple[str, ...]:
        return self.aggregate.columns

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns whose values are read; a count only looks for nulls."""
        return self.aggregate.columns if self.bound.kinds else ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for aggregates that share a partial."""
        return self.columns, self.bound.kinds, self.bound.partial

    @property
    def fixed(self) -> bool:
        """Whether its partial is of a fixed size; others need the values themselves."""
        return isinstance(self.bound.partial, (Scalars, Sketch))

    @property
    def own(self) -> bool:
        """Whether it is made of functions of the user's, which may raise."""
        return isinstance(self.bound.partial, Scalars) and self.bound.partial.own

    def lowered(
        self,
        fields: list[np.ndarray],
        n: np.ndarray,
        decoders: list[Any],
        state: WindowState,
        partition: np.ndarray,
        row: np.ndarray,
    ) -> pa.Array:
        """Partials to answers; `n` is how many values each is made of.

        The error for a sum that is too large names the row of the batch that caused the answer, if one did.
        """
        overflow = None if self.bound.check is None else self.bound.check(fields, n > 0)
        if overflow is not None:
            place, value = overflow
            key, caused = state.partitions.key_of(int(partition[place])), int(row[place])
            where = f"the subwindow of {key!r}" if state.partitions.by else "the window"
            problem = f"{self.aggregate} of {where} overflows int64"
            raise DataError(self.columns[0], None if caused < 0 else caused, value, problem)
        with blaming(self.own, partial(lower_failed, self.bound)):
            return lowered(self.bound, fields, n, decoders)


@contextmanager
def blaming(own: bool, error: Callable[[Exception], Exception]) -> Iterator[None]:
    """What a user's `own` function raises becomes an error that says which function it was."""
    try:
        yield
    except Exception as problem:  # a user's function may raise anything
        if not own:
            raise
        raise error(problem) from problem


class Inputs:
    """A coder for each column. `read` takes a batch in; `codes` and `present` then tell of its rows."""

    def __init__(self, schema: pa.Schema, aggregates: list[BoundAggregate]) -> None:
        coded = list(dict.fromkeys(column for one in aggregates for column in one.inputs))
        counted = [column for one in aggregates for column in one.columns]
        require_columns(schema, tuple(counted))
        self._coders = {name: Coder(name, schema.field(name).type) for name in coded}
        self._columns = list(dict.fromkeys([*coded, *counted]))
        self._codes: dict[str, np.ndarray] = {}
        self._valid: dict[str, np.ndarray | None] = {}
        self._moves: list[tuple[str, np.ndarray]] = []
        # How far from zero the whole numbers of a column have ever been.
        self._farthest = dict.fromkeys(coded, 0)

    def require(self, batch: pa.RecordBatch) -> None:
        """A DataError if a value has no code."""
        for coder in self._coders.values():
            require_codes(coder, batch)

    def read(self, batch: pa.RecordBatch) -> None:
        """The rows of a batch; a DataError if a value has no code, before anything has changed."""
        self.require(batch)
        for name in self._columns:
            array = settled(batch.column(name))
            self._valid[name] = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
            if name not in self._coders:
                continue
            codes, _, moved = self._coders[name].encode(array)
            if moved is not None and len(moved):
                self._moves.append((name, moved))
            self._codes[name] = frozen(codes)

    def strings(self, column: str) -> int:
        """How many strings a column has codes for."""
        return len(self._coders[column].dictionary)

    def settle(self, held: Callable[[str], np.ndarray], recode: Callable[[str, np.ndarray], None]) -> None:
        """New strings have changed the codes of others: bring those that are held in line by `recode(column, old_to_new)`.

        Then forget strings that are not held, of columns in which they may be most. `held(column)` are the codes that
        are held besides those of the batch.
        """
        moves, self._moves = self._moves, []
        for name, moved in moves:
            recode(name, moved)
        for name, coder in self._coders.items():
            if not coder.text or len(coder.dictionary) <= max(FEW_STRINGS, 2 * coder.kept):
                continue
            codes, valid = self._codes[name], self._valid[name]
            used = np.unique(np.concatenate([held(name), codes if valid is None else codes[valid]]))
            moved = coder.prune(used)
            coder.kept = len(used)
            if len(moved):
                # A null has some code or other.
                self._codes[name] = frozen(moved[np.minimum(codes, len(moved) - 1)])
                recode(name, moved)

    def may_fail(self, aggregates: list[BoundAggregate], rows: int) -> bool:
        """Whether an aggregate over at most `rows` rows may raise, or a sum of them overflow; the batch was read."""
        if any(one.own for one in aggregates):
            return True
        summed = {one.columns[0] for one in aggregates if one.bound.check is not None}
        for name in summed:
            codes = self._codes[name]
            if len(codes):
                farthest = max(abs(int(codes.min())), abs(int(codes.max())))
                self._farthest[name] = max(self._farthest[name], farthest)
        return any(self._farthest[name] * rows >= 2**63 for name in summed)

    def codes(self, columns: tuple[str, ...]) -> list[np.ndarray]:
        """The codes of these columns."""
        return [self._codes[name] for name in columns]

    def present(self, columns: tuple[str, ...]) -> np.ndarray | None:
        """Which rows have a value in all of these columns; None: all rows do."""
        valid = [v for v in (self._valid[name] for name in columns) if v is not None]
        return np.logical_and.reduce(valid) if valid else None

    def decoders(self, columns: tuple[str, ...]) -> list[Callable[..., pa.Array]]:
        """What makes values of codes again."""
        return [self._coders[name].decode for name in columns if name in self._coders]

    def save(self, writer: Writer) -> None:
        """Write the strings behind the codes of text columns, and how far numbers have been from zero."""
        writer.text("farthest", json.dumps(self._farthest))
        for name, coder in self._coders.items():
            if coder.text:
                writer.table(f"strings {name}", pa.table({"value": coder.dictionary}))

    def load(self, reader: Reader) -> None:
        """Go on with the codes of another window."""
        farthest = json.loads(reader.text("farthest"))
        for name in self._farthest:
            if type(farthest[name]) is not int:
                raise StateError(f"the snapshot's bound of column {name!r} is no whole number")
            self._farthest[name] = farthest[name]
        for name, coder in self._coders.items():
            if coder.text:
                strings = one(reader.table(f"strings {name}").column("value"))
                if strings.type != coder.dictionary.type or strings.null_count:
                    raise StateError(f"the snapshot's strings of column {name!r} are of another type")
                coder.dictionary = strings
