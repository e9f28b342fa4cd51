"""Threshold windows: as long as a condition holds.

    speed     70   85   90   82   60   95   75
    events    o    o    o    o    o    o    o
                   |--------------|    |----|          threshold("speed > 80")

A window is a maximal run of consecutive events of the key for which the condition holds. It starts
with the first of them and ends at the time of the first event for which it does not hold. Short
runs can be left out by time or by number of events. Forward context free; also called frames
(Grossniklaus et al., DEBS 2016).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.windows.arguments import require_count, require_positive
from windrow.windows.base import Window
from windrow.windows.predicate import Predicate, PredicateLike, parse_predicate
from windrow.windows.stepping import Holds, Stepping


@dataclass(frozen=True)
class Threshold(Window):
    """Windows of consecutive events for which `where` holds."""

    where: Predicate
    at_least: Duration | None
    at_least_rows: int | None

    context = "forward context free"
    layout = "ordered"

    @property
    def predicates(self) -> Mapping[str, Predicate]:  # type: ignore[override]
        return {"where": self.where}

    @property
    def sizes(self) -> Mapping[str, Duration]:
        return {} if self.at_least is None else {"at_least": self.at_least}

    def stepping(self, schema: pa.Schema) -> Stepping:
        inputs = (Holds("where", self.where),)
        least_rows = self.at_least_rows or 1
        return Stepping(while_it_holds, inputs, at_least=self.at_least, at_least_rows=least_rows)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.where.columns

    def __str__(self) -> str:
        least = f" for at least {self.at_least}" if self.at_least is not None else ""
        rows = f" for at least {self.at_least_rows} rows" if self.at_least_rows is not None else ""
        return f"threshold {self.where}{least}{rows}"


def while_it_holds(parameters, state, time, holds):  # type: ignore[no-untyped-def]
    """The step: begin where the condition comes to hold, end where it no longer does."""
    (opened,) = state
    if holds:
        return (1,), 0, 1 - opened, 0
    return (0,), opened, 0, 0


def threshold(
    where: PredicateLike, *, at_least: DurationLike | None = None, at_least_rows: int | None = None
) -> Threshold:
    """Windows of consecutive events for which a condition holds.

    A window starts with the first of them and ends at the time of the first event for which the condition
    does not hold.

    Parameters
    ----------
    where
        The name of a boolean column, a condition as text or made of `col`, an expression of `pyarrow.compute`, or a function whose
        parameters are columns.
    at_least
        Windows shorter than this are left out: a duration, a `timedelta`, or a plain number. None (default)
        keeps all.
    at_least_rows
        Windows of fewer events are left out; None (default) keeps all.

    Returns
    -------
    Threshold
        A window that is forward context free.

    Raises
    ------
    QueryError
        If `where` is no condition, or one of the others is not greater than zero.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.threshold("speed > 80 and not parked", at_least="10 seconds"))
    'threshold speed > 80 AND NOT parked for at least 10 seconds'
    """
    least = None
    if at_least is not None:
        least = parse_duration(at_least, what="at_least")
        require_positive(least, what="at_least of a threshold window")
    rows = None
    if at_least_rows is not None:
        rows = require_count(at_least_rows, what="at_least_rows")
    return Threshold(parse_predicate(where, what="where of threshold"), least, rows)
