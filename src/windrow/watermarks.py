"""A watermark that follows the events, for streams that nobody says one of, and time that is not in the events.

    partition 0    12:00:01  12:00:04  ..            newest 12:00:04
    partition 1    12:00:03  .. nothing for 30 s     idle: not waited for
    watermark                                        12:00:04 less the delay

Of several partitions the slowest decides that is not idle. Where all are idle, time goes on by the clock, from where the newest event
was: the watermark then moves without events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError

# The column of processing time, and its type.
NOW = "now"
NOW_TYPE = pa.timestamp("us", "UTC")


class Now(str):
    """The time of a query whose events are stamped as they come in: the name of the column with the stamps; made by `now`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "wr.now()"

    def __reduce__(self) -> tuple[type[Now], tuple[str]]:
        return Now, (str(self),)


def now() -> Now:
    """Processing time: events get the time at which they come in, and windows end by the clock.

    Returns
    -------
    Now
        What stands for the time column in `query(time=)`. Stamps are in the column `now`, in microseconds.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.policies import VirtualClock
    >>> clock = VirtualClock()
    >>> q = wr.query(time=wr.now(), windows={"w": wr.tumbling("10 seconds")}, aggregates={"n": wr.count()})
    >>> op = q.operator(clock=clock.now)
    >>> op.process(pa.table({"x": [1, 2, 7]})).num_rows
    0
    >>> clock.advance("10 seconds")
    >>> op.tick()["n"].to_pylist()
    [3]
    """
    return Now(NOW)


@dataclass(frozen=True)
class Watermark:
    """How a watermark follows events; made by `watermark`."""

    delay: Duration
    idle: Duration | None
    per: tuple[str, ...]


def watermark(
    *,
    delay: DurationLike = 0,
    idle: DurationLike | None = None,
    per: str | Iterable[str] = (),
) -> Watermark:
    """A watermark that follows the events, of an operator that is not told one.

    Parameters
    ----------
    delay
        How far it stays behind the newest event: later ones may come so much out of order. 0 by default.
    idle
        After so long without an event a partition is not waited for, and if none has events, time goes on by the clock. None
        (default): what is silent is waited for, for ever. Only where time is a time.
    per
        The column, or columns, that tell partitions apart; each has a newest event of its own, and the slowest decides. None by
        default: all events together. A partition that has never sent an event is not known, and not waited for.

    Raises
    ------
    QueryError
        If the delay is negative, or `idle` is not longer than zero.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    >>> op = q.operator(watermark=wr.watermark(delay=2, per="partition"))
    >>> op.process(pa.table({"ts": [3, 14], "partition": [0, 1]})).num_rows
    0
    >>> op.process(pa.table({"ts": [12], "partition": [0]})).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 10, 'n': 1}]
    """
    late = parse_duration(delay, what="delay")
    if late.magnitude < 0:
        raise QueryError(f"delay must not be negative, but is {delay!r}")
    silence = None if idle is None else parse_duration(idle, what="idle")
    if silence is not None and (silence.nanoseconds is None or silence.nanoseconds <= 0):
        raise QueryError(f'idle is a length of time by the clock, such as "30 seconds", not {idle!r}')
    columns = (per,) if isinstance(per, str) else tuple(per)
    for column in columns:
        if not isinstance(column, str):
            raise QueryError(f"per names the columns of partitions, and {column!r} is not a name")
    return Watermark(late, silence, columns)
