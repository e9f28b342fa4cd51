"""Durations as people write them, turned into ticks of a column.

A duration is one of

- a string in Spark's interval grammar: `"1 minute"`, `"90 seconds"`, `"1 hour 30 minutes"`,
  `"interval 2 days"`;
- a `datetime.timedelta` or a `numpy.timedelta64`;
- a plain number, in the unit of the column itself.

The first two are exact nanoseconds and need a column that is a time (timestamp or date). A plain
number is for all others, a distance or an invoice number: of a time it would not say whether
seconds or microseconds are meant. Months and years have no fixed length: use `windrow.calendar`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

import numpy as np

from windrow.errors import QueryError
from windrow.wording import choices

DurationLike: TypeAlias = "str | timedelta | np.timedelta64 | int | float | Duration"

NANOSECONDS = {
    "nanosecond": 1,
    "microsecond": 1_000,
    "millisecond": 1_000_000,
    "second": 1_000_000_000,
    "minute": 60_000_000_000,
    "hour": 3_600_000_000_000,
    "day": 86_400_000_000_000,
    "week": 604_800_000_000_000,
}
_ALIASES = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_ALIASES |= {"sec": "second", "min": "minute", "m": "minute", "h": "hour", "d": "day"}
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


@dataclass(frozen=True)
class Duration:
    """A length of time (`nanoseconds`) or of any other measure (`number`); one of the two is set."""

    text: str
    nanoseconds: int | None = None
    number: int | float | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def magnitude(self) -> int | float:
        """The size in the duration's own terms; comparable between durations of one kind."""
        return self.nanoseconds if self.nanoseconds is not None else self.number or 0

    def same_kind(self, other: Duration) -> bool:
        return (self.nanoseconds is None) == (other.nanoseconds is None)


def parse_duration(value: DurationLike, *, what: str = "duration") -> Duration:
    """Read a duration; `what` names the parameter in the error.

    >>> parse_duration("1 minute 30 seconds").nanoseconds
    90000000000
    >>> parse_duration(250).number
    250
    """
    if isinstance(value, Duration):
        return value
    if isinstance(value, bool):
        raise QueryError(f"{what} must be a duration, not the boolean {value!r}")
    if isinstance(value, timedelta):
        microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        finer = getattr(value, "nanoseconds", 0)  # of pandas
        return Duration(str(value), nanoseconds=microseconds * 1_000 + finer)
    if isinstance(value, np.timedelta64):
        return _numpy_duration(value, what)
    if isinstance(value, int):
        return Duration(str(value), number=value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise QueryError(f"{what} must be finite, not {value!r}")
        return Duration(repr(value), number=value)
    if isinstance(value, str):
        return Duration(value.strip(), nanoseconds=_nanoseconds(value, what))
    raise QueryError(f"{what} must be a string, a timedelta or a number, not {type(value).__name__}")


def _numpy_duration(value: np.timedelta64, what: str) -> Duration:
    unit, count = np.datetime_data(value.dtype)
    name = _ALIASES.get(unit, {"D": "day", "W": "week"}.get(unit, ""))
    if np.isnat(value) or name not in NANOSECONDS:
        raise QueryError(f'{what} {value!r} has no fixed length; write it as "10 seconds", or as a timedelta')
    return Duration(str(value), nanoseconds=int(value.astype(np.int64)) * count * NANOSECONDS[name])


def _nanoseconds(text: str, what: str) -> int:
    body = text.strip()
    if body.lower().startswith("interval "):
        body = body[len("interval ") :]
    total, position = 0, 0
    while position < len(body):
        term = _TERM.match(body, position)
        if term is None:
            break
        unit = term[2].lower()
        unit = unit if unit in _ALIASES or unit in NANOSECONDS else unit.removesuffix("s")
        unit = _ALIASES.get(unit, unit)
        if unit in ("month", "quarter", "year"):
            raise QueryError(f"{what} {text!r}: a {unit} has no fixed length; use windrow.calendar")
        if unit not in NANOSECONDS:
            raise QueryError(f"{what} {text!r}: unknown unit {term[2]!r}{choices(unit, NANOSECONDS)}")
        total += _scaled(term[1], NANOSECONDS[unit], text, what)
        position = term.end()
    if position == 0 or position < len(body):
        raise QueryError(
            f'{what} {text!r} is not a duration; write it as "10 seconds" or "1 hour 30 minutes"'
        )
    return total


def _scaled(digits: str, unit: int, text: str, what: str) -> int:
    whole, _, fraction = digits.partition(".")
    scale = 10 ** len(fraction)
    product = int(whole + fraction) * unit
    if product % scale:
        raise QueryError(f"{what} {text!r} is not a whole number of nanoseconds")
    return product // scale
