"""Columns to sort by, as whole numbers that compare as the rows do.

Each column becomes two numbers: whether it has a value that compares at all (0: yes, 1: NaN, 2: null, which
come last, in either direction), and its place in order. Strings are placed by their rank among all strings
seen, and new strings move the ranks of old ones: `encoded` then also changes the numbers of rows that are
held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import kind_of
from windrow.engine.intake.columns import Coder
from windrow.engine.partials.multisets import to_ordinals
from windrow.errors import QueryError
from windrow.policies.inputs import FEW_STRINGS
from windrow.rolling.codes import recoded, require_codes

Order = tuple[str, str]
DIRECTIONS = ("ascending", "descending")


def order_by(by: str | Order | Sequence[str | Order]) -> tuple[Order, ...]:
    """What to sort by: a column, a (column, direction) pair, or several of these.

    >>> order_by(["a", ("b", "descending")])
    (('a', 'ascending'), ('b', 'descending'))
    """
    is_pair = isinstance(by, tuple) and len(by) == 2 and isinstance(by[0], str) and by[1] in DIRECTIONS
    parts: Any = [by] if is_pair or isinstance(by, str) else by
    if not isinstance(parts, (list, tuple)):
        raise QueryError(f"what to sort by is a column, or a list of columns; not {by!r}")
    found: list[Order] = []
    for part in parts:
        pair = (part, "ascending") if isinstance(part, str) else part
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise QueryError(f"a column to sort by is a name, or a name and a direction; not {part!r}")
        if pair[1] not in DIRECTIONS:
            raise QueryError(f"a direction is {' or '.join(map(repr, DIRECTIONS))}, not {pair[1]!r}")
        found.append((pair[0], pair[1]))
    if not found:
        raise QueryError("say by which columns to sort")
    return tuple(found)


class Ordering:
    """The numbers of rows, for columns of the types of a schema."""

    def __init__(self, by: tuple[Order, ...], schema: pa.Schema) -> None:
        self._by = by
        self.width = 2 * len(by)
        for name, _ in by:
            kind_of(schema.field(name).type, what=f"Sort by {name!r}")
        self._coders = [Coder(name, schema.field(name).type) for name, _ in by]

    def refuse(self, batch: pa.RecordBatch) -> None:
        """An error if a value has no number."""
        for coder in self._coders:
            require_codes(coder, batch)

    def encoded(self, batch: pa.RecordBatch, held: np.ndarray) -> np.ndarray:
        """The numbers of the rows of a batch, which was not refused; `held` are those of earlier rows, which may change."""
        keys = np.zeros((batch.num_rows, self.width), np.int64)
        for c, (coder, (_, direction)) in enumerate(zip(self._coders, self._by, strict=True)):
            codes, present, moved = coder.encode(batch.column(coder.column))
            down = direction == "descending"
            if moved is not None and len(moved):
                held[:, 2 * c + 1] = _moved(held[:, 2 * c + 1], moved, down)
            keys[:, 2 * c], keys[:, 2 * c + 1] = _placed(codes, present, down)
        return keys

    def forget(self, held: np.ndarray) -> None:
        """Forget strings that are not in rows `held`, which are all there are, of columns in which they may be most."""
        for c, (coder, (_, direction)) in enumerate(zip(self._coders, self._by, strict=True)):
            if not coder.text or len(coder.dictionary) <= max(FEW_STRINGS, 2 * coder.kept):
                continue
            down, present = direction == "descending", held[:, 2 * c] == 0
            places = held[present, 2 * c + 1]
            used = np.unique(~places if down else places)
            moved = coder.prune(used)
            coder.kept = len(used)
            held[present, 2 * c + 1] = _moved(places, moved, down) if len(moved) else places


def _placed(codes: np.ndarray, present: np.ndarray | None, down: bool) -> tuple[np.ndarray, np.ndarray]:
    """The two numbers of each value."""
    flag = np.zeros(len(codes), np.int64)
    place: Any = to_ordinals(codes)
    if codes.dtype.kind == "f":
        nan = np.isnan(codes)
        flag[nan] = 1
        place = np.where(nan, 0, place)
    place = ~place if down else place
    if present is not None:
        absent = np.ones(len(codes), bool)
        absent[present] = False
        flag[absent] = 2
        place = np.where(absent, 0, place)
    return flag, place


def _moved(places: np.ndarray, moved: np.ndarray, down: bool) -> np.ndarray:
    return ~recoded(~places, moved) if down else recoded(places, moved)
