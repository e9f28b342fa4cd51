"""Which windows hold an instant, or some of a lifespan, by definition: the referee's own window arithmetic.

    sliding(3, every=1), instant 4          0    1    2    3    4    5    6    7
    k = 2                                             |--------------|
    k = 3                                                  |--------------|
    k = 4                                                       |--------------|

A window `[a, b)` holds some of `[start, end)` if `start < b` and `a < end`; an instant is the shortest lifespan.
Plain integers (or floats), floor division, and for calendars the clock on the wall: a day begins
at the first second at which a clock in that zone shows its date or a later one.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from windrow.measure import Measure, Tick
from windrow.windows import Window
from windrow.windows.band import Band
from windrow.windows.base import Periodic
from windrow.windows.calendar import Calendar
from windrow.windows.cumulate import Cumulate
from windrow.windows.sliding import Sliding
from windrow.windows.snapshot import Snapshot
from windrow.windows.tumbling import Tumbling

Interval = tuple[Tick, Tick]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTES = {"minute": 1, "hour": 60}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def windows_of(window: Window, measure: Measure, tick: Tick) -> list[Interval]:
    """All `(start, end)` of `window`, in ticks, with `start <= tick < end`, ascending.

    >>> import pyarrow as pa
    >>> from windrow.measure import Measure
    >>> from windrow.windows import sliding
    >>> windows_of(sliding(3, every=1), Measure("t", pa.int64()), 4)
    [(2, 5), (3, 6), (4, 7)]
    """
    return windows_over(window, measure, tick, after(measure, tick))


def windows_over(window: Window, measure: Measure, start: Tick, end: Tick) -> list[Interval]:
    """All windows that share an instant with `[start, end)`, ascending.

    >>> import pyarrow as pa
    >>> from windrow.measure import Measure
    >>> from windrow.windows import tumbling
    >>> windows_over(tumbling(5), Measure("t", pa.int64()), 4, 10)
    [(0, 5), (5, 10)]
    """
    find = PLACES.get(type(window), _as_placed)
    return sorted(find(window, measure, start, end))


def after(measure: Measure, tick: Tick) -> Tick:
    """The first instant after a tick: the next integer, or the next float.

    >>> import pyarrow as pa
    >>> after(Measure("t", pa.int64()), 4), after(Measure("t", pa.float64()), 1.0)
    (5, 1.0000000000000002)
    """
    return math.nextafter(tick, math.inf) if measure.floating else tick + 1


def before(measure: Measure, tick: Tick) -> Tick:
    """The last instant before a tick: where a lifespan that ends there has its last."""
    return math.nextafter(tick, -math.inf) if measure.floating else tick - 1


def _periods(every: Tick, offset: Tick, length: Tick, start: Tick, end: Tick) -> Iterator[Interval]:
    """Windows `[offset + k*every, offset + (k + whole)*every + rest)` that hold some of `[start, end)`."""
    offset = offset % every
    whole = int(length // every)
    rest = length - whole * every
    k = int((end - offset) // every)
    while offset + (k + 1) * every < end:
        k += 1
    while offset + k * every >= end:
        k -= 1
    while start < offset + (k + whole) * every + rest:
        yield offset + k * every, offset + (k + whole) * every + rest
        k -= 1


def _tumbling(window: Tumbling, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    length = measure.ticks(window.length, what="length")
    return _periods(length, measure.ticks(window.offset, what="offset"), length, start, end)


def _sliding(window: Sliding, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    every = measure.ticks(window.every, what="every")
    length = measure.ticks(window.length, what="length")
    return _periods(every, measure.ticks(window.offset, what="offset"), length, start, end)


def _cumulate(window: Cumulate, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    size = measure.ticks(window.size, what="size")
    step = measure.ticks(window.step, what="step")
    offset = measure.ticks(window.offset, what="offset")
    steps = round(size / step)
    for i in range(1, steps + 1):
        yield from _periods(size, offset, size if i == steps else i * step, start, end)


def _band(window: Band, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    begins = measure.point(window.start, what="start")
    ends = begins + measure.ticks(window.length, what="length")
    if start < ends and begins < end:
        yield begins, ends


def _snapshot(window: Snapshot, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    yield start, after(measure, start)


def _calendar(window: Calendar, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    unit = measure.tick_nanoseconds
    if unit is None:
        raise TypeError(f"{window} needs a time, not {measure.describe()}")
    zone = window.tz or measure.zone or "UTC"
    if window.unit in _MINUTES:
        yield from _clock(window, zone, unit, start, end)
        return
    instant = _EPOCH + timedelta(seconds=int(start) * unit // 1_000_000_000)
    today = instant.astimezone(ZoneInfo(zone)).date()
    period = _period_number(window, today)

    def begins(number: int) -> int:
        """The first tick of a period: the first one at or after its first second."""
        first = datetime.combine(_first_day(window, number), time()) + timedelta(seconds=window.offset)
        return -(-first_second(first, zone) * 1_000_000_000 // unit)

    while begins(period) > start:
        period -= 1
    while begins(period + 1) <= start:
        period += 1
    while begins(period) < end:
        yield begins(period), begins(period + 1)
        period += 1


def _period_number(window: Calendar, day: date) -> int:
    if window.unit in _MONTHS:
        months = (day.year - 1970) * 12 + day.month - 1 - window.first
        return months // (_MONTHS[window.unit] * window.count)
    if window.unit == "week":
        return (day - date(1969, 12, 22)).days // (7 * window.count)
    if window.unit == "business day":
        days = _business_days(window)
        return (bisect_right(days, day) - 1 - bisect_left(days, date(1970, 1, 1))) // window.count
    return (day - date(1970, 1, 1)).days // window.count


def _first_day(window: Calendar, number: int) -> date:
    if window.unit in _MONTHS:
        months = number * window.count * _MONTHS[window.unit] + (window.first - 12 if window.first else 0)
        return date(1970 + months // 12, months % 12 + 1, 1)
    if window.unit == "week":
        begin = max(date(1969, 12, 26) + timedelta(days=i) for i in range(7) if _weekday(i, window.first))
        return begin + timedelta(days=7 * number * window.count)
    if window.unit == "business day":
        days = _business_days(window)
        return days[bisect_left(days, date(1970, 1, 1)) + number * window.count]
    return date(1970, 1, 1) + timedelta(days=number * window.count)


def _weekday(days: int, first: int) -> bool:
    """Whether the day so many days after 1969-12-26 is this weekday."""
    return (date(1969, 12, 26) + timedelta(days=days)).weekday() == first


@lru_cache(maxsize=100)
def _business_days(window: Calendar) -> list[date]:
    """All working days from 1915 to 2034."""
    days = (date(1970, 1, 1) + timedelta(days=i) for i in range(-20_000, 23_500))
    return [day for day in days if day.weekday() < 5 and day not in window.holidays]


def _clock(window: Calendar, zone: str, unit: int, start: Tick, end: Tick) -> Iterator[Interval]:
    """Windows between the minutes at which a clock shows a multiple of the period, or has jumped over one."""
    minutes = [int(tick) * unit // 60_000_000_000 for tick in (start, end)]
    edges = [
        minute * 60_000_000_000 // unit
        for minute in range(minutes[0] - 2 * 1440, minutes[1] + 2 * 1440)
        if _begins(minute, window.count * _MINUTES[window.unit], window.offset, zone)
    ]
    yield from ((a, b) for a, b in pairwise(edges) if a < end and start < b)


@lru_cache(maxsize=1_000_000)
def _begins(minute: int, period: int, offset: int, zone: str) -> bool:
    """Whether a window begins with this minute since 1970."""

    def shown(minute: int) -> int:
        clock = (_EPOCH + timedelta(minutes=minute)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        return int((clock - datetime(1970, 1, 1)).total_seconds() - offset) // 60

    return shown(minute) % period == 0 or shown(minute) // period > shown(minute - 1) // period


@lru_cache(maxsize=100_000)
def first_second(first: datetime, zone: str) -> int:
    """The first second since 1970 at which a clock in `zone` shows `first` or a later time.

    Found by looking at the clock every minute from three hours before, then every second.

    >>> first_second(datetime(1970, 1, 2), "Europe/Berlin")
    82800
    """
    clock = ZoneInfo(zone)

    def begun(second: int) -> bool:
        return (_EPOCH + timedelta(seconds=second)).astimezone(clock).replace(tzinfo=None) >= first

    second = int((first - timedelta(hours=3)).replace(tzinfo=clock).timestamp())
    while not begun(second):
        second += 60
    while begun(second - 1):
        second -= 1
    return second


def _as_placed(window: Window, measure: Measure, start: Tick, end: Tick) -> Iterator[Interval]:
    """A window type that this file does not know: what its own placement says."""
    for placed in window.place(measure):
        if isinstance(placed, Periodic):
            yield from _periods(placed.every, placed.offset, placed.length, start, end)
        else:
            found = placed.windows(start, before(measure, end))
            pairs = zip(*(edges.tolist() for edges in found), strict=True)
            yield from ((a, b) for a, b in pairs if start < b and a < end)


PLACES: dict[type[Window], Callable[[Any, Measure, Tick, Tick], Iterator[Interval]]] = {
    Band: _band,
    Calendar: _calendar,
    Cumulate: _cumulate,
    Sliding: _sliding,
    Snapshot: _snapshot,
    Tumbling: _tumbling,
}
