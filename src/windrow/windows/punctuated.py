"""Punctuated windows: marks in the stream say where one ends and the next begins.

    events      o    o    M    o    o    M    o
                |---------|--------------|------       punctuated(where="mark")

    events      o    S    o    o    E    o    S
                     |--------------|         |--      punctuated(start="begins", end="stops")

With `where`, a mark begins a new window and ends the one before; the events before the first mark
are a window too. With `start` and `end`, a window holds both of its marks, and events outside
belong to none; a start-mark inside an open window does nothing. Forward context free: an event
says by itself whether it is a mark (Scotty, section 4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.errors import QueryError
from windrow.windows.base import Window
from windrow.windows.predicate import Predicate, PredicateLike, parse_predicate
from windrow.windows.stepping import Holds, Stepping


@dataclass(frozen=True)
class Punctuated(Window):
    """Windows between marks. Either `where` is set, or `start` and `end`."""

    where: Predicate | None
    start: Predicate | None
    end: Predicate | None

    context = "forward context free"
    layout = "ordered"

    @property
    def predicates(self) -> Mapping[str, Predicate]:  # type: ignore[override]
        roles = {"where": self.where, "start": self.start, "end": self.end}
        return {role: predicate for role, predicate in roles.items() if predicate is not None}

    def stepping(self, schema: pa.Schema) -> Stepping:
        inputs = tuple(Holds(role, predicate) for role, predicate in self.predicates.items())
        return Stepping(between_marks if self.where is None else begins_at_mark, inputs)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(c for p in self.predicates.values() for c in p.columns))

    def __str__(self) -> str:
        if self.where is not None:
            return f"punctuated where {self.where}"
        return f"punctuated from {self.start} to {self.end}"


def begins_at_mark(parameters, state, time, mark):  # type: ignore[no-untyped-def]
    """The step of `where`: a mark ends what is open and begins anew; so does the first event of all."""
    (opened,) = state
    if mark:
        return (1,), opened, 1, 0
    return (1,), 0, 1 - opened, 0


def between_marks(parameters, state, time, start, end):  # type: ignore[no-untyped-def]
    """The step of `start` and `end`: both marks belong to the window."""
    (opened,) = state
    begins = 1 if start and opened == 0 else 0
    behind = 1 if end and opened + begins > 0 else 0
    return (opened + begins - behind,), 0, begins, behind


def punctuated(
    where: PredicateLike | None = None,
    *,
    start: PredicateLike | None = None,
    end: PredicateLike | None = None,
) -> Punctuated:
    """Windows between marks in the stream.

    A mark is the name of a boolean column, a condition as text or made of `col`, an expression of `pyarrow.compute`, or a function whose
    parameters are columns.

    Parameters
    ----------
    where
        Marks the first event of each window, which ends the one before. The events before the first mark are
        a window, too.
    start, end
        Instead of `where`: the first and the last event of each window. Events outside belong to none; a
        start inside an open window does nothing.

    Returns
    -------
    Punctuated
        A window that is forward context free.

    Raises
    ------
    QueryError
        Unless there is either `where`, or both `start` and `end`.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.punctuated(where="new_shift"))
    'punctuated where new_shift'
    >>> str(wr.punctuated(start="gear = 1", end="parked"))
    'punctuated from gear = 1 to parked'
    """
    if where is not None and (start is not None or end is not None):
        raise QueryError("punctuated takes either where, or start and end, not both")
    if where is not None:
        return Punctuated(parse_predicate(where, what="where of punctuated"), None, None)
    if start is None or end is None:
        raise QueryError("punctuated needs where=..., or both start=... and end=...")
    return Punctuated(
        None,
        parse_predicate(start, what="start of punctuated"),
        parse_predicate(end, what="end of punctuated"),
    )
