"""Windows on another column that advances: every 5 km driven, every 1000 requests counted.

    km        0      2.5      5      7.5     10
    events    o   o   o       o   o      o    o
              |---------------|---------------|        tumbling(5, on="km")
              |-------------------------------|        sliding(10, every=5, on="km")
                              |---------------------

The windows are cut on the running maximum of the column over the key's sequence, so a reading that
goes back counts at the highest so far. A window starts at the time of its first event and ends at
the time of the first event that lies beyond it. Forward context free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.measure import INT64_MAX, Measure
from windrow.windows.arguments import number_problem, refuse_too_many, require_column, require_number
from windrow.windows.base import Periodic, Window
from windrow.windows.stepping import Stepping, Value

# The sum of two lengths must fit in 64 bits.
LONGEST = 2**62


@dataclass(frozen=True)
class Advancing(Window):
    """Windows of `length`, one more each `every`, on the running maximum of `column`."""

    column: str
    length: int | float
    every: int | float
    offset: int | float

    context = "forward context free"
    layout = "ordered"

    def column_problem(self, column: str, type_: pa.DataType, measure: Measure) -> str | None:
        return number_problem(type_)

    def is_whole(self, type_: pa.DataType) -> bool:
        """Whether the column holds whole numbers, or times as ticks, and all sizes are integers."""
        sizes = (self.length, self.every, self.offset)
        return not pa.types.is_floating(type_) and all(isinstance(size, int) for size in sizes)

    def stepping(self, schema: pa.Schema) -> Stepping:
        whole = self.is_whole(schema.field(self.column).type)
        number: type[int] | type[float] = int if whole else float
        placed = Periodic.of(length=number(self.length), every=number(self.every), offset=number(self.offset))
        kind = "i" if whole else "f"
        return Stepping(
            advance_integers if whole else advance_floats,
            (Value(self.column, floating=not whole),),
            (placed.every, placed.offset, number(placed.whole), placed.rest),
            (("oldest", kind), ("following", kind), ("bound", kind), ("begun", "i")),
        )

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def __str__(self) -> str:
        shift = f" offset {self.offset}" if self.offset else ""
        if self.length == self.every:
            return f"tumbling {self.length} on {self.column!r}{shift}"
        return f"sliding {self.length} every {self.every} on {self.column!r}{shift}"


def advance_integers(parameters, state, time, value):  # type: ignore[no-untyped-def]
    """The step on integers: windows `oldest .. following-1` are open.

    `bound` is the first value at which one of them ends or another begins, so that most events cost
    one comparison. Edges are compared by their distance, which avoids sums of more than 64 bits.
    """
    every, offset, whole, rest = parameters
    oldest, following, bound, begun = state
    if begun and value < bound:
        return (oldest, following, bound, begun), 0, 0, 0
    quotient, remainder = value // every, value % every
    ends_at = offset + rest
    last, first = quotient, quotient + 1 - whole
    if ends_at >= every:
        ends_at -= every
        first -= 1
    begin = offset - remainder
    if remainder < offset:
        last -= 1
    else:
        begin += every
    end = ends_at - remainder
    if remainder < ends_at:
        first -= 1
    else:
        end += every
    nearest = min(begin, end)
    bound = value + nearest if value <= INT64_MAX - nearest else INT64_MAX
    if not begun:
        oldest = following = first
    before = max(min(first, following) - oldest, 0)
    begins = max(last + 1 - max(first, following), 0)
    return (first, last + 1, bound, 1), before, begins, 0


def advance_floats(parameters, state, time, value):  # type: ignore[no-untyped-def]
    """The same on floats; numbers of windows are whole floats, of which 53 bits are exact."""
    every, offset, whole, rest = parameters
    oldest, following, bound, begun = state
    if begun and value < bound:
        return (oldest, following, bound, begun), 0, 0, 0
    last = np.floor((value - offset) / every)
    while offset + (last + 1.0) * every <= value:
        last += 1.0
    while offset + last * every > value:
        last -= 1.0
    first = np.floor((value - offset - rest) / every) + 1.0 - whole
    while offset + (first - 1.0 + whole) * every + rest > value:
        first -= 1.0
    while offset + (first + whole) * every + rest <= value:
        first += 1.0
    if not begun:
        oldest = following = first
    before = max(min(first, following) - oldest, 0.0)
    begins = max(last + 1.0 - max(first, following), 0.0)
    bound = min(offset + (last + 1.0) * every, offset + (first + whole) * every + rest)
    return (first, last + 1.0, bound, 1), int(before), int(begins), 0


def advancing_window(column: str, length: object, every: object, offset: object) -> Advancing:
    """Windows `[k*every + offset, k*every + offset + length)` of the running maximum of `column`.

    >>> str(advancing_window("km", 10, 5, 0))
    "sliding 10 every 5 on 'km'"
    """
    window = Advancing(
        require_column(column, what="the measure of a window (on)"),
        require_number(length, what="the length of a window on a column"),
        require_number(every, what="the slide (every) of a window on a column"),
        require_number(offset, what="the offset of a window on a column"),
    )
    for size, what in ((window.length, "length"), (window.every, "slide (every)")):
        if not size > 0:
            raise QueryError(
                f"the {what} of a window on column {column!r} must be greater than zero, not {size}"
            )
        if size > LONGEST:
            raise QueryError(f"the {what} of a window on column {column!r} must be at most 2**62, not {size}")
    refuse_too_many(window.length / window.every, what=str(window))
    return window
