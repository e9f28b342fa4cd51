"""When clocks in a zone show what, and windows between such instants.

What clocks show, and when they change, is known to the system and to the package `tzdata`, which may be of different
age: the newer one counts.
"""

from __future__ import annotations

import re
import zoneinfo
from abc import abstractmethod
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.wording import did_you_mean

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Consecutive:
    """Windows that follow one another without end, on a measure of ticks of so many nanoseconds."""

    tick_nanoseconds: int
    gapless = True

    @property
    @abstractmethod
    def length(self) -> Tick:
        """As `Irregular.length`."""

    @abstractmethod
    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        """As `Irregular.windows`."""

    @abstractmethod
    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `Irregular.windows_at`."""

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


def first_instant(shown: datetime, zone: str) -> int:
    """The first second since 1970 at which a clock shows this, or has jumped over it."""
    midnight = shown.replace(tzinfo=zone_named(zone))
    second = _seconds(midnight)
    if _local(second, midnight.tzinfo) == shown:
        return second
    # Clocks jump over it: the period begins at the jump, which lies between the two readings.
    low, high = _seconds(midnight.replace(fold=1)) - 1, second
    while high - low > 1:
        middle = (low + high) // 2
        if _local(middle, midnight.tzinfo) < shown:
            low = middle
        else:
            high = middle
    return high


def last_instant(shown: datetime, zone: str) -> int:
    """The last second since 1970 at which a clock shows this, or has jumped over it."""
    second = _seconds(shown.replace(tzinfo=zone_named(zone), fold=1))
    return second if _local(second, zone_named(zone)) == shown else first_instant(shown, zone)


def offset_at(second: int, zone: str) -> float:
    """By how many seconds clocks in a zone are ahead of UTC at an instant."""
    shown = (_EPOCH + timedelta(seconds=second)).astimezone(zone_named(zone)).utcoffset()
    assert shown is not None
    return shown.total_seconds()


def _seconds(moment: datetime) -> int:
    return int((moment.astimezone(UTC) - _EPOCH).total_seconds())


def _local(second: int, zone: tzinfo | None) -> datetime:
    """What a clock in `zone` shows at this instant."""
    return (_EPOCH + timedelta(seconds=second)).astimezone(zone).replace(tzinfo=None)


@cache
def zone_named(name: str) -> tzinfo:
    """A zone by its name, or a fixed offset as Arrow writes it (+05:30)."""
    offset = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if offset:
        if int(offset[2]) > 23 or int(offset[3]) > 59:
            raise QueryError(f"there is no time zone {name!r}: offsets go from -23:59 to +23:59")
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
