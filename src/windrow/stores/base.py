"""What every store declares: four functions, how much room they need, and what they need of an aggregate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Need = Literal["inverse", "selection"]


@dataclass(frozen=True)
class Store:
    """A queue of partials that knows the combination of all that it holds.

    `create(capacity, identity)` gives the first state; `insert`, `evict` and `query` are described in
    `operations`. `cells(capacity)` and `notes(capacity)` say how many cells and how many numbers beside them
    a queue of up to `capacity` partials takes. `needs` names what an aggregate must have. `touched(state, inserts,
    evicts)` says which cells these numbers of calls write at most, where that is known beforehand: ranges of places, counted from
    the first partial ever, in a ring of cells. One that is `chunked` is created with the length of a chunk as well.
    """

    name: str
    create: Callable[..., Any]
    insert: Callable[..., Any]
    evict: Callable[..., Any]
    query: Callable[..., Any]
    cells: Callable[[int], int]
    notes: Callable[[int], int] = lambda capacity: 0
    needs: Need | None = None
    touched: Callable[[Any, int, int], list[tuple[int, int]]] | None = None
    chunked: bool = False


def power_of_two(capacity: int) -> int:
    """The smallest power of two that is not below: places in a ring are found with a mask, not a division."""
    return 1 << max(0, capacity - 1).bit_length()
