"""Snapshot windows: one for every distinct time at which the key has an event.

    time    0    1    2    3    4    5    6
    events       o         oo        o
                 ||        ||        ||                snapshot()

For events of one tick, StreamInsight's snapshot windows, which are cut wherever an event
begins or ends, are the ticks that hold an event. On a float measure a tick is the distance to the
next float64. Context free.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.windows.base import Window


@dataclass(frozen=True)
class Snapshot(Window):
    """One window for every distinct event time."""

    layout = "sessions"
    pointwise = True

    def __str__(self) -> str:
        return "snapshot"


def snapshot() -> Snapshot:
    """One window, of one tick, for every distinct time at which the key has an event.

    Returns
    -------
    Snapshot
        A context-free window.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.snapshot())
    'snapshot'
    """
    return Snapshot()
