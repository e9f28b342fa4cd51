"""The query: what to compute, as a frozen value.

    events (time, key, columns)  x  windows  x  aggregates

A `Query` holds no state and starts nothing. `run` answers it over bounded data, `operator` gives
a running operator for streams, `explain` says what it will cost and why. The engine is imported
when it is first needed, so that building queries stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.durations import DurationLike
from windrow.errors import QueryError
from windrow.span import Span
from windrow.windows.base import Window
from windrow.windows.layout import is_aligned
from windrow.windows.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.engine.operator import Operator

RESERVED = ("window", "start", "end", "op", "revision")


@dataclass(frozen=True)
class Query:
    """See `query`. Equal queries compare equal; `windows` and `aggregates` are read-only mappings."""

    time: str | Span
    key: tuple[str, ...]
    windows: Mapping[str, Window]
    aggregates: Mapping[str, Aggregate]
    ordered: bool = False

    @property
    def time_columns(self) -> tuple[str, ...]:
        """The columns that tell when an event was; the first one is the measure that windows are cut on."""
        return (self.time,) if isinstance(self.time, str) else self.time.columns

    def __hash__(self) -> int:
        parts = (frozenset(self.windows.items()), frozenset(self.aggregates.items()))
        return hash((self.time, self.key, self.ordered, parts))

    def __reduce__(self) -> tuple[Any, ...]:
        windows, aggregates = tuple(self.windows.items()), tuple(self.aggregates.items())
        return _rebuild, (self.time, self.key, windows, aggregates, self.ordered)

    def run(self, events: Any, *, on_bad: str = "raise") -> pa.Table:
        """The answer over bounded data: every window that holds an event, once.

        `events` is anything that speaks the Arrow PyCapsule interface, or an iterator of such.

        >>> import windrow as wr, pyarrow as pa
        >>> events = pa.table({"ts": [1, 2, 7], "x": [10, 20, 30]})
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
        >>> q.run(events).to_pylist()[0]
        {'window': 'w', 'start': 0, 'end': 5, 'total': 30}
        """
        from windrow.engine.bounded import run

        return run(self, events, on_bad=on_bad)

    def operator(
        self,
        *,
        mode: str = "append",
        lateness: DurationLike = 0,
        on_bad: str = "raise",
        max_slices: int = 100_000_000,
        max_ahead: DurationLike | None = None,
        store: str = "auto",
    ) -> Operator:
        """A running operator: `process` batches, `advance` the watermark, take the results.

        `mode` "append" emits each window once, final; "update" emits it when the watermark reaches
        its end and again when a late event revises it. `lateness` is how long after its end a window
        still takes events. `on_bad` "raise" refuses a batch with a bad row, "divert" sets the row
        aside. `max_slices` bounds the slices held at once, counted once per key, and the events that
        wait for their order to be known. `max_ahead` treats events further than this ahead of the
        watermark as bad. `store` insists on one way to merge slices into windows (see `windrow.stores`).

        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> op = q.operator()
        >>> op.process(pa.table({"ts": [1, 2, 7]}))
        >>> op.advance(6).to_pylist()
        [{'window': 'w', 'start': 0, 'end': 5, 'n': 2}]
        """
        from windrow.engine.operator import Operator
        from windrow.engine.settings import Settings

        settings = Settings.of(mode, lateness, on_bad, max_slices, max_ahead, store)
        return Operator(self, settings)

    def restore(self, state: bytes) -> Operator:
        """The operator that `snapshot` saved; an error if the state is damaged or another query's.

        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> op = q.operator()
        >>> op.process(pa.table({"ts": [1, 2, 7]}))
        >>> q.restore(op.snapshot()).finish()["n"].to_pylist()
        [2, 1]
        """
        from windrow.engine.snapshot import restore

        return restore(self, state)

    def on_spark(
        self,
        df: DataFrame,
        *,
        mode: str = "append",
        lateness: DurationLike = 0,
        on_bad: str = "raise",
        side_rows: bool = False,
        buckets: int = 16,
        watermark: str | None = None,
        metrics: str = "windrow",
        path: str = "auto",
        max_slices: int = 100_000_000,
        max_ahead: DurationLike | None = None,
    ) -> DataFrame:
        """The same answer on Spark: `df` is a batch or a streaming DataFrame, and so is the result.

        A stream must carry a watermark, on the time column or on the column that `watermark` names; `mode`,
        `lateness`, `on_bad`, `max_slices` (per bucket) and `max_ahead` are those of `operator`. Keys are spread over
        `buckets`, each answered by one operator. `side_rows` adds late and bad rows to the result, as they came,
        in columns `side`, `side_reason` and `side_row`; how many there are is in the observed metrics named
        `metrics` of a stream's progress. `path` "pushdown" or "general" insists on one way to compute it.

        >>> import windrow as wr
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> def windows(events):
        ...     return events.transform(q.on_spark)
        """
        from windrow.spark.frame import Options, on_spark

        options = Options(
            mode=mode,
            lateness=lateness,
            on_bad=on_bad,
            side_rows=side_rows,
            buckets=buckets,
            watermark=watermark,
            metrics=metrics,
            path=path,
            max_slices=max_slices,
            max_ahead=max_ahead,
        )
        return on_spark(self, df, options)

    def explain(
        self,
        schema: pa.Schema | None = None,
        *,
        lateness: DurationLike = 0,
        engine: str = "embedded",
        df: DataFrame | None = None,
        **options: Any,
    ) -> str:
        """What is shared, what is kept and why, as a short text; exact sizes if `schema` is given.

        With `engine="spark"` and a DataFrame, it begins with the way that the query takes on Spark, and why;
        `options` are then those of `on_spark`.

        >>> import windrow as wr
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> print(q.explain().splitlines()[0])
        1 window, 1 aggregate, one pass over 'ts'
        """
        from windrow.engine.pairing import has_exact_inverse
        from windrow.planner.explain import explain

        if engine not in ("embedded", "spark"):
            raise QueryError(f"engine must be embedded or spark, not {engine!r}")
        if (engine == "spark") != (df is not None) or (options and df is None):
            raise QueryError('a DataFrame and options are explained with engine="spark", and only with it')
        if df is None:
            return explain(self, schema, lateness=lateness, exact=has_exact_inverse)
        from windrow.spark.explain import explain as explain_on_spark

        return explain_on_spark(self, df, lateness=lateness, **options)


def query(
    *,
    time: str | Span,
    windows: Mapping[str, Window] | Sequence[tuple[str, Window]],
    aggregates: Mapping[str, Aggregate] | Sequence[tuple[str, Aggregate]],
    key: str | Sequence[str] = (),
    ordered: bool = False,
) -> Query:
    """Build a query; everything that can be wrong without seeing data is refused here.

    `time` is a column, or a `span` of two for events that last. `windows` and `aggregates` are mappings, or
    sequences of (name, spec) pairs. `ordered=True` promises that events come in time order; one that does not is then a bad row.

    >>> import windrow as wr
    >>> q = wr.query(
    ...     time="ts",
    ...     key=["user"],
    ...     windows={"1m": wr.tumbling("1 minute"), "1h": wr.sliding("1 hour", every="1 second")},
    ...     aggregates={"n": wr.count(), "total": wr.sum("amount")},
    ... )
    >>> q.key
    ('user',)
    """
    if not isinstance(key, Iterable):
        raise QueryError(f"a key is a column, or a sequence of columns, not {key!r}")
    keys = (key,) if isinstance(key, str) else tuple(key)
    for column in (*((time,) if not isinstance(time, Span) else ()), *keys):
        if not isinstance(column, str):
            raise QueryError(f"a column is given by its name, not by {column!r}")
    placed = _named(windows, Window, what="window")
    computed = _named(aggregates, Aggregate, what="aggregate")
    if not placed:
        raise QueryError("a query needs at least one window")
    if not computed:
        raise QueryError("a query needs at least one aggregate")
    refuse_name_clashes(keys, computed)
    if isinstance(time, Span):
        if ordered:
            raise QueryError(
                "events that last end in another order than they begin: ordered=True is not for spans"
            )
        for name, window in placed.items():
            require_for_spans(time, name, window)
    return Query(time, keys, MappingProxyType(placed), MappingProxyType(computed), ordered)


def _rebuild(time: str | Span, key: Any, windows: Any, aggregates: Any, ordered: bool) -> Query:
    return query(time=time, key=key, windows=windows, aggregates=aggregates, ordered=ordered)


def require_for_spans(time: Span, name: str, window: Window) -> None:
    """An event that lasts belongs to windows of time, and to sessions; a moment of it to any window."""
    if time.is_point or is_aligned(window):
        return
    if (
        isinstance(window, Session)
        and window.gap is not None
        and time.id is None
        and time.contributes == "whole"
    ):
        return
    raise QueryError(
        f"window {name!r} ({window}) does not say which of its windows an event of {time} belongs to that "
        f"contributes {time.contributes!r}: use tumbling, sliding, cumulate, calendar or band windows, or sessions of whole events, or "
        'let events contribute at their "start" or "end"'
    )


def _named(specs: Any, kind: type, *, what: str) -> dict[str, Any]:
    pairs = specs.items() if isinstance(specs, Mapping) else specs
    result: dict[str, Any] = {}
    for name, spec in pairs:
        require_named(name, spec, kind, result, what=what)
        result[name] = spec
    return result


def require_named(name: Any, spec: Any, kind: type, taken: Mapping[str, Any], *, what: str) -> None:
    """A window or an aggregate has a name of its own, and is what it is called."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"the name of a {what} is a string that is not empty, not {name!r}")
    if name in taken:
        raise QueryError(f"duplicate {what} name {name!r}")
    if not isinstance(spec, kind):
        raise QueryError(f"{what} {name!r} is a {type(spec).__name__}, not a {what}")


def refuse_name_clashes(key: tuple[str, ...], aggregates: Mapping[str, Aggregate]) -> None:
    """Each output column has one name: keys, window, start, end, aggregates, op, revision."""
    taken = set(RESERVED)
    for role, names in (("key column", key), ("aggregate", tuple(aggregates))):
        for name in names:
            if name in taken:
                raise QueryError(f"{role} {name!r} clashes with another output column of that name")
            taken.add(name)
