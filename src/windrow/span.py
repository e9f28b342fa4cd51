"""Events with a duration: which columns say when an event began and ended, and how it counts.

    time       0    1    2    3    4    5    6    7    8
    event           |--------------|                          start 1, end 4: the instants 1, 2, 3
    window A   |---------|                                    holds it: they share the instant 1
    window B                       |---------|                does not: the event has ended

A lifespan is half-open, `[start, end)`, as a window is, and an event belongs to every window with which it
shares an instant (Suzanne, Raschia, Martinez and Tassetti, *Slicing Techniques for Temporal Aggregation in
Spanning Event Streams*, 2021, section 2). A `Span` stands where a query has its time column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError

Contribution = Literal["whole", "prorated", "start", "end"]
ZERO = Duration("0", number=0)


@dataclass(frozen=True)
class Learned:
    """A release delay that is learned from the lengths of events: their `quantile`."""

    quantile: float


def learned(quantile: float) -> Learned:
    """A release delay that follows the data: a quantile of the lengths of events seen so far.

    Parameters
    ----------
    quantile
        Which one, above 0 and up to 1; 0.99 waits for all but the longest 1 %.

    Returns
    -------
    Learned
        For the parameter `release` of `span`.

    Raises
    ------
    QueryError
        If `quantile` is no such number.

    Examples
    --------
    >>> import windrow as wr
    >>> wr.span("start", "end", release=wr.learned(0.99)).release
    Learned(quantile=0.99)
    """
    if isinstance(quantile, bool) or not isinstance(quantile, (int, float)) or not 0 < quantile <= 1:
        raise QueryError(f"a release delay is learned at a quantile above 0 and up to 1, not {quantile!r}")
    return Learned(float(quantile))


@dataclass(frozen=True)
class Span:
    """Which columns hold the lifespan of an event, and how it counts: what `span` makes."""

    start: str
    end: str
    contributes: Contribution = "whole"
    id: str | None = None
    on_zero: Literal["raise", "point"] = "raise"
    longest: Duration | None = None
    release: Duration | Learned = ZERO

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of start and end, and the one that identifies an open event."""
        return (self.start, self.end) if self.id is None else (self.start, self.end, self.id)

    @property
    def is_point(self) -> bool:
        """Whether an event counts at one instant only."""
        return self.contributes in ("start", "end")

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


def require_one_learner(time: str | Span, key: tuple[str, ...], buckets: int | None) -> None:
    """An error if each bucket would learn a release delay of its own."""
    if isinstance(time, Span) and isinstance(time.release, Learned) and key and buckets != 1:
        raise QueryError(
            f"each of {buckets or 'several'} buckets would learn a release delay of its own, from its own keys: "
            "give the delay as a duration, or say buckets=1"
        )


def span(
    start: str,
    end: str,
    *,
    contributes: Contribution = "whole",
    id: str | None = None,
    on_zero: Literal["raise", "point"] = "raise",
    longest: DurationLike | None = None,
    release: DurationLike | Learned = 0,
) -> Span:
    """The time of span events, which have a duration: from column `start` up to, but not including, column
    `end`.

    An event is known once it has ended, so a watermark promises that no event that ends before it is expected
    any more.

    Parameters
    ----------
    start, end
        The columns of the first instant and of the one after the last.
    contributes
        What an event adds to a window that it overlaps: "whole" (default), all of it; "prorated", the share
        of its duration that lies inside; "start" or "end", all of it to the windows that hold its first or
        its last instant.
    id
        A column that identifies open events: an event may then come in two rows, one without an end when it
        starts, and one with the same key and id, without a start, when it ends. Until then it is open. Its
        values are those of the first row. None (default) for events of one row.
    on_zero
        "raise" (default) makes an event that ends where it starts a bad row, "point" takes it as one tick
        long.
    longest
        A longer event is a bad row; None (default) takes events of any length.
    release
        How much later windows are emitted, because events that began in them may still be open (the paper's
        time to postpone): a duration, or `learned` from the events seen; 0 by default.

    Returns
    -------
    Span
        For the parameter `time` of a query.

    Raises
    ------
    QueryError
        If the columns are not distinct names, or an option makes no sense.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> calls = pa.table({"since": [1, 2], "until": [4, 9], "antenna": ["a", "a"]})
    >>> q = wr.query(
    ...     time=wr.span("since", "until"),
    ...     key="antenna",
    ...     windows={"w": wr.tumbling(5)},
    ...     aggregates={"connected": wr.count()},
    ... )
    >>> q.run(calls).select(["start", "end", "connected"]).to_pylist()
    [{'start': 0, 'end': 5, 'connected': 2}, {'start': 5, 'end': 10, 'connected': 1}]
    """
    named = {"start": start, "end": end} | ({} if id is None else {"id": id})
    for what, column in named.items():
        if not isinstance(column, str):
            raise QueryError(f"the {what} of a span is the name of a column, not {column!r}")
    if len(set(named.values())) < len(named):
        raise QueryError(
            f"the columns of a span must differ, and they are {', '.join(map(repr, named.values()))}"
        )
    if contributes not in get_args(Contribution):
        raise QueryError(
            f"contributes must be one of {', '.join(get_args(Contribution))}, not {contributes!r}"
        )
    if on_zero not in ("raise", "point"):
        raise QueryError(f"on_zero must be raise or point, not {on_zero!r}")
    if id is not None and contributes != "whole":
        raise QueryError(
            f'an event that is not over cannot contribute {contributes!r}: an id goes with "whole" only'
        )
    limit = None if longest is None else parse_duration(longest, what="longest")
    if limit is not None and limit.magnitude <= 0:
        raise QueryError(f"longest must be longer than zero, not {longest!r}")
    delay = release if isinstance(release, Learned) else parse_duration(release, what="release")
    if isinstance(delay, Duration) and delay.magnitude < 0:
        raise QueryError(f"release must not be negative, but is {release!r}")
    return Span(start, end, contributes, id, on_zero, limit, delay)
