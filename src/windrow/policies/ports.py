"""What flows between operators, and what their ports say about punctuations.

A *window punctuation* is a boundary in a stream: it cuts the rows into windows that somebody upstream has
made. A stream is carried in batches of columns, and a punctuation is a place in the batch:

    rows           a   b   c   d   e
    marks            ^           ^^            after 1 row, and twice after 4: marks = [1, 4, 4]

An input port is oblivious of punctuations, expects them, or is *window bound*: it expects them if its window
is `tumbling, punct()`. An output port is free of them, generates its own, or preserves those of an input
port (Gedik 2013, section 3.4). A `Model` is what an operator declares: its ports, and the windows it takes
on each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.policies.spec import Punct, Sliding, Tumbling

Window = Tumbling | Sliding


class InputMode(Enum):
    """What an input port needs of punctuations."""

    OBLIVIOUS = "oblivious"
    EXPECTING = "expecting"
    WINDOW_BOUND = "window-bound"


class OutputMode(Enum):
    """What an output port does about punctuations."""

    FREE = "free"
    GENERATING = "generating"
    PRESERVING = "preserving"


OBLIVIOUS, EXPECTING, WINDOW_BOUND = InputMode
FREE, GENERATING, PRESERVING = OutputMode


def any_window(window: Window) -> str | None:
    """Takes every window configuration."""
    return None


@dataclass(frozen=True)
class Input:
    """An input port. `refusal` says why a window is not supported, or None if it is; without it, there is no
    window.
    """

    name: str = "in"
    mode: InputMode = OBLIVIOUS
    refusal: Callable[[Window], str | None] | None = None

    def expects(self, window: Window | None) -> bool:
        """Whether the port needs a punctuated stream, with this window."""
        if self.mode is WINDOW_BOUND:
            return window is not None and isinstance(window.eviction, Punct)
        return self.mode is EXPECTING


@dataclass(frozen=True)
class Output:
    """An output port. `of` is the input port whose punctuations a preserving one passes on."""

    name: str = "out"
    mode: OutputMode = FREE
    of: int = 0


@dataclass(frozen=True)
class Model:
    """The operator model: what a `Flow` checks before it runs."""

    inputs: tuple[Input, ...] = (Input(),)
    outputs: tuple[Output, ...] = (Output(),)

    def __post_init__(self) -> None:
        for port in self.outputs:
            if port.mode is PRESERVING and not 0 <= port.of < len(self.inputs):
                raise QueryError(
                    f"output {port.name!r} preserves the punctuations of input {port.of}, "
                    f"and there are {len(self.inputs)} inputs"
                )


def _no_marks() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Punctuated:
    """A stretch of a stream: rows, and after how many of them each punctuation comes, in order.

    >>> import pyarrow as pa
    >>> stretch = Punctuated.of(pa.table({"x": [1, 2, 3]}), [2])
    >>> [(part.to_pylist(), ends) for part, ends in stretch.parts()]
    [([{'x': 1}, {'x': 2}], True), ([{'x': 3}], False)]
    """

    table: pa.Table
    marks: np.ndarray = field(default_factory=_no_marks)

    @classmethod
    def of(cls, rows: Any, marks: Sequence[int] | np.ndarray = ()) -> Punctuated:
        """Rows with punctuations after so many of them; a stretch is taken as it is."""
        if isinstance(rows, Punctuated):
            return rows
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if not isinstance(rows, (pa.Table, dict)) and not hasattr(rows, "__arrow_c_stream__"):
            raise QueryError(f"a stretch of a stream is a table or a batch, not {type(rows).__name__}")
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        places = np.asarray(marks)
        if places.ndim != 1 or (len(places) and places.dtype.kind not in "iu"):
            raise QueryError(f"punctuations are told by numbers of rows, and not by {places.tolist()}")
        places = places.astype(np.int64)
        if len(places) and (np.any(np.diff(places) < 0) or places[0] < 0 or places[-1] > table.num_rows):
            raise QueryError(
                f"punctuations must come in order and after 0 to {table.num_rows} rows, "
                f"and these come after {places.tolist()}"
            )
        return cls(table, places)

    def __len__(self) -> int:
        return self.table.num_rows

    def parts(self) -> Iterator[tuple[pa.Table, bool]]:
        """The rows between punctuations, and whether a punctuation comes behind them."""
        begin = 0
        for mark in self.marks.tolist():
            yield self.table.slice(begin, mark - begin), True
            begin = mark
        if begin < len(self) or not len(self.marks):
            yield self.table.slice(begin), False


def joined(stretches: Sequence[Punctuated]) -> Punctuated:
    """One stretch after the other, as one; there is at least one."""
    if len(stretches) == 1:
        return stretches[0]
    before = np.cumsum([0, *(len(s) for s in stretches[:-1])])
    marks = [s.marks + passed for s, passed in zip(stretches, before, strict=True)]
    return Punctuated(pa.concat_tables([s.table for s in stretches]), np.concatenate(marks))
