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
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
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
    instant = _EPOCH + timedelta(seconds=int(start) * unit // 1_000_000_000)
    today = instant.astimezone(ZoneInfo(zone)).date()
    period = _period_number(window, today)

    def begins(number: int) -> int:
        """The first tick of a period: the first one at or after its first second."""
        return -(-first_second(_first_day(window, number), zone) * 1_000_000_000 // unit)

    while begins(period) > start:
        period -= 1
    while begins(period + 1) <= start:
        period += 1
    while begins(period) < end:
        yield begins(period), begins(period + 1)
        period += 1


def _period_number(window: Calendar, day: date) -> int:
    if window.unit in _MONTHS:
        return ((day.year - 1970) * 12 + day.month - 1) // (_MONTHS[window.unit] * window.count)
    if window.unit == "week":
        return (day - date(1969, 12, 29)).days // (7 * window.count)
    return (day - date(1970, 1, 1)).days // window.count


def _first_day(window: Calendar, number: int) -> date:
    if window.unit in _MONTHS:
        months = number * window.count * _MONTHS[window.unit]
        return date(1970 + months // 12, months % 12 + 1, 1)
    if window.unit == "week":
        return date(1969, 12, 29) + timedelta(days=7 * number * window.count)
    return date(1970, 1, 1) + timedelta(days=number * window.count)


@lru_cache(maxsize=100_000)
def first_second(day: date, zone: str) -> int:
    """The first second since 1970 at which a clock in `zone` shows `day` or a later day.

    Found by looking at the clock every minute from nine in the evening before, then every second.

    >>> from datetime import date
    >>> first_second(date(1970, 1, 2), "Europe/Berlin")
    82800
    """
    clock = ZoneInfo(zone)

    def begun(second: int) -> bool:
        return (_EPOCH + timedelta(seconds=second)).astimezone(clock).date() >= day

    before = day - timedelta(days=1)
    second = int(datetime(before.year, before.month, before.day, 21, tzinfo=clock).timestamp())
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
