"""Parts of a ring that a call will overwrite, copied before: a call costs what it takes in, and not what is held.

ring       |x x x . . . x x x x|      of a power of two of places
call              |-----|             places that go round more than once are the same place
copied            |. . .|
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

ALL = (slice(None),)


def parts(places: int, ranges: Iterable[tuple[int, int]]) -> Sequence[slice]:
    """Where the partials of these half-open ranges, counted from the first one ever, lie in a ring.

    >>> parts(8, [(6, 10), (11, 12)]), parts(8, [(3, 20)])
    ([slice(6, 8, None), slice(0, 2, None), slice(3, 4, None)], (slice(None, None, None),))
    """
    found = []
    for low, high in ranges:
        if high - low >= places:
            return ALL
        first = low & (places - 1)
        last = first + high - low
        found.append(slice(first, min(last, places)))
        if last > places:
            found.append(slice(0, last - places))
    return found


def saved(arrays: Iterable[np.ndarray], where: Sequence[slice] = ALL) -> Callable[[], None]:
    """Copy these parts of each array; what is returned puts them back."""
    copies = [(array, part, array[part].copy()) for array in arrays for part in where]

    def put_back() -> None:
        for array, part, copy in copies:
            array[part] = copy

    return put_back
