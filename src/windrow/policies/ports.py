"""What flows between operators, and what their ports say about punctuations.

A *window punctuation* is a boundary in a stream: it cuts the rows into windows that an operator upstream has
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
from windrow.policies.spec import Count, Punct, Sliding, Tumbling

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


def row_by_row(why: str, without_rows: str) -> Callable[[Window], str | None]:
    """Takes tumbling windows, and sliding ones that are processed at each row and keep some."""

    def refusal(window: Window) -> str | None:
        if isinstance(window, Sliding) and window.trigger != Count(1):
            return f"{why} count(1)"
        if isinstance(window, Sliding) and window.eviction == Count(0):
            return f"a window of no rows {without_rows}"
        return None

    return refusal


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
                    f"and inputs are numbered 0 to {len(self.inputs) - 1}"
                )


@dataclass(frozen=True)
class Punctuated:
    """A stretch of a stream: rows, and after how many of them each punctuation comes, in order.

    >>> import pyarrow as pa
    >>> stretch = Punctuated.of(pa.table({"x": [1, 2, 3]}), [2])
    >>> [(part.to_pylist(), ends) for part, ends in stretch.parts()]
    [([{'x': 1}, {'x': 2}], True), ([{'x': 3}], False)]
    """

    table: pa.Table
    marks: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, rows: Any, marks: Sequence[int] | np.ndarray = ()) -> Punctuated:
        """Rows with punctuations between them.

        Parameters
        ----------
        rows
            Anything that makes a table; a `Punctuated` is returned as it is.
        marks
            After how many of the rows each punctuation comes, in order; none by default.

        Returns
        -------
        Punctuated
            A stretch of a stream.

        Raises
        ------
        QueryError
            If the rows make no table, or marks are out of order or beyond the rows.
        """
        if isinstance(rows, Punctuated):
            return rows
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        if not isinstance(rows, (pa.Table, dict, list)) and not hasattr(rows, "__arrow_c_stream__"):
            raise QueryError(f"a stretch of a stream is a table or a batch, not {type(rows).__name__}")
        try:
            rows = pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
            table = rows if isinstance(rows, pa.Table) else pa.table(rows)
        except (TypeError, ValueError, AttributeError, pa.ArrowException) as problem:
            raise QueryError(f"these rows make no table: {problem}") from problem
        places = np.asarray(marks)
        if places.ndim != 1 or (len(places) and places.dtype.kind not in "iu"):
            raise QueryError(f"punctuations are placed by numbers of rows, and not by {places.tolist()}")
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
        """The rows between punctuations, and whether a punctuation follows them."""
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
    first = stretches[0].table.schema
    other = next((s.table.schema for s in stretches if s.table.schema != first), first)
    if other != first:
        shown = (", ".join(f"{f.name} {f.type}" for f in schema) for schema in (first, other))
        raise QueryError(
            "rows with the columns {}; and others with {}, cannot follow each other".format(*shown)
        )
    return Punctuated(pa.concat_tables([s.table for s in stretches]), np.concatenate(marks))
