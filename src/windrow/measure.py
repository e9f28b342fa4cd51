"""The measure that windows are cut on: a time column, or any other advancing number.

A `Measure` knows how one Arrow type maps to *ticks*, the numbers that the engine works with:
int64 for timestamps, dates and integers, float64 for floating-point columns. It turns durations,
watermarks and window bounds into ticks and back, and it knows which ticks the type can hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
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
        return bool(pa.types.is_timestamp(kind) or pa.types.is_int64(kind) or pa.types.is_date64(kind))

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

    def _bounds(self) -> tuple[Tick, Tick]:
        if self.floating:
            limit = float(np.finfo(self.type.to_pandas_dtype()).max)
            return -limit, limit
        if pa.types.is_date32(self.type):
            return -(2**31), 2**31 - 1
        if pa.types.is_integer(self.type):
            info = np.iinfo(self.type.to_pandas_dtype())
            return max(int(info.min), INT64_MIN), min(int(info.max), INT64_MAX)
        return INT64_MIN, INT64_MAX

    def ticks(self, duration: Duration, *, what: str) -> Tick:
        """A duration in ticks of this column; an error if it is no whole number of them."""
        if duration.nanoseconds is None:
            number = duration.number
            assert number is not None
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

    def point(self, value: PointLike, *, what: str) -> Tick:
        """A watermark or a window start given by the user, in ticks (rounded down)."""
        if isinstance(value, pa.Scalar):
            value = value.value if hasattr(value, "value") else value.as_py()
        if isinstance(value, np.datetime64):
            value = int(value.astype("datetime64[ns]").astype(np.int64))
            return self._from_nanoseconds(value, what)
        if isinstance(value, datetime):
            if value.tzinfo is None:
                value = value.replace(tzinfo=UTC)
            delta = value - datetime(1970, 1, 1, tzinfo=UTC)
            micros = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
            return self._from_nanoseconds(micros * 1_000, what)
        if isinstance(value, date):
            return self._from_nanoseconds((value - date(1970, 1, 1)).days * _DAY, what)
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return float(value) if self.floating else int(value)
        if isinstance(value, (float, np.floating)) and not np.isnan(value):
            if self.floating:
                return float(value)
            if value == int(value):
                return int(value)
        raise QueryError(f"{what} {value!r} is not a point on {self.describe()}")

    def _from_nanoseconds(self, nanoseconds: int, what: str) -> Tick:
        unit = self.tick_nanoseconds
        if unit is None:
            raise QueryError(f"{what} is a date or time, but {self.describe()} is not a time")
        return nanoseconds // unit

    def array(self, ticks: np.ndarray) -> pa.Array:
        """Ticks as an Arrow array of the column's own type."""
        if self.wide:
            buffer = pa.py_buffer(np.ascontiguousarray(ticks))
            return pa.Array.from_buffers(self.type, len(ticks), [None, buffer])
        if pa.types.is_date32(self.type):
            return pa.array(ticks.astype(np.int32), pa.int32()).cast(self.type)
        if self.floating:
            return pa.array(ticks.astype(self.type.to_pandas_dtype()), self.type)
        return pa.array(ticks.astype(self.type.to_pandas_dtype()), self.type)

    def scalar(self, tick: Tick) -> Any:
        """One tick as a plain Python value, for messages and metrics."""
        try:
            return self.array(np.array([tick], dtype=self.dtype))[0].as_py()
        except (ValueError, OverflowError):
            return tick

    def describe(self) -> str:
        return f"column {self.column!r} ({self.type})"
