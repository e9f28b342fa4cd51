"""Cumulate windows: they share a start and grow step by step, until the next one begins.

    time    0    1    2    3    4    5    6
            |----|         |----|                cumulate(3, step=1)
            |---------|    |---------|
            |--------------|--------------|

A running total of the day, shown every hour, is `cumulate("1 day", step="1 hour")`. Context free:
it is as many periodic windows as there are steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.windows.arguments import require_positive
from windrow.windows.base import Periodic, Window

MOST_STEPS = 100_000


@dataclass(frozen=True)
class Cumulate(Window):
    """Windows that share a start each `size` and grow by `step`."""

    size: Duration
    step: Duration
    offset: Duration

    def place(self, measure: Measure) -> tuple[Periodic, ...]:
        size = measure.ticks(self.size, what="size")
        step = measure.ticks(self.step, what="step")
        offset = measure.ticks(self.offset, what="offset")
        steps = round(size / step)
        return tuple(
            Periodic.of(length=size if i == steps else i * step, every=size, offset=offset)
            for i in range(1, steps + 1)
        )

    def progressions(self, measure: Measure) -> tuple[tuple[Tick, Tick, Tick], ...] | None:
        if measure.floating:
            return None
        step, offset = (measure.ticks(d, what="step") for d in (self.step, self.offset))
        return ((step, offset % step, 0),)

    def __str__(self) -> str:
        shift = f" offset {self.offset}" if self.offset.magnitude else ""
        return f"cumulate {self.size} step {self.step}{shift}"


def cumulate(size: DurationLike, *, step: DurationLike, offset: DurationLike = 0) -> Cumulate:
    """Windows `[s, s + i*step)` for `i = 1 .. size/step` and every `s = k*size + offset`.

    A running total of the day, shown every hour, is `cumulate("1 day", step="1 hour")`.

    Parameters
    ----------
    size
        The length of the longest of them: a duration, a `timedelta`, or a plain number.
    step
        By how much one is longer than the one before; `size` is a multiple of it, of at most 100,000 steps.
    offset
        How far starts lie behind multiples of `size` since the epoch; 0 by default.

    Returns
    -------
    Cumulate
        A context-free window.

    Raises
    ------
    QueryError
        If a length is not longer than zero, or `size` is no multiple of `step`.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.cumulate("1 day", step="1 hour"))
    'cumulate 1 day step 1 hour'
    """
    window = Cumulate(
        parse_duration(size, what="size"),
        parse_duration(step, what="step"),
        parse_duration(offset, what="offset"),
    )
    require_positive(window.size, what="the size of a cumulate window")
    require_positive(window.step, what="the step of a cumulate window")
    if not window.size.same_kind(window.step):
        raise QueryError(f"{window}: give size and step both as durations or both as plain numbers")
    steps = window.size.magnitude / window.step.magnitude
    if steps != round(steps):
        raise QueryError(f"{window}: the size must be a multiple of the step")
    if steps > MOST_STEPS:
        raise QueryError(
            f"{window} puts each event into up to {int(steps):,} windows (at most {MOST_STEPS:,} are allowed)"
        )
    return window
