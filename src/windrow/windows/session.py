"""Session windows: bursts of events, ended by a silence.

    time     0    1    2    3    4    5    6    7    8    9
    events        o    o                   o
                  |-------->                               gap 2: each event holds the session open
                       |-------->                          until time + gap
                                           |-------->
    windows       |-------------|          |--------|      session(2)

A session starts with its first event and ends `gap` after its last; an event exactly `gap` after
the one before still belongs to it, as in Spark. The gap may come from a column, event by event:
the session then ends at the latest `time + gap` of its events. An event between two sessions can
join them. A class of its own: neither start nor end is known before the events, but both follow
from the gaps alone (Scotty, section 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.windows.base import Window, require_positive


@dataclass(frozen=True)
class Session(Window):
    """See `session`. One of `gap` and `column` is set."""

    gap: Duration | None
    column: str | None

    context = "session"

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.column is None else (self.column,)

    def __str__(self) -> str:
        return f"session gap {self.gap if self.column is None else f'from column {self.column!r}'}"


def session(gap: DurationLike) -> Session:
    """Windows that end when no event of the key comes for longer than `gap`.

    `gap` is a duration, or the name of a column that holds the gap of each event: integers in
    ticks of the time column, durations, or floats where the time is one. A string that begins with
    a digit, a sign or a dot is a duration, any other a column.

    >>> import windrow as wr
    >>> str(wr.session("30 minutes"))
    'session gap 30 minutes'
    >>> wr.session("timeout").columns
    ('timeout',)
    """
    if isinstance(gap, str) and gap.strip()[:1] not in tuple("0123456789+-."):
        if not gap.strip():
            raise QueryError("the gap of a session must be a duration or the name of a column, not empty")
        return Session(None, gap)
    window = Session(parse_duration(gap, what="gap"), None)
    require_positive(window.gap, what="the gap of a session")
    return window
