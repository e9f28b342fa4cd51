"""The measure that windows are cut on: a time column, or any other advancing number.

A `Measure` knows how one Arrow type maps to *ticks*, the numbers that the engine works with:
int64 for timestamps, dates and integers, float64 for floating-point columns. It turns durations,
watermarks and window bounds into ticks and back, and it knows which ticks the type can hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from windrow.durations import Duration
from windrow.errors import QueryError

PointLike: TypeAlias = "datetime | date | np.datetime64 | pa.Scalar | int | float"
Tick: TypeAlias = "int | float"

_TICK_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY = 86_400_000_000_000
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Point:
    """A moment (`nanoseconds` since 1970) or a place on another measure (`number`); one is set."""

    nanoseconds: int | None = None
    number: int | float | None = None


def parse_point(value: PointLike | Point, *, what: str) -> Point:
    """Read a watermark or a start; `what` names it in the error. A moment without a zone is UTC.

    >>> parse_point(datetime(1970, 1, 1, 0, 0, 1), what="watermark").nanoseconds
    1000000000
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return Point(number=int(value))
    if isinstance(value, Point):
        return value
    if isinstance(value, pa.Scalar):
        return _parse_scalar(value, what)
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return Point(nanoseconds=_numpy_nanoseconds(value))
    if isinstance(value, date) and value == value:  # pandas' NaT is a date, and not equal to itself
        return Point(nanoseconds=_nanoseconds(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return Point(number=float(value))
    raise QueryError(f"{what} {value!r} is not a point in time and not a number")


def _parse_scalar(value: pa.Scalar, what: str) -> Point:
    if not value.is_valid:
        raise QueryError(f"{what} is null")
    kind = value.type
    if pa.types.is_timestamp(kind):
        return Point(nanoseconds=value.value * _TICK_NANOSECONDS[kind.unit])
    return parse_point(value.as_py(), what=what)


def _numpy_nanoseconds(value: np.datetime64) -> int:
    unit, count = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        value, unit, count = value.astype("datetime64[D]"), "D", 1
    scale = {**_TICK_NANOSECONDS, "m": 60 * 10**9, "h": 3600 * 10**9, "D": _DAY, "W": 7 * _DAY}
    if unit not in scale:
        value, unit, count = value.astype("datetime64[ns]"), "ns", 1
    return int(value.astype(np.int64)) * count * scale[unit]


def _nanoseconds(value: date) -> int:
    if not isinstance(value, datetime):
        return (value - date(1970, 1, 1)).days * _DAY
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1_000


@dataclass(frozen=True)
class Measure:
    """How the time column `column` of Arrow type `type` is read as ticks."""

    column: str
    type: pa.DataType

    def __post_init__(self) -> None:
        kind = self.type
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return
        raise QueryError(
            f"column {self.column!r} of type {kind} cannot be a time: "
            "a timestamp, date, integer or floating-point column is needed"
        )

    @cached_property
    def floating(self) -> bool:
        """Whether ticks are float64 (a float measure) and not int64."""
        return bool(pa.types.is_floating(self.type))

    @cached_property
    def wide(self) -> bool:
        """Whether ticks are the column's own 64-bit integers."""
        kind = self.type
        return bool(
            pa.types.is_timestamp(kind)
            or pa.types.is_int64(kind)
            or pa.types.is_uint64(kind)
            or pa.types.is_date64(kind)
        )

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64 if self.floating else np.int64)

    @cached_property
    def tick_nanoseconds(self) -> int | None:
        """Length of one tick, or None for a measure that is not time."""
        if pa.types.is_timestamp(self.type):
            return _TICK_NANOSECONDS[self.type.unit]
        if pa.types.is_date32(self.type):
            return _DAY
        if pa.types.is_date64(self.type):
            return _TICK_NANOSECONDS["ms"]
        return None

    @property
    def zone(self) -> str | None:
        return self.type.tz if pa.types.is_timestamp(self.type) else None

    @cached_property
    def lowest(self) -> Tick:
        """The smallest tick the column's type can hold."""
        return self._bounds()[0]

    @cached_property
    def highest(self) -> Tick:
        """The largest tick the column's type can hold."""
        return self._bounds()[1]

    @property
    def _numpy_type(self) -> np.dtype[Any]:
        """The type of a plain number in NumPy; Arrow itself would ask pandas."""
        return np.dtype(f"f{self.type.bit_width // 8}" if self.floating else str(self.type))

    def _bounds(self) -> tuple[Tick, Tick]:
        if self.floating:
            limit = float(np.finfo(self._numpy_type).max)
            return -limit, limit
        if pa.types.is_date32(self.type):
            return -(2**31), 2**31 - 1
        if pa.types.is_integer(self.type):
            info = np.iinfo(self._numpy_type)
            return max(int(info.min), INT64_MIN), min(int(info.max), INT64_MAX)
        return INT64_MIN, INT64_MAX

    def ticks(self, duration: Duration, *, what: str) -> Tick:
        """A duration in ticks of this column; an error if it is no whole number of them."""
        if duration.nanoseconds is None:
            number = duration.number
            assert number is not None
            if number and self.tick_nanoseconds is not None:
                such = "days" if self.tick_nanoseconds == _DAY else "seconds"
                raise QueryError(
                    f"{what} {duration} is a plain number, but {self.describe()} is a time: "
                    f'give a duration such as "{duration} {such}"'
                )
            if self.floating:
                return float(number)
            if number != int(number):
                raise QueryError(f"{what} {duration} is not a whole number of ticks of {self.describe()}")
            return int(number)
        unit = self.tick_nanoseconds
        if unit is None:
            raise QueryError(
                f"{what} {str(duration)!r} is a length of time, but {self.describe()} is not a time: "
                "give a plain number in the column's own unit"
            )
        if duration.nanoseconds % unit:
            raise QueryError(f"{what} {str(duration)!r} is finer than the ticks of {self.describe()}")
        return duration.nanoseconds // unit

    def duration(self, ticks: Tick) -> Duration:
        """A number of ticks of this column as a duration."""
        unit = self.tick_nanoseconds
        if unit is None:
            return Duration(str(ticks), number=ticks)
        nanoseconds = int(ticks) * unit
        return Duration(f"{nanoseconds} nanoseconds", nanoseconds=nanoseconds)

    def point(self, value: PointLike | Point, *, what: str) -> Tick:
        """A watermark or a window start of the user's, in ticks (rounded down)."""
        place = parse_point(value, what=what)
        if place.nanoseconds is not None:
            unit = self.tick_nanoseconds
            if unit is None:
                raise QueryError(f"{what} is a date or time, but {self.describe()} is not a time")
            return place.nanoseconds // unit
        number = place.number
        assert number is not None
        if number == math.inf:
            return self.highest
        if self.tick_nanoseconds is not None:
            raise QueryError(
                f"{what} {number!r} is a plain number, but {self.describe()} is a time: "
                "give a moment, such as a datetime"
            )
        if self.floating:
            return float(number)
        if number != int(number):
            raise QueryError(f"{what} {number!r} is not a point on {self.describe()}")
        return int(number)

    def array(self, ticks: np.ndarray) -> pa.Array:
        """Ticks as an Arrow array of the column's own type."""
        if self.wide:
            buffer = pa.py_buffer(np.ascontiguousarray(ticks))
            return pa.Array.from_buffers(self.type, len(ticks), [None, buffer])
        if pa.types.is_date32(self.type):
            return pa.array(ticks.astype(np.int32), pa.int32()).cast(self.type)
        return pa.array(ticks.astype(self._numpy_type), self.type)

    def scalar(self, tick: Tick) -> Any:
        """One tick as a plain Python value, for messages and metrics."""
        try:
            return self.array(np.array([tick], dtype=self.dtype))[0].as_py()
        except (ValueError, OverflowError):
            return self._beyond(tick)

    def _beyond(self, tick: Tick) -> Any:
        """A tick that the column's type cannot hold: as a moment, if there is one, or as a number."""
        if self.tick_nanoseconds is None:
            return tick
        try:
            return datetime(1970, 1, 1) + timedelta(microseconds=int(tick) * self.tick_nanoseconds // 1000)
        except OverflowError:
            return tick

    def describe(self) -> str:
        return f"column {self.column!r} ({self.type})"
