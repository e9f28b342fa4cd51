"""When to look at windows that have not ended: triggers, the values of the option `emit`.

    events      o  o   o    o  o  o    o
    looks              ^       ^       ^          every_rows(3)
    window     |----------------------------|
                       |       |       |    |
                       early   early   early final

At each look, each window that has changed since it was last given out is given out as it is so far. When it is final it
comes once more, whatever was given out of it before. A trigger is a frozen value and holds no state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError, StateError, UndescribedError
from windrow.expressions.building import shown, sources_of
from windrow.windows.predicate import Predicate, PredicateLike, parse_predicate

CLOSE = "close"


@dataclass(frozen=True)
class Every:
    """A look each time event time has passed another multiple of a period; made by `every`."""

    period: Duration
    discarding: bool = False

    def described(self) -> list[Any]:
        """The trigger as JSON can hold it: the opposite of `trigger_of`."""
        period = self.period
        return ["every", [period.text, period.nanoseconds, period.number], self.discarding]

    def __str__(self) -> str:
        return f"every {self.period}"


@dataclass(frozen=True)
class EveryRows:
    """A look each time that so many events have come, or after each batch; made by `every_rows` and `each_batch`."""

    rows: int
    discarding: bool = False

    def described(self) -> list[Any]:
        """As that of `Every`."""
        return ["every_rows", self.rows, self.discarding]

    def __str__(self) -> str:
        return "after each batch" if self.rows == 1 else f"every {self.rows:,} rows"


@dataclass(frozen=True)
class When:
    """A look after each batch, which gives out the windows that a condition holds for; made by `when`."""

    condition: Predicate

    @property
    def discarding(self) -> bool:
        """Rows of a condition take the place of those before."""
        return False

    def described(self) -> list[Any]:
        """As that of `Every`; a condition that is no text by what it says."""
        return ["when", self.said, self.condition.column is not None]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result that the condition reads."""
        return tuple(source for name in self.condition.columns for source in sources_of(name))

    @property
    def said(self) -> str:
        """The condition as it was written."""
        return str(self.condition) if self.condition.column is None else shown(self.condition.column)

    def __str__(self) -> str:
        return f"when {self.said}"


Trigger: TypeAlias = Every | EveryRows | When


def every(period: DurationLike, *, discarding: bool = False) -> Every:
    """Look at open windows each time that event time has passed another multiple of a period.

    Parameters
    ----------
    period
        `"10 seconds"`, a `timedelta`, or a number where time is one. At most one look is made for each batch.
    discarding
        True: each row holds what came since the last one of its window, for sinks that add rows up. False by default: each row
        takes the place of the last one.

    Raises
    ------
    QueryError
        If the period is not longer than zero.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    >>> op = q.operator(mode="update", emit=wr.every(3))
    >>> op.process(pa.table({"ts": [1, 4]})).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 10, 'n': 2, 'op': 'insert', 'revision': 0, 'final': False}]
    >>> op.process(pa.table({"ts": [5]})).num_rows
    0
    >>> op.advance(10).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 10, 'n': 3, 'op': 'update', 'revision': 1, 'final': True}]
    """
    parsed = parse_duration(period, what="every")
    if parsed.magnitude <= 0:
        raise QueryError(f"every must be longer than zero, not {period!r}")
    return Every(parsed, _flag(discarding))


def every_rows(rows: int, *, discarding: bool = False) -> EveryRows:
    """Look at open windows each time that so many events have come, after the batch that brought the last of them.

    Parameters
    ----------
    rows
        At least 1. Events of all keys count.
    discarding
        As for `every`.

    Raises
    ------
    QueryError
        If the number makes no sense.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    >>> op = q.operator(emit=wr.every_rows(2, discarding=True))
    >>> [op.process(pa.table({"ts": [t]})).num_rows for t in (1, 2, 3)]
    [0, 1, 0]
    >>> op.finish().to_pylist()
    [{'window': 'w', 'start': 0, 'end': 10, 'n': 1}]
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise QueryError(f"every_rows takes a whole number from 1 on, not {rows!r}")
    return EveryRows(rows, _flag(discarding))


def each_batch(*, discarding: bool = False) -> EveryRows:
    """Look at open windows after each batch, or micro-batch, that brings an event.

    Parameters
    ----------
    discarding
        As for `every`.

    Examples
    --------
    >>> import windrow as wr
    >>> print(wr.each_batch())
    after each batch
    """
    return EveryRows(1, _flag(discarding))


def when(condition: PredicateLike) -> When:
    """Look after each batch, and give out the windows for which a condition holds.

    Parameters
    ----------
    condition
        A condition over columns of the result: a text such as `"total > 1000"`, an expression of `wr.col` or of pyarrow, or a
        function whose parameters are such columns. It is asked about the windows that the batch has changed, as they are so
        far; where it is null, it does not hold.

    Raises
    ------
    QueryError
        If it is none of these.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", key="k", windows={"w": wr.tumbling(10)}, aggregates={"total": wr.sum("x")})
    >>> op = q.operator(mode="update", emit=wr.when("total > 1000"))
    >>> op.process(pa.table({"ts": [1, 2, 2], "k": ["a", "a", "b"], "x": [600, 500, 7]})).to_pylist()
    [{'k': 'a', 'window': 'w', 'start': 0, 'end': 10, 'total': 1100, 'op': 'insert', 'revision': 0, 'final': False}]
    """
    return When(parse_predicate(condition, what="when"))


def _flag(discarding: bool) -> bool:
    if not isinstance(discarding, bool):
        raise QueryError(f"discarding is True or False, not {discarding!r}")
    return discarding


def trigger_of(said: Any, known: str | Trigger) -> str | Trigger:
    """The trigger that `described` told of. Functions are not written anywhere: `known` is the one of who reads it."""
    match said:
        case "close":
            return CLOSE
        case ["every", [text, nanoseconds, number], discards]:
            return every(Duration(text, nanoseconds, number), discarding=discards)
        case ["every_rows", rows, discards]:
            return every_rows(rows, discarding=discards)
        case ["when", text, True]:
            return when(text)
        case ["when", text, False]:
            if isinstance(known, When) and known.said == text:
                return known
            raise UndescribedError(
                f"rows came early when {text}, and a snapshot holds conditions that are text alone: say emit= as it was"
            )
    raise StateError(f"the snapshot has an emit of {said!r}")
