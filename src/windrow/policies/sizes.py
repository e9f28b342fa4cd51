"""The sizes of policies: whole numbers, and lengths of time as people write them."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np

from windrow.durations import NANOSECONDS, DurationLike, parse_duration
from windrow.errors import QueryError


def spoken(nanoseconds: int) -> str:
    """A length of time in the largest unit of which it is a whole number.

    >>> spoken(5_400_000_000_000)
    '90 minutes'
    """
    name, unit = max(
        ((n, u) for n, u in NANOSECONDS.items() if nanoseconds % u == 0 and n != "week"), key=lambda nu: nu[1]
    )
    number = nanoseconds // unit
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def whole_number(size: int, what: str, *, least: int) -> int:
    """How many; numbers of NumPy are as good as others."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise QueryError(f"{what} needs a whole number, not {size!r}")
    if size < least:
        raise QueryError(f"{what}({size}): the size must be {least} or more")
    if size >= 2**62:
        raise QueryError(f"{what}({size}): the size is beyond all memory")
    return int(size)


def nanoseconds_of(period: DurationLike, what: str) -> int:
    """A length of time; plain numbers are seconds, as in the paper."""
    if isinstance(period, (int, float)) and not isinstance(period, bool):
        if not math.isfinite(period):
            raise QueryError(f"{what} must be a finite number of seconds, not {period!r}")
        nanoseconds = round(period * 1_000_000_000)
    else:
        parsed = parse_duration(period, what=what)
        assert parsed.nanoseconds is not None
        nanoseconds = parsed.nanoseconds
    if nanoseconds <= 0:
        shown = str(period) if isinstance(period, timedelta) else period
        raise QueryError(f"{what}({shown}): the time must be longer than nothing")
    if nanoseconds >= 2**62:
        raise QueryError(f"{what}({period}): the time is longer than a century, and too long for a clock")
    return nanoseconds
