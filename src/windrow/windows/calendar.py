"""Calendar windows: minutes to years as clocks on the wall show them.

    Europe/Berlin, the night of 2024-03-31 (clocks go from 02:00 to 03:00)
    |------------ 24 h ------------|----------- 23 h -----------|------ 24 h ...
    03-30 00:00                    03-31 00:00                  04-01 00:00

A window begins at local midnight, whatever its distance from the previous one. Where midnight
does not exist (clocks jump over it), it begins at the jump; where it exists twice, at the first.
Weeks begin on Monday and years in January, unless another day or month is given. Several units (`"2 weeks"`) count from 1970-01-01, weeks and
years from the last such day up to it. An `offset` moves all beginnings on the clock. Days off belong to the business day before them.

    Europe/Berlin, the night of 2024-10-27 (clocks go from 03:00 to 02:00), windows of 1 hour
    |---- 1 h ----|---- 1 h ----|---- 1 h ----|---- 1 h ...
    01:00         02:00 CEST    02:00 CET     03:00

Hours and minutes begin whenever a clock shows a multiple of them since midnight, or jumps over one: one that clocks show twice begins twice.

Context free. A column without a zone is read as UTC.

`zones.py` knows when clocks change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import numpy as np

from windrow.durations import DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.windows.base import Irregular, Window
from windrow.windows.clock import DAY_SECONDS, PlacedClock
from windrow.windows.zones import Consecutive, first_instant, zone_named
from windrow.wording import choices

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_SECONDS = {"minute": 60, "hour": 3_600}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


@dataclass(frozen=True)
class Periods:
    """What clocks and calendars show where a period begins: `count` units, and where they count from.

    `first` is the weekday (0 is Monday) or the month (0 is January) with which a week or a year begins, `offset` moves all beginnings by seconds on the clock.
    """

    unit: str
    count: int
    first: int = 0
    offset: int = 0
    holidays: tuple[date, ...] = ()

    def begin(self, index: int) -> datetime:
        """What a clock shows when period number `index` begins, without a zone."""
        if self.unit in _MONTHS:
            month = index * self.count * _MONTHS[self.unit] + self._shift
            local = date(1970 + month // 12, month % 12 + 1, 1)
        elif self.unit == "business day":
            calendar = _business(self.holidays)
            first = np.busday_offset("1970-01-01", index * self.count, "forward", busdaycal=calendar)
            local = date.fromisoformat(str(first))
        else:
            local = date(1970, 1, 1) + timedelta(days=self._first_day + index * self.count * _DAYS[self.unit])
        return datetime(local.year, local.month, local.day) + timedelta(seconds=self.offset)

    def number(self, day: int) -> int:
        """The period that holds a day, as a number of days since 1970; at most a few away from the right one."""
        if self.unit in _MONTHS:
            month = int(np.datetime64(day, "D").astype("datetime64[M]").astype(np.int64))
            return (month - self._shift) // (self.count * _MONTHS[self.unit])
        if self.unit == "business day":
            calendar = _business(self.holidays)
            passed = np.busday_count("1970-01-01", np.datetime64(day + 1, "D"), busdaycal=calendar).item()
            return (passed - 1) // self.count
        return (day - self._first_day) // (self.count * _DAYS[self.unit])

    @property
    def most_days(self) -> int:
        """A number of days that no period is longer than."""
        if self.unit == "business day":
            return 7 * (self.count // 5 + 1) + 2 * len(self.holidays)
        return self.count * (_DAYS.get(self.unit) or _MONTHS[self.unit] * 31)

    @property
    def _first_day(self) -> int:
        """The last day up to 1970-01-01, a Thursday, with which a week begins."""
        return -((3 - self.first) % 7) if self.unit == "week" else 0

    @property
    def _shift(self) -> int:
        """The months that years, and the quarters of these, begin after January, or before it."""
        return self.first - 12 if self.first else 0


@cache
def _business(holidays: tuple[date, ...]) -> np.busdaycalendar:
    return np.busdaycalendar(holidays=[np.datetime64(day, "D") for day in holidays])


@lru_cache(maxsize=200_000)
def _boundary_second(periods: Periods, zone: str, index: int) -> int:
    """The instant, in seconds since 1970, at which calendar period number `index` begins."""
    return first_instant(periods.begin(index), zone)


@dataclass(frozen=True)
class PlacedCalendar(Consecutive):
    """A calendar on one measure; `tick_nanoseconds` is the measure's. Its windows follow one another without end."""

    periods: Periods
    zone: str
    tick_nanoseconds: int

    @property
    def length(self) -> Tick:
        days = self.periods.most_days + 2 + 2 * abs(self.periods.offset) // 86_400
        return days * 86_400_000_000_000 // self.tick_nanoseconds

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._index(int(first)), self._index(int(last))
        while self._boundary(low) > first:
            low -= 1
        while self._boundary(high + 1) <= last:
            high += 1
        edges = np.array([self._boundary(i) for i in range(low, high + 2)], dtype=np.int64)
        # A day that a zone has left out has no length.
        keep = np.flatnonzero((edges[1:] > np.maximum(first, edges[:-1])) & (edges[:-1] <= last))
        return edges[:-1][keep], edges[1:][keep]

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends, ascending, of the windows that hold one of `times`; computed by date,
        so that events centuries apart cost no more than others."""
        dates = np.floor_divide(times, 86_400_000_000_000 // self.tick_nanoseconds or 1)
        first = np.unique(dates) * (86_400_000_000_000 // self.tick_nanoseconds or 1)
        near = sorted({self._index(int(t)) + i for t in first.tolist() for i in (-2, -1, 0, 1, 2, 3)})
        edges = {i: self._boundary(i) for i in near}
        pairs = [(edges[i], edges[i + 1]) for i in near if i + 1 in edges]
        starts, ends = (np.array([p[side] for p in pairs], np.int64) for side in (0, 1))
        at = np.searchsorted(starts, times, side="right") - 1
        held = np.unique(at[ends[at] > times])
        return starts[held], ends[held]

    def _boundary(self, index: int) -> int:
        try:
            second = _boundary_second(self.periods, self.zone, index)
        except (OverflowError, ValueError) as problem:
            raise QueryError("a calendar window lies outside the years 1 to 9999") from problem
        return -(-second * 1_000_000_000 // self.tick_nanoseconds)

    def _index(self, tick: int) -> int:
        """The period that holds the tick in UTC: at most two away from the local one."""
        return self.periods.number(tick * self.tick_nanoseconds // 86_400_000_000_000)


@dataclass(frozen=True)
class Calendar(Window):
    """`count` units as clocks in the zone `tz` show them, or in that of the time column; see `Periods` for the others."""

    unit: str
    count: int
    tz: str | None
    first: int = 0
    offset: int = 0
    holidays: tuple[date, ...] = ()

    def place(self, measure: Measure) -> tuple[Irregular, ...]:
        tick = measure.tick_nanoseconds
        if tick is None:
            raise QueryError(f"a calendar window needs a timestamp or date, not {measure.describe()}")
        zone = self.tz or measure.zone or "UTC"
        zone_named(zone)
        dated = measure.zone is None and tick == DAY_SECONDS * 10**9
        if dated and zone != "UTC":
            raise QueryError(f"{measure.describe()} has no time of day: a calendar window on it takes no tz")
        if dated and (self.unit in _SECONDS or self.offset % DAY_SECONDS):
            raise QueryError(
                f"{measure.describe()} has no time of day: windows on it begin with a day, unlike {self}"
            )
        if self.unit in _SECONDS:
            return (PlacedClock(self.count * _SECONDS[self.unit], self.offset, zone, tick),)
        return (
            PlacedCalendar(
                Periods(self.unit, self.count, self.first, self.offset, self.holidays), zone, tick
            ),
        )

    def __str__(self) -> str:
        plural = "s" if self.count > 1 else ""
        begins = ""
        if self.first:
            begins = f" from {_WEEKDAYS[self.first] if self.unit == 'week' else _NAMES[self.first]}"
        moved = f", {self.offset:+} seconds" if self.offset else ""
        without = f", {len(self.holidays)} holidays" if self.holidays else ""
        where = f" in {self.tz}" if self.tz else ""
        return f"calendar {self.count} {self.unit}{plural}{begins}{moved}{without}{where}"


def calendar(
    period: str,
    *,
    tz: str | None = None,
    week_start: str = "monday",
    year_start: str = "january",
    offset: DurationLike = "0 seconds",
    holidays: Iterable[date] = (),
) -> Calendar:
    """Windows of whole minutes, hours, days, business days, weeks, months, quarters or years, as clocks in a time zone show them.

    They begin at local midnight, or at multiples of hours and minutes since then; across a change of clocks a day has 23 or 25 hours.

    Parameters
    ----------
    period
        Such as `"1 day"`, `"2 weeks"`, `"1 month"`, `"1 quarter"`, `"1 year"`, `"1 business day"`, `"6 hours"` or `"15 minutes"`. Several units are
        counted from 1970-01-01, weeks and years from the last day before it with which one begins; hours and minutes must divide a day.
    tz
        The name of a time zone, or a fixed offset such as `"+05:30"`. None (default) is the zone of the time
        column, and UTC where it has none.
    week_start
        The day with which weeks begin; "monday" by default.
    year_start
        The month with which years begin, and their quarters; "january" by default.
    offset
        By how much all windows begin later on the clock, or earlier if negative: `"6 hours"` for days from six to six. Whole seconds, less than a period.
    holidays
        Days off besides Saturdays and Sundays, for business days. A day off belongs to the business day before it.

    Returns
    -------
    Calendar
        A context-free window, for a time column of timestamps or dates.

    Raises
    ------
    QueryError
        If `period` is no number of these units, there is no such zone, day or month, or an option does not go with the period.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.calendar("1 day", tz="Europe/Berlin"))
    'calendar 1 day in Europe/Berlin'
    >>> str(wr.calendar("1 week", week_start="sunday"))
    'calendar 1 week from sunday'
    """
    match = re.fullmatch(
        r"\s*(\d*)\s*(minute|hour|day|business\s+day|week|month|quarter|year)s?\s*", str(period).lower()
    )
    if match is None:
        raise QueryError(
            f'calendar period {period!r}: write "1 day", "2 weeks", "1 month", "1 quarter" or "1 year", '
            '"1 business day", "6 hours" or "15 minutes"'
        )
    count, unit = int(match[1] or 1), " ".join(match[2].split())
    if count < 1:
        raise QueryError(f"a calendar period must be longer than zero, not {period!r}")
    if count > 10_000:
        raise QueryError(f"a calendar period of {period!r} is longer than the calendar")
    if unit in _SECONDS and DAY_SECONDS % (count * _SECONDS[unit]):
        raise QueryError(
            f"a calendar period of {period!r} does not divide a day; wr.tumbling takes any length"
        )
    if tz is not None:
        zone_named(tz)
    first = _place(week_start, _WEEKDAYS, "week_start", unit == "week", period)
    first += _place(year_start, _NAMES, "year_start", unit in ("quarter", "year"), period)
    days = _days_off(holidays)
    if days and unit != "business day":
        raise QueryError(f"holidays are for business days, not for a calendar period of {period!r}")
    moved = parse_duration(offset, what="offset")
    whole, rest = divmod(moved.nanoseconds or 0, 10**9)
    shortest = count * (
        _SECONDS.get(unit) or _MONTHS.get(unit, 0) * 28 * DAY_SECONDS or _DAYS.get(unit, 1) * DAY_SECONDS
    )
    if rest or moved.number or abs(whole) >= shortest:
        raise QueryError(f"offset must be whole seconds, and less than {period!r}, not {offset!r}")
    return Calendar(unit, count, tz, first, whole, days)


def _days_off(holidays: Any) -> tuple[date, ...]:
    if isinstance(holidays, str) or not isinstance(holidays, Iterable):
        raise QueryError(f"holidays are several dates, such as [date(2024, 12, 25)], not {holidays!r}")
    days = list(holidays)
    for day in days:
        if not isinstance(day, date) or isinstance(day, datetime):
            raise QueryError(f"holidays are dates, not {day!r}")
    return tuple(sorted(set(days)))


def _place(name: str, names: tuple[str, ...], option: str, fits: bool, period: str) -> int:
    """The place of a weekday or a month among all of them."""
    known = str(name).lower()
    if known not in names:
        raise QueryError(f"{option} {name!r} is not one{choices(known, names)}")
    if names.index(known) and not fits:
        raise QueryError(f"{option} does not go with a calendar period of {period!r}")
    return names.index(known)
