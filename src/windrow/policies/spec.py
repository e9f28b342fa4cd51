"""What a policy window is, as frozen values: eviction, trigger, partitions (Gedik, sections 3.1 to 3.5).

    tumbling(count(100))                        full after 100 rows; processed and emptied as a whole
    sliding(count(100), count(10))              the last 100 rows, processed every 10
    sliding(delta("ts", 60), time("1 second"), partitioned=True, partition_eviction=partition_age("1 hour"))

A policy says *when*; in which *order* a row is inserted, others are evicted and the window is processed, is said by
the `loop`. A spec is made of values alone, and prints as the text that `text` reads.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import numpy as np

from windrow.durations import NANOSECONDS, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.wording import near

LEAST_RECENTLY_UPDATED = "least recently updated"
LEAST_FREQUENTLY_UPDATED = "least frequently updated"
OLDEST = "oldest"
# Such names need no quotes in a text.
_PLAIN = re.compile(r"[^\s,()\"]+( [^\s,()\"]+)*")
SELECTIONS = (LEAST_RECENTLY_UPDATED, LEAST_FREQUENTLY_UPDATED, OLDEST)


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


def _written(policy: object) -> str:
    name = type(policy).__name__
    return name[0].lower() + name[1:]


@dataclass(frozen=True)
class _Rows:
    """A policy that counts."""

    size: int

    def __str__(self) -> str:
        return f"{_written(self)}({self.size})"


class Count(_Rows):
    """A policy of a number of rows: what `count` makes."""


@dataclass(frozen=True)
class Delta:
    """A policy of distance, which `delta` makes. One of `number` and `nanoseconds` is set."""

    column: str
    number: int | float | None = None
    nanoseconds: int | None = None

    def __str__(self) -> str:
        plain = _PLAIN.fullmatch(self.column)
        column = self.column if plain else json.dumps(self.column, ensure_ascii=False)
        return f"delta({column}, {self.threshold})"

    @property
    def threshold(self) -> str:
        """The threshold as people write it."""
        return repr(self.number) if self.nanoseconds is None else spoken(self.nanoseconds)


@dataclass(frozen=True)
class _Period:
    """A policy of a length of time."""

    nanoseconds: int

    def __str__(self) -> str:
        return f"{_written(self)}({spoken(self.nanoseconds)})"


class Time(_Period):
    """A policy of the clock: what `time` makes."""


@dataclass(frozen=True)
class Punct:
    """A policy of punctuations: what `punct` makes."""

    def __str__(self) -> str:
        return "punct()"


class PartitionCount(_Rows):
    """At most `size` subwindows: what `partition_count` makes."""


class TupleCount(_Rows):
    """At most `size` rows in all subwindows: what `tuple_count` makes."""


class PartitionAge(_Period):
    """Subwindows that have not grown for a while are evicted: what `partition_age` makes."""


Trigger: TypeAlias = "Count | Delta | Time"
Eviction: TypeAlias = "Count | Delta | Time | Punct"
PartitionEviction: TypeAlias = "PartitionCount | TupleCount | PartitionAge"
Selection: TypeAlias = "str | Callable[..., Any]"


def count(size: int) -> Count:
    """A policy of a number of rows: how many a window holds, or after how many it is processed.

    Parameters
    ----------
    size
        How many; 0 only as the eviction of a sliding window that keeps no row.

    Returns
    -------
    Count
        For an eviction or a trigger.

    Raises
    ------
    QueryError
        If `size` is no whole number from 0 on.

    Examples
    --------
    >>> print(count(100))
    count(100)
    """
    return Count(whole_number(size, "count", least=0))


def delta(column: str, threshold: DurationLike) -> Delta:
    """A policy of the distance between the values of a column that never goes back.

    Parameters
    ----------
    column
        A column of numbers, dates or timestamps.
    threshold
        How far values may lie apart: a number in the unit of the column, or a duration for a column of time.

    Returns
    -------
    Delta
        For an eviction or a trigger.

    Raises
    ------
    QueryError
        If the threshold is negative or not finite.

    Examples
    --------
    >>> print(delta("ts", "1 minute"))
    delta(ts, 1 minute)
    """
    if not isinstance(column, str) or not column:
        raise QueryError(f"delta needs the name of a column, not {column!r}")
    if isinstance(threshold, float) and not math.isfinite(threshold):
        raise QueryError(f"the threshold of delta({column}, ..) must be a finite number, not {threshold!r}")
    parsed = parse_duration(threshold, what="the threshold of delta")
    if parsed.magnitude < 0:
        raise QueryError(f"the threshold of delta({column}, ..) must not be negative, and is {parsed}")
    return Delta(column, parsed.number, parsed.nanoseconds)


def time(period: DurationLike) -> Time:
    """A policy of a length of time on the window's clock.

    Parameters
    ----------
    period
        `"10 seconds"`, a `timedelta`, or a number of seconds.

    Returns
    -------
    Time
        For an eviction or a trigger.

    Raises
    ------
    QueryError
        If the period is not longer than zero.

    Examples
    --------
    >>> print(time(10.0))
    time(10 seconds)
    """
    return Time(nanoseconds_of(period, "time"))


def punct() -> Punct:
    """A policy of punctuations: a window is full when one comes.

    Returns
    -------
    Punct
        For the eviction of a tumbling window.
    """
    return Punct()


def partition_count(size: int) -> PartitionCount:
    """At most `size` subwindows: one is evicted to make space for another.

    Parameters
    ----------
    size
        How many, from 1 on.

    Returns
    -------
    PartitionCount
        For `partition_eviction`.

    Raises
    ------
    QueryError
        If `size` is no whole number from 1 on.
    """
    return PartitionCount(whole_number(size, "partitionCount", least=1))


def tuple_count(size: int) -> TupleCount:
    """At most `size` rows in all subwindows together: whole subwindows are evicted until the next row fits.

    Parameters
    ----------
    size
        How many, from 1 on.

    Returns
    -------
    TupleCount
        For `partition_eviction`.

    Raises
    ------
    QueryError
        If `size` is no whole number from 1 on.
    """
    return TupleCount(whole_number(size, "tupleCount", least=1))


def partition_age(age: DurationLike) -> PartitionAge:
    """A subwindow that got no row for longer than this is evicted, at the next insertion into any.

    Parameters
    ----------
    age
        `"90 minutes"`, a `timedelta`, or a number of seconds.

    Returns
    -------
    PartitionAge
        For `partition_eviction`.

    Raises
    ------
    QueryError
        If the age is not longer than zero.

    Examples
    --------
    >>> print(partition_age("90 minutes"))
    partitionAge(90 minutes)
    """
    return PartitionAge(nanoseconds_of(age, "partitionAge"))


@dataclass(frozen=True)
class Tumbling:
    """A window that is emptied as a whole: what `tumbling` makes."""

    eviction: Eviction
    partitioned: bool = False
    partition_eviction: PartitionEviction | None = None
    selection: Selection = LEAST_RECENTLY_UPDATED

    def __post_init__(self) -> None:
        if not isinstance(self.eviction, (Count, Delta, Time, Punct)):
            raise QueryError(f"a tumbling window needs an eviction policy, not {self.eviction!r}")
        if isinstance(self.eviction, Count) and self.eviction.size < 1:
            raise QueryError("a tumbling window of count(0) would always be full: use count(1) or more")
        _check_partitions(self)

    def __str__(self) -> str:
        return ", ".join(["tumbling", str(self.eviction), *_partition_words(self)])

    @property
    def trigger(self) -> None:
        """A tumbling window is processed when it is full."""
        return


@dataclass(frozen=True)
class Sliding:
    """A window of the most recent rows: what `sliding` makes."""

    eviction: Trigger
    trigger: Trigger
    partitioned: bool = False
    partition_eviction: PartitionEviction | None = None
    selection: Selection = LEAST_RECENTLY_UPDATED

    def __post_init__(self) -> None:
        for policy, what in ((self.eviction, "an eviction"), (self.trigger, "a trigger")):
            if isinstance(policy, Punct):
                raise QueryError(
                    "punct() is a policy of tumbling windows: a sliding window is never emptied as a whole"
                )
            if not isinstance(policy, (Count, Delta, Time)):
                raise QueryError(f"a sliding window needs {what} policy, not {policy!r}")
        if isinstance(self.trigger, Count) and self.trigger.size < 1:
            raise QueryError("a trigger of count(0) would never come: use count(1) or more")
        _check_partitions(self)

    def __str__(self) -> str:
        return ", ".join(["sliding", str(self.eviction), str(self.trigger), *_partition_words(self)])


Spec: TypeAlias = "Tumbling | Sliding"


def tumbling(
    eviction: Eviction,
    *,
    partitioned: bool = False,
    partition_eviction: PartitionEviction | None = None,
    selection: Selection = LEAST_RECENTLY_UPDATED,
) -> Tumbling:
    """A window that is emptied as a whole when it is full.

    Parameters
    ----------
    eviction
        When it is full: `count`, `delta`, `time` or `punct`.
    partitioned
        Whether each key has a subwindow of its own; False by default.
    partition_eviction
        When whole subwindows are evicted: `partition_count`, `tuple_count` or `partition_age`; None (default)
        for never.
    selection
        Which subwindow is evicted: "least recently updated" (default), "least frequently updated", "oldest",
        or a function.

    Returns
    -------
    Tumbling
        The window as a value; printed, it is the text that `parse` reads.

    Raises
    ------
    QueryError
        If policies do not go together.

    Examples
    --------
    >>> print(tumbling(count(100), partitioned=True, partition_eviction=partition_count(1000)))
    tumbling, count(100), partitioned, partitionCount(1000)
    """
    return Tumbling(eviction, partitioned, partition_eviction, selection)


def sliding(
    eviction: Trigger,
    trigger: Trigger,
    *,
    partitioned: bool = False,
    partition_eviction: PartitionEviction | None = None,
    selection: Selection = LEAST_RECENTLY_UPDATED,
) -> Sliding:
    """A window of the most recent rows, processed whenever its trigger says so.

    Parameters
    ----------
    eviction
        Which rows it holds: `count`, `delta` or `time`. With `count(0)` it keeps none: one side of a
        one-sided join.
    trigger
        When it is processed: `count`, `delta` or `time`.
    partitioned
        Whether each key has a subwindow of its own; False by default.
    partition_eviction
        When whole subwindows are evicted: `partition_count`, `tuple_count` or `partition_age`; None (default)
        for never.
    selection
        Which subwindow is evicted: "least recently updated" (default), "least frequently updated", "oldest",
        or a function.

    Returns
    -------
    Sliding
        The window as a value; printed, it is the text that `parse` reads.

    Raises
    ------
    QueryError
        If policies do not go together.

    Examples
    --------
    >>> print(sliding(count(100), count(10)))
    sliding, count(100), count(10)
    """
    return Sliding(eviction, trigger, partitioned, partition_eviction, selection)


def uses_clock(spec: Spec) -> bool:
    """Whether something happens in such a window without a call: a policy of time."""
    return isinstance(spec.eviction, Time) or isinstance(spec.trigger, Time)


def _check_partitions(spec: Spec) -> None:
    if not isinstance(spec.partitioned, bool):
        raise QueryError(f"partitioned is True or False, not {spec.partitioned!r}")
    evicting = spec.partition_eviction
    if evicting is not None:
        if not isinstance(evicting, (PartitionCount, TupleCount, PartitionAge)):
            raise QueryError(
                f"{evicting!r} is no partition eviction: partition_count, tuple_count or partition_age"
            )
        if not spec.partitioned:
            raise QueryError(f"{evicting} evicts partitions, and the window is not partitioned")
    if not callable(spec.selection) and spec.selection not in SELECTIONS:
        raise QueryError(
            f"{spec.selection!r} selects no partition{near(spec.selection, SELECTIONS)}: "
            f"use {', '.join(map(repr, SELECTIONS))}, or a function"
        )
    if spec.selection != LEAST_RECENTLY_UPDATED and (evicting is None or isinstance(evicting, PartitionAge)):
        raise QueryError("a selection of partitions needs partition_count or tuple_count, which ask for it")


def _partition_words(spec: Spec) -> list[str]:
    words = ["partitioned"] if spec.partitioned else []
    if spec.partition_eviction is not None:
        words.append(str(spec.partition_eviction))
    if callable(spec.selection):
        words.append(f"selection by {getattr(spec.selection, '__name__', 'a function')}")
    elif spec.selection != LEAST_RECENTLY_UPDATED:
        words.append(spec.selection)
    return words
