"""Calendar windows: days, weeks, months, quarters and years as clocks on the wall show them.

    Europe/Berlin, the night of 2024-03-31 (clocks go from 02:00 to 03:00)
    |------------ 24 h ------------|----------- 23 h -----------|------ 24 h ...
    03-30 00:00                    03-31 00:00                  04-01 00:00

A window begins at local midnight, whatever its distance from the previous one. Where midnight
does not exist (clocks jump over it), it begins at the jump; where it exists twice, at the first.
Weeks begin on Monday. Several units (`"2 weeks"`) count from 1970-01-01, weeks from the Monday
before it. Context free. A column without a zone is read as UTC.

What clocks show, and when they change, is known to the system and to the package `tzdata`, which may be of different
age: the newer one counts.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

import numpy as np

from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.windows.base import Window
from windrow.wording import did_you_mean

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_FIRST_MONDAY = date(1969, 12, 29)


@lru_cache(maxsize=200_000)
def _boundary_second(unit: str, count: int, zone: str, index: int) -> int:
    """The instant, in seconds since 1970, at which calendar period number `index` begins."""
    if unit in _MONTHS:
        month = index * count * _MONTHS[unit]
        local = date(1970 + month // 12, month % 12 + 1, 1)
    else:
        first = _FIRST_MONDAY if unit == "week" else date(1970, 1, 1)
        local = first + timedelta(days=index * count * _DAYS[unit])
    midnight = datetime(local.year, local.month, local.day, tzinfo=_zone(zone))
    second = _seconds(midnight)
    if _local(second, midnight.tzinfo) == midnight.replace(tzinfo=None):
        return second
    # Clocks jump over midnight: the period begins at the jump, which lies between the two readings.
    low, high = _seconds(midnight.replace(fold=1)) - 1, second
    while high - low > 1:
        middle = (low + high) // 2
        if _local(middle, midnight.tzinfo) < midnight.replace(tzinfo=None):
            low = middle
        else:
            high = middle
    return high


def _seconds(moment: datetime) -> int:
    return int((moment.astimezone(UTC) - _EPOCH).total_seconds())


def _local(second: int, zone: tzinfo | None) -> datetime:
    """What a clock in `zone` shows at this instant."""
    return (_EPOCH + timedelta(seconds=second)).astimezone(zone).replace(tzinfo=None)


@dataclass(frozen=True)
class PlacedCalendar:
    """A calendar on one measure; `tick_nanoseconds` is the measure's. Its windows follow one another without end."""

    unit: str
    count: int
    zone: str
    tick_nanoseconds: int

    gapless = True

    @property
    def length(self) -> Tick:
        days = self.count * (_DAYS.get(self.unit) or _MONTHS[self.unit] * 31) + 2
        return days * 86_400_000_000_000 // self.tick_nanoseconds

    @property
    def slide(self) -> Tick:
        return self.length

    def within(self, lowest: Tick, highest: Tick) -> tuple[Tick, Tick]:
        first, last = self._reach
        return max(lowest + self.length, first), min(highest - self.length, last)

    @property
    def _reach(self) -> tuple[Tick, Tick]:
        """The first and the last tick whose windows, and a few beyond, the calendar can name."""
        epoch, day = date(1970, 1, 1), 86_400_000_000_000
        low, high = (date(1, 2, 1) - epoch).days * day, (date(9999, 12, 1) - epoch).days * day
        tick = self.tick_nanoseconds
        return low // tick + 6 * self.length, high // tick - 6 * self.length

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._index(int(first)), self._index(int(last))
        while self._boundary(low) > first:
            low -= 1
        while self._boundary(high + 1) <= last:
            high += 1
        edges = np.array([self._boundary(i) for i in range(low, high + 2)], dtype=np.int64)
        keep = np.flatnonzero((edges[1:] > first) & (edges[:-1] <= last))
        return edges[:-1][keep], edges[1:][keep]

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends, ascending, of the windows that hold one of `times`; computed by date,
        so that events centuries apart cost no more than others."""
        dates = np.floor_divide(times, 86_400_000_000_000 // self.tick_nanoseconds or 1)
        first = np.unique(dates) * (86_400_000_000_000 // self.tick_nanoseconds or 1)
        near = sorted({self._index(int(t)) + i for t in first.tolist() for i in (-1, 0, 1, 2)})
        edges = {i: self._boundary(i) for i in near}
        pairs = [(edges[i], edges[i + 1]) for i in near if i + 1 in edges]
        starts, ends = (np.array([p[side] for p in pairs], np.int64) for side in (0, 1))
        at = np.searchsorted(starts, times, side="right") - 1
        held = np.unique(at[ends[at] > times])
        return starts[held], ends[held]

    def edges(self, times: np.ndarray) -> np.ndarray:
        return np.union1d(*self.windows_at(times)) if len(times) else times

    def first_open(self, horizon: Tick, floor: Tick) -> Tick:
        return max(self.windows(horizon, horizon)[0][0].item(), floor)

    def last_closed(self, point: Tick) -> tuple[Tick, Tick]:
        begun = self.windows(point, point)[0][0]
        starts, ends = self.windows(begun - 1, begun - 1)
        return starts[0].item(), ends[0].item()

    def first_start(self, point: Tick) -> Tick:
        starts, _ = self.windows(point, point + 2 * self.length)
        return starts[starts >= point][0].item()

    def _boundary(self, index: int) -> int:
        try:
            second = _boundary_second(self.unit, self.count, self.zone, index)
        except (OverflowError, ValueError) as problem:
            raise QueryError("a calendar window lies outside the years 1 to 9999") from problem
        return -(-second * 1_000_000_000 // self.tick_nanoseconds)

    def _index(self, tick: int) -> int:
        """The period that holds the tick in UTC: at most one away from the local one."""
        day = tick * self.tick_nanoseconds // 86_400_000_000_000
        if self.unit in _MONTHS:
            month = int(np.datetime64(day, "D").astype("datetime64[M]").astype(np.int64))
            return month // (self.count * _MONTHS[self.unit])
        if self.unit == "week":
            day += 3
        return day // (self.count * _DAYS[self.unit])


@dataclass(frozen=True)
class Calendar(Window):
    """`count` calendar units in the zone `tz`, or in that of the time column."""

    unit: str
    count: int
    tz: str | None

    def place(self, measure: Measure) -> tuple[PlacedCalendar, ...]:
        tick = measure.tick_nanoseconds
        if tick is None:
            raise QueryError(f"a calendar window needs a timestamp or date, not {measure.describe()}")
        zone = self.tz or measure.zone or "UTC"
        _zone(zone)
        if measure.zone is None and tick == 86_400_000_000_000 and zone != "UTC":
            raise QueryError(f"{measure.describe()} has no time of day: a calendar window on it takes no tz")
        return (PlacedCalendar(self.unit, self.count, zone, tick),)

    def __str__(self) -> str:
        plural = "s" if self.count > 1 else ""
        where = f" in {self.tz}" if self.tz else ""
        return f"calendar {self.count} {self.unit}{plural}{where}"


def calendar(period: str, *, tz: str | None = None) -> Calendar:
    """Windows of whole days, weeks, months, quarters or years, as clocks in a time zone show them.

    They begin at local midnight, weeks on Monday; across a change of clocks a day has 23 or 25 hours.

    Parameters
    ----------
    period
        Such as `"1 day"`, `"2 weeks"`, `"1 month"`, `"1 quarter"` or `"1 year"`. Several units are counted
        from 1970-01-01, weeks from the Monday before it.
    tz
        The name of a time zone, or a fixed offset such as `"+05:30"`. None (default) is the zone of the time
        column, and UTC where it has none.

    Returns
    -------
    Calendar
        A context-free window, for a time column of timestamps or dates.

    Raises
    ------
    QueryError
        If `period` is no number of these units, or there is no such zone.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.calendar("1 day", tz="Europe/Berlin"))
    'calendar 1 day in Europe/Berlin'
    """
    match = re.fullmatch(r"\s*(\d*)\s*(day|week|month|quarter|year)s?\s*", str(period).lower())
    if match is None:
        raise QueryError(
            f'calendar period {period!r}: write "1 day", "2 weeks", "1 month", "1 quarter" or "1 year"'
        )
    count = int(match[1] or 1)
    if count < 1:
        raise QueryError(f"a calendar period must be longer than zero, not {period!r}")
    if count > 10_000:
        raise QueryError(f"a calendar period of {period!r} is longer than the calendar")
    if tz is not None:
        _zone(tz)
    return Calendar(match[2], count, tz)


@cache
def _zone(name: str) -> tzinfo:
    """A zone by its name, or a fixed offset as Arrow writes it (+05:30)."""
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if offset:
        delta = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-delta if offset[1] == "-" else delta)
    try:
        found = zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as problem:
        meant = did_you_mean(name, zoneinfo.available_timezones())
        raise QueryError(f"there is no time zone {name!r}{meant}") from problem
    return _of_the_package(name) or found


def _of_the_package(name: str) -> tzinfo | None:
    """The zone as the package `tzdata` has it, where it is newer than the system's."""
    try:
        import tzdata

        file = resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
        folders = [Path(folder) for folder in zoneinfo.TZPATH if (Path(folder) / name).is_file()]
        if not folders or _version(folders[0]) >= tzdata.IANA_VERSION:
            return None
        with file.open("rb") as opened:
            return zoneinfo.ZoneInfo.from_file(opened, key=name)
    except (ImportError, OSError):  # no package, or no such zone in it
        return None


def _version(folder: Path) -> str:
    """The release of the zones in a folder, such as 2025b; the highest if it is not known."""
    for file, pattern in (("tzdata.zi", r"# version (\S+)"), ("+VERSION", r"(\S+)")):
        if (folder / file).is_file():
            with (folder / file).open(encoding="utf-8") as opened:
                match = re.match(pattern, opened.readline())
            if match:
                return match[1]
    return "~"
