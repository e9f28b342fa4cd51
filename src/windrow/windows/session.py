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

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.windows.arguments import require_positive
from windrow.windows.base import Window


@dataclass(frozen=True)
class Session(Window):
    """Windows that a silence ends. One of `gap` and `column` is set."""

    gap: Duration | None = field()
    column: str | None

    context = "session"
    layout = "sessions"

    @property
    def gap_column(self) -> str | None:  # type: ignore[override]
        return self.column

    @property
    def sizes(self) -> Mapping[str, Duration]:
        return {} if self.gap is None else {"gap": self.gap}

    @property
    def ends_after(self) -> Duration | None:
        return self.gap

    def column_problem(self, column: str, type_: pa.DataType, measure: Measure) -> str | None:
        if pa.types.is_duration(type_):
            timed = measure.tick_nanoseconds is not None
            return None if timed else f", but {measure.describe()} is not a time: give gaps as plain numbers"
        if pa.types.is_floating(type_):
            problem = f"; gaps on {measure.describe()} are integers (ticks) or durations"
            return None if measure.floating else problem
        problem = "; gaps are integers (ticks), durations, or floats where the time is one"
        return None if pa.types.is_integer(type_) else problem

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return () if self.column is None else (self.column,)

    def __str__(self) -> str:
        return f"session gap {self.gap if self.column is None else f'from column {self.column!r}'}"


def session(gap: DurationLike) -> Session:
    """Windows that end when no event of the key comes for longer than a gap.

    A session starts with its first event and ends `gap` after its last one; an event exactly `gap` after the
    one before belongs to it, as in Spark. An event between two sessions can merge them.

    Parameters
    ----------
    gap
        A duration, a `timedelta` or a plain number; or the name of a column that holds the gap of each event:
        integers in ticks of the time column, durations, or floats where the time is one. A string that begins
        with a digit, a sign or a dot is a duration, any other a column.

    Returns
    -------
    Session
        A window whose edges follow from the gaps.

    Raises
    ------
    QueryError
        If the gap is empty, or not longer than zero.

    Examples
    --------
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
