"""What is kept of an event that waits: a number for each thing that windows and aggregates read of it.

    nulls     bits: in which columns the event has no value, or one that was not read when it came
    values    the code of each column that an aggregate reads; -1 where a string is null
    inputs    what the step of each window reads

All of it is computed when an event comes, so that a function of a window's predicate that fails refuses the batch, and
nothing is encoded twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.binding import Binding
from windrow.engine.engine import Encoded
from windrow.engine.intake.columns import Coder

# Columns of events; None stands for zeros.
Columns = list[np.ndarray | None]

DTYPES: dict[str, Any] = {"i": np.dtype(np.int64), "f": np.dtype(np.float64), "b": np.dtype(np.bool_)}
# Two bits for each column: its value is null; its value is not known, as nothing read it when the event came.
NULL, UNKNOWN, BITS = 0, 1, 2
COLUMNS_PER_WORD = 62 // BITS


def kind_of(coder: Coder) -> str:
    """The kind of a column's codes."""
    return "f" if pa.types.is_floating(coder.type) else "i"


def filled(column: np.ndarray | None, count: int) -> np.ndarray:
    """A column, zeros where it is None."""
    return np.zeros(count, np.int64) if column is None else column


def in_words(column: np.ndarray | None) -> Any:
    """A column as what fits into int64."""
    if column is None:
        return 0
    return column.view(np.int64) if column.dtype.kind == "f" else column


class EventColumns:
    """The names and dtypes of these columns for one query; `inputs` are the kinds of what each window reads, by its name."""

    def __init__(self, binding: Binding, inputs: Sequence[tuple[str, str]]) -> None:
        self.nullable = sorted({*binding.coders, *binding.uncoded})
        self.coders = {name: binding.coders[name] for name in sorted(binding.coders)}
        words = -(-len(self.nullable) // COLUMNS_PER_WORD)
        kinds = {f"nulls {i}": "i" for i in range(words)}
        kinds |= {f"value {name}": kind_of(coder) for name, coder in self.coders.items()}
        kinds |= {f"input {name} {i}": kind for name, each in inputs for i, kind in enumerate(each)}
        self.names = list(kinds)
        self.dtypes = [DTYPES[kind] for kind in kinds.values()]
        self._values = {name: words + i for i, name in enumerate(self.coders)}
        self._inputs: dict[str, slice] = {}
        place = words + len(self.coders)
        for name, each in inputs:
            self._inputs[name] = slice(place, place + len(each))
            place += len(each)

    def value_of(self, name: str) -> int:
        """Which column has the codes of a column of the events."""
        return self._values[name]

    def inputs_of(self, columns: Columns, window: str) -> list[np.ndarray]:
        """What the step of a window reads."""
        return columns[self._inputs.get(window, slice(0, 0))]  # type: ignore[return-value]

    def read(self, encoded: Encoded, inputs: list[np.ndarray], count: int) -> Columns:
        """The columns of `count` events, from codes, and what all windows read."""
        codes, present = encoded
        null = {name: absent(rows, count) for name in self.nullable if (rows := present[name]) is not None}
        words = self._words({(name, NULL): where for name, where in null.items()}, count)
        values = [codes[name] for name in self.coders]
        if null:
            for i, (name, coder) in enumerate(self.coders.items()):
                if coder.text and name in null:
                    values[i] = np.where(null[name], -1, values[i])
        return [*words, *values, *inputs]

    def _words(self, flags: dict[tuple[str, int], np.ndarray], count: int) -> Columns:
        """These flags of columns as bits."""
        words: Columns = [None] * -(-len(self.nullable) // COLUMNS_PER_WORD)
        for (name, what), where in flags.items():
            word, bit = divmod(self.nullable.index(name), COLUMNS_PER_WORD)
            words[word] = filled(words[word], count) | where.astype(np.int64) << (BITS * bit + what)
        return words

    def flags(self, columns: Columns) -> dict[tuple[str, int], np.ndarray]:
        """In which events a value is null or unknown: a mask for each column of the events where there are any."""
        found: dict[tuple[str, int], np.ndarray] = {}
        for word, first in enumerate(range(0, len(self.nullable), COLUMNS_PER_WORD)):
            bits = columns[word]
            if bits is None or not bits.any():
                continue
            for bit, name in enumerate(self.nullable[first : first + COLUMNS_PER_WORD]):
                for what in (NULL, UNKNOWN):
                    where = bits >> (BITS * bit + what) & 1 != 0
                    if where.any():
                        found[name, what] = where
        return found

    def encoded(self, columns: Columns) -> tuple[Encoded, Encoded]:
        """What partials take: with values that are not known, which windows that are complete do not hold, and without."""
        codes: dict[str, Any] = {name: columns[place] for name, place in self._values.items()}
        present: dict[str, np.ndarray | None] = dict.fromkeys(self.nullable)
        flags = self.flags(columns)
        for (name, what), where in flags.items():
            if what == NULL:
                present[name] = np.flatnonzero(~where)
        known = present
        for (name, what), where in flags.items():
            if what == UNKNOWN:
                known = known | {name: np.flatnonzero(~(where | flags.get((name, NULL), False)))}
        return (codes, present), (codes, known)

    def fitted(self, old: EventColumns, columns: Columns, count: int) -> Columns:
        """These columns for `count` events that have the columns of another query; values that they lack are not known."""
        by_name = dict(zip(old.names, columns, strict=True))
        flags = {key: where for key, where in old.flags(columns).items() if key[0] in self.nullable}
        for name in self.nullable:
            if name not in old.nullable:
                flags[name, NULL] = np.ones(count, bool)
            elif name in self.coders and name not in old.coders:
                flags[name, UNKNOWN] = np.ones(count, bool)
        found = self._words(flags, count)
        for name, dtype in list(zip(self.names, self.dtypes, strict=True))[len(found) :]:
            found.append(by_name[name] if name in by_name else np.zeros(count, dtype))
        for name, coder in self.coders.items():
            if coder.text and name not in old.coders:
                # Windows that hold these events are incomplete, and show nothing of it; but a code must mean something.
                null = flags.get((name, NULL), np.zeros(count, bool))
                ((code,), _, _) = coder.encode(pa.array([""], coder.dictionary.type))
                found[self._values[name]] = np.where(null, -1, code)
        return found


def absent(rows: np.ndarray, count: int) -> np.ndarray:
    """A mask of all but these rows."""
    mask = np.ones(count, bool)
    mask[rows] = False
    return mask
