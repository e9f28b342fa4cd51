"""The registry of references: which formula judges which aggregate class."""

from __future__ import annotations

from tests.referee.reference import EXACT, Accepts, Reference, Value, equal
from tests.referee.sketches import SKETCHES
from windrow.aggregates.base import Aggregate

REFERENCES: dict[type[Aggregate], Reference] = EXACT | SKETCHES


def reference_of(aggregate: Aggregate) -> Reference:
    """The reference of an aggregate; an error that says how to add one."""
    for kind in type(aggregate).__mro__:
        if kind in REFERENCES:
            return REFERENCES[kind]
    raise TypeError(f"no reference for {type(aggregate).__name__}: register(type, value, accepts) adds one")


def register(kind: type[Aggregate], value: Value, accepts: Accepts = equal) -> None:
    """Teach the referee an aggregate class of one's own.

    `value(aggregate, rows)` is the answer from scratch over the non-null rows of a window, in
    event-time order; `accepts(aggregate, rows, expected, actual)` may allow for rounding.

    >>> import windrow as wr
    >>> from tests.referee import register
    >>> class Parity(wr.Aggregate):
    ...     columns = ()
    >>> register(Parity, lambda aggregate, rows: len(rows) % 2)
    >>> reference_of(Parity()).value(Parity(), [(), (), ()])
    1
    """
    REFERENCES[kind] = Reference(value, accepts)
