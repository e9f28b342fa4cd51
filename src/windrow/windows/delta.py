"""Delta windows: a new one whenever a value has moved far enough.

    value     10   11   13   14   17   16   18   21
    events    o    o    o    o    o    o    o    o
    moved by           >2        >2             >2     from the value at the last boundary
              |---------|---------|--------------|--   delta("value", by=2)
              |-------------------|                    delta("value", by=2, moves=2)
                        |------------------------|

The first event with a value is a boundary, and so is each event whose value differs by more than
`by` from the value at the last boundary. A window runs over `moves` of them. Events without a value
(null or NaN) belong to what is open and move nothing. Forward context free; delta-based windows are
IBM SPL's (Gedik, Software: Practice and Experience, 2014).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.errors import QueryError
from windrow.measure import INT64_MIN, Measure
from windrow.windows.arguments import number_problem, require_column, require_count, require_number
from windrow.windows.base import Window
from windrow.windows.stepping import Present, Stepping, Value


@dataclass(frozen=True)
class Delta(Window):
    """Windows over `moves` moves of `column` by more than `by`."""

    column: str
    by: int | float
    moves: int

    context = "forward context free"
    layout = "ordered"

    def column_problem(self, column: str, type_: pa.DataType, measure: Measure) -> str | None:
        if pa.types.is_integer(type_) and self.by >= 2**63:
            return f", in which nothing can move by more than {self.by}"
        return number_problem(type_)

    def stepping(self, schema: pa.Schema) -> Stepping:
        floating = pa.types.is_floating(schema.field(self.column).type)
        return Stepping(
            float_moves if floating else integer_moves,
            (Value(self.column), Present(self.column)),
            # Integers differ by a whole number: more than 2.5 is more than 2.
            (float(self.by) if floating else int(self.by), self.moves),
            (("anchor", "f" if floating else "i"), ("opened", "i")),
        )

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def __str__(self) -> str:
        moves = f" over {self.moves} moves" if self.moves > 1 else ""
        return f"delta {self.column!r} by {self.by}{moves}"


def boundary(count, moves, value):  # type: ignore[no-untyped-def]
    """What happens at a boundary: a window begins, and the oldest ends if `moves` are open."""
    before = 1 if count == moves else 0
    return (value, count + 1 - before), before, 1, 0


def integer_moves(parameters, state, time, value, present):  # type: ignore[no-untyped-def]
    """The step: `anchor` is the value at the last boundary, `count` windows are open.

    Written without the difference of two integers, which may need more than 64 bits.
    """
    by, moves = parameters
    anchor, count = state
    if not present:
        return (anchor, count), 0, 0, 0
    high, low = max(value, anchor), min(value, anchor)
    if count > 0 and (high < INT64_MIN + by or low >= high - by):
        return (anchor, count), 0, 0, 0
    return boundary(count, moves, value)  # type: ignore[no-untyped-call]


def float_moves(parameters, state, time, value, present):  # type: ignore[no-untyped-def]
    """The same on floats; infinity has not moved from infinity."""
    by, moves = parameters
    anchor, count = state
    if not present or (count > 0 and not abs(value - anchor) > by):
        return (anchor, count), 0, 0, 0
    return boundary(count, moves, value)  # type: ignore[no-untyped-call]


def delta(column: str, *, by: int | float, moves: int = 1) -> Delta:
    """Windows between events at which a value has moved far enough.

    The first event with a value is a boundary, and so is each event whose value differs by more than `by`
    from that at the last boundary. Events without a value (null or NaN) belong to the windows that are open.

    Parameters
    ----------
    column
        A column of integers or floats.
    by
        How far the value must move: a plain number, not negative.
    moves
        How many moves a window covers; 1 (default) gives one window after the other, more give windows that
        overlap.

    Returns
    -------
    Delta
        A window that is forward context free.

    Raises
    ------
    QueryError
        If one of these is no such number.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.delta("temperature", by=0.5))
    "delta 'temperature' by 0.5"
    """
    window = Delta(
        require_column(column, what="the value of a delta window"),
        require_number(by, what="by of a delta window"),
        require_count(moves, what="moves of a delta window"),
    )
    if window.by < 0:
        raise QueryError(f"by of a delta window must not be negative, but is {window.by}")
    return window
