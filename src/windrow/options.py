"""Options of running operators, each spelled once: a frozen value, checked when it is made.

    OperatorOptions    how an operator runs, wherever it runs
    EmbeddedOptions    the same, and a watermark that follows the events
    PlacementOptions   how rows travel on Spark, whatever becomes of them there
    RunOptions         how a query runs over bounded data
    PolicyOptions      the same for operators over policy windows
    SparkOptions       both, and which path a query takes
    threads_of         how many threads a query over bounded data uses

`keywords_of` makes the fields of such a value the keyword arguments of a function, for readers, type
checkers and `inspect.signature` alike. The function itself gets the value.
"""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.stores import store_named
from windrow.triggers import CLOSE, Every, EveryRows, Trigger, When
from windrow.watermarks import Watermark
from windrow.wording import choices

MODES = ("append", "update")
PATHS = ("auto", "pushdown", "general")
MOST_BUCKETS = 1 << 15
# Buckets where there is no better reason for a number.
FEW_BUCKETS = 16

Keywords = ParamSpec("Keywords")
Value = TypeVar("Value")
Taken = TypeVar("Taken", covariant=True)
Owner = TypeVar("Owner")
Frame = TypeVar("Frame")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """How an operator runs.

    Parameters
    ----------
    mode
        "append" (default) emits each window once, final; "update" emits it when the watermark reaches its
        end and again whenever a late event revises it.
    lateness
        How long after its end a window still takes events; 0 by default.
    on_bad
        "raise" (default) refuses a batch with a bad row, "divert" sets the row aside.
    max_slices
        At most this many slices are held at once, counted once per key, and at most this many events that
        wait for their order to be known.
    max_ahead
        Events further than this ahead of the watermark are bad rows; None (default) takes them.
    store
        How slices are merged into windows: "auto" (default), or the name of one of `windrow.stores`.
    emit
        "close" (default) gives windows out when they have ended. `every`, `every_rows`, `each_batch` and `when` also say when open
        ones are given out as they are so far, which needs mode="update"; what comes since the last row, with discarding=True,
        needs mode="append".
    """

    mode: str = "append"
    lateness: DurationLike = 0
    on_bad: str = "raise"
    max_slices: int = 100_000_000
    max_ahead: DurationLike | None = None
    store: str = "auto"
    emit: str | Trigger = CLOSE

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise QueryError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        require_on_bad(self.on_bad)
        if self.allowed_lateness.magnitude < 0:
            raise QueryError(f"lateness must not be negative, but is {self.lateness!r}")
        if self.bound_ahead is not None and self.bound_ahead.magnitude <= 0:
            raise QueryError(f"max_ahead must be longer than zero, not {self.max_ahead!r}")
        whole = isinstance(self.max_slices, int) and not isinstance(self.max_slices, bool)
        if not whole or self.max_slices < 1:
            raise QueryError(f"max_slices must be at least 1, not {self.max_slices!r}")
        if self.store != "auto":
            store_named(self.store)
        self._check_emit()

    def _check_emit(self) -> None:
        if self.emit == CLOSE:
            return
        if not isinstance(self.emit, (Every, EveryRows, When)):
            raise QueryError(
                f'emit must be "close", or made by every, every_rows, each_batch or when, not {self.emit!r}'
            )
        if self.mode == "append" and not self.emit.discarding:
            raise QueryError(
                f'early rows ({self.emit}) are revised, and in mode "append" no row is: say mode="update", or discarding=True for '
                "rows that add up"
            )
        if self.mode == "update" and self.emit.discarding:
            raise QueryError(
                f'rows that add up ({self.emit}, discarding) are never revised: they need mode="append"'
            )

    @property
    def trigger(self) -> Trigger | None:
        """When to look at open windows; None: never."""
        return None if isinstance(self.emit, str) else self.emit

    @property
    def is_early(self) -> bool:
        """Whether windows are given out before they end, in rows that are revised."""
        return self.trigger is not None and self.mode == "update"

    @property
    def changelog(self) -> tuple[str, bool, When | None]:
        """What rows say of those before them: an operator for which this becomes another begins its changelog anew."""
        return self.mode, self.is_early, self.emit if isinstance(self.emit, When) else None

    @property
    def allowed_lateness(self) -> Duration:
        """`lateness`, parsed."""
        return parse_duration(self.lateness, what="lateness")

    @property
    def bound_ahead(self) -> Duration | None:
        """`max_ahead`, parsed."""
        return None if self.max_ahead is None else parse_duration(self.max_ahead, what="max_ahead")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a query runs over bounded data: what `Query.run` is called with."""

    on_bad: str = "raise"
    threads: int | None = None
    memory: int | str = "1 GB"
    sort: bool = False
    fill: Literal[0, "previous"] | bool | None = False
    wide: bool = False
    partial: bool = True

    def __post_init__(self) -> None:
        require_on_bad(self.on_bad)
        threads_of(self.threads)
        if not (self.fill is False or self.fill is None or self.fill == "previous" or self._fills_zeros):
            raise QueryError(f'fill must be None, 0 or "previous" (or False for no rows), not {self.fill!r}')
        if self.memory_bytes < 1:
            raise QueryError(f"memory must be more than nothing, not {self.memory!r}")
        if not isinstance(self.partial, bool):
            raise QueryError(f"partial is True or False, not {self.partial!r}")

    @property
    def _fills_zeros(self) -> bool:
        return not isinstance(self.fill, bool | str) and self.fill == 0

    @property
    def memory_bytes(self) -> int:
        """`memory`, as a number of bytes."""
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(self.memory), re.IGNORECASE)
        if match is None or isinstance(self.memory, bool):
            raise QueryError(f'memory is a number of bytes, or such as "500 MB", not {self.memory!r}')
        return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


@dataclass(frozen=True, kw_only=True)
class EmbeddedOptions(OperatorOptions):
    """How an operator runs that is fed by hand: all of `OperatorOptions`, and a watermark of its own.

    Parameters
    ----------
    watermark
        One that follows the events (see `windrow.watermark`); None (default) if it is told by `advance`.
    clock
        What time it is, in nanoseconds since 1970: a function, `time.time_ns` by default. Tests have another one.
    """

    watermark: Watermark | None = None
    clock: Callable[[], int] = time.time_ns

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.watermark is not None and not isinstance(self.watermark, Watermark):
            raise QueryError(f"a watermark is made by windrow.watermark, and {self.watermark!r} is not")
        if not callable(self.clock):
            raise QueryError(f"a clock is a function that gives nanoseconds since 1970, not {self.clock!r}")

    @property
    def for_operators(self) -> OperatorOptions:
        """The options that are not those of a watermark."""
        return options_of(self)


@dataclass(frozen=True, kw_only=True)
class PlacementOptions:
    """How rows travel on Spark.

    Parameters
    ----------
    side_rows
        Whether late and bad rows are rows of the result, as they came, in the columns `side`, `side_reason`
        and `side_row`; False by default. How many there are is in the observed metrics either way.
    buckets
        Over how many buckets keys are spread, each answered by one operator. None (default) gives a stream of a query one for each
        partition of its state (`spark.sql.shuffle.partitions`), and all else 16.
    watermark
        The column that carries the stream's watermark; the time column by default.
    metrics
        The name of the observed metrics in the progress of a stream; "windrow" by default.
    """

    side_rows: bool = False
    buckets: int | None = None
    watermark: str | None = None
    metrics: str = "windrow"

    def __post_init__(self) -> None:
        number = isinstance(self.buckets, int) and not isinstance(self.buckets, bool)
        if self.buckets is not None and not (number and 1 <= self.buckets <= MOST_BUCKETS):
            raise QueryError(f"buckets must be a number from 1 to {MOST_BUCKETS:,}, not {self.buckets!r}")

    def buckets_of(self, *, keyed: bool) -> int:
        """How many buckets there are, where partitions have no say: one where nothing is `keyed`."""
        return (self.buckets or FEW_BUCKETS) if keyed else 1


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(PlacementOptions):
    """How an operator over policy windows runs on Spark: all of `PlacementOptions`, and where order comes from.

    Parameters
    ----------
    time
        The column by which rows come in order, or one for each input. None for windows that go by the clock:
        rows enter as they come, and timers do the rest.
    punctuation
        A boolean column that is true in rows that are punctuations.
    """

    time: str | Sequence[str] | None = None
    punctuation: str | None = None


@dataclass(frozen=True, kw_only=True)
class SparkOptions(PlacementOptions, OperatorOptions):
    """How a query runs on Spark: all of `OperatorOptions` and `PlacementOptions`, and a path.

    Parameters
    ----------
    path
        "auto" (default) lets Spark compute what it computes alike; "pushdown" or "general" insists on one way. Only a stream on the
        general path can go on with a changed query.
    """

    path: str = "auto"

    def __post_init__(self) -> None:
        OperatorOptions.__post_init__(self)
        PlacementOptions.__post_init__(self)
        if self.path not in PATHS:
            raise QueryError(f"path must be one of {', '.join(PATHS)}, not {self.path!r}")

    @property
    def for_operators(self) -> OperatorOptions:
        """The options of each operator, without those of Spark."""
        return options_of(self)


def options_of(options: OperatorOptions) -> OperatorOptions:
    """The fields of `OperatorOptions` alone."""
    return OperatorOptions(**{field.name: getattr(options, field.name) for field in fields(OperatorOptions)})


def require_on_bad(on_bad: str) -> None:
    """An error unless it says what becomes of bad rows."""
    if on_bad not in ("raise", "divert"):
        raise QueryError(f"on_bad must be raise or divert, not {on_bad!r}")


def replaced(options: OperatorOptions, changes: Mapping[str, Any]) -> OperatorOptions:
    """The same options with these changes; an error if there is none of such a name."""
    known = [field.name for field in fields(OperatorOptions)]
    for name in changes.keys() - set(known):
        raise QueryError(f"an operator has no option {name!r}{choices(name, known)}")
    return replace(options, **changes)


def threads_of(threads: int | None) -> int:
    """How many threads to use: `threads`, or one for each processor of this process."""
    if threads is None:
        known = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise QueryError(f"threads must be a number from 1 on, or None for all processors, not {threads!r}")
    return threads


class Taking(Protocol[Keywords, Taken]):
    """What `keywords_of` gives: a decorator of methods that take the value as `options`."""

    @overload
    def __call__(
        self, method: Callable[[Owner, Taken], Result], /
    ) -> Callable[Concatenate[Owner, Keywords], Result]: ...
    @overload
    def __call__(
        self, method: Callable[[Owner, Frame, Taken], Result], /
    ) -> Callable[Concatenate[Owner, Frame, Keywords], Result]: ...
    @overload
    def __call__(self, method: Callable[..., Result], /) -> Callable[..., Result]: ...


def keywords_of(options: Callable[Keywords, Value]) -> Taking[Keywords, Value]:
    """Decorate a method whose last parameter is `options`: callers give the fields of that value as keywords.

    >>> class Query:
    ...     @keywords_of(OperatorOptions)
    ...     def operator(self, options):
    ...         return options.mode
    >>> Query().operator(mode="update")
    'update'
    """
    make, fields_of = cast(Callable[..., Any], options), inspect.signature(options).parameters

    def decorated(method: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(method)
        shown = [*list(own.parameters.values())[:-1], *fields_of.values()]
        signature = own.replace(parameters=shown)

        @wraps(method)
        def with_keywords(*places: Any, **keywords: Any) -> Any:
            for name in keywords.keys() - signature.parameters.keys():
                raise TypeError(f"{method.__name__}() has no option {name!r}{choices(name, fields_of)}")
            bound = signature.bind(*places, **keywords)
            chosen = {name: bound.arguments.pop(name) for name in fields_of if name in bound.arguments}
            return method(*bound.args, options=make(**chosen))

        with_keywords.__signature__ = signature  # type: ignore[attr-defined]
        return with_keywords

    return cast(Taking[Keywords, Value], decorated)
