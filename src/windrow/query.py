"""What users do with a query: build it, run it, start an operator, put it on Spark, have it explained.

A `Query` is a `QuerySpec` with methods. It holds no state and starts nothing by itself. Engine and Spark are
imported when they are first needed, so that building queries stays cheap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.errors import QueryError
from windrow.expressions import ColumnLike
from windrow.options import EmbeddedOptions, RunOptions, SparkOptions, keywords_of
from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.triggers import CLOSE
from windrow.watermarks import Now
from windrow.windows.base import Window

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame

    from windrow.engine.operator import Operator
    from windrow.planner.explain import Explanation


class Query(QuerySpec):
    """A query that can be run; made by `query`."""

    def _repr_html_(self) -> str:
        try:
            return self.explain()._repr_html_()
        except QueryError:  # of windows that are asked at points there is no plan beforehand
            parts = {"windows": self.windows, "aggregates": self.aggregates}
            rows = (
                f"<tr><td>{what}</td><td>{escape(n)}</td><td>{escape(str(p))}</td></tr>"
                for what, named in parts.items()
                for n, p in named.items()
            )
            return f"<table>{''.join(rows)}</table>"

    def run(
        self,
        events: Any,
        *,
        on_bad: str = "raise",
        threads: int | None = None,
        memory: int | str = "1 GB",
        sort: bool = False,
        fill: Literal[0, "previous"] | bool | None = False,
        wide: bool = False,
        partial: bool = True,
    ) -> pa.Table:
        """The answer over bounded data: every window that holds an event, once, in any order.

        Parameters
        ----------
        events
            Anything that speaks the Arrow PyCapsule interface, or an iterator of such; a list of rows or a dict of columns;
            the path of a file or a folder, or a pattern such as `"trips/*.parquet"` (Parquet, CSV, lines of JSON, Arrow); a
            `pyarrow.dataset`; a lazy frame of polars; or a list of such inputs, whose rows are taken together. Of those that
            can be read again only the columns that the query names are read, and they may be larger than memory.
        on_bad
            "raise" (default) refuses events with a bad row, "divert" leaves the row out.
        threads
            At most how many threads work on a table with enough rows for them; None (default) is one for each
            processor. The answer does not depend on it, except for the order of its rows.
        memory
            About how much memory the events of files, datasets and lazy frames may take, in bytes or as "500 MB"; "1 GB" by
            default. Those that take less than a quarter of it are read at once, others are answered as they are read, by way
            of a temporary folder where they lie too far from the order of time. Windows and the answer take memory besides.
        sort
            Whether rows come by key, window, start and end; False by default.
        fill
            None, 0 or "previous": what stands in the row of an empty window, of which there is then one for each between the first and the last window of a
            key: nulls, zeros in columns of numbers, or what the window before it says. False (default) makes no rows. For tumbling, sliding and
            calendar windows.
        wide
            Whether windows become columns, `WINDOW_AGGREGATE`, with one row for each key and end, in this order; False by default.
        partial
            False leaves out windows that the events do not fill: those that begin before the first event of all, and those that
            have not ended when the last one is over (a session may go on, and a window of 100 rows has fewer). One thread then
            does the work. True by default.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> events = pa.table({"ts": [1, 2, 7], "x": [10, 20, 30]})
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
        >>> q.run(events).to_pylist()[0]
        {'window': 'w', 'start': 0, 'end': 5, 'total': 30}
        """
        from windrow.inputs.run import run
        from windrow.outputs import require_shapes, shaped

        if isinstance(self.time, Now):
            raise QueryError("a table has no processing time: name its time column, or feed an operator")
        if not partial and isinstance(self.time, Span) and not self.time.is_point:
            raise QueryError(
                "partial=False asks from when to when there are events, and these last: leave it out"
            )
        options = RunOptions(
            on_bad=on_bad, threads=threads, memory=memory, sort=sort, fill=fill, wide=wide, partial=partial
        )
        require_shapes(self, options)
        return shaped(self, run(self, events, options), options)

    def label(self, events: Any) -> pa.Table:
        """The windows that each event belongs to, aligned with the rows of the events.

        Parameters
        ----------
        events
            Events that can be read at once; as those of `run`.

        Returns
        -------
        pyarrow.Table
            As many rows as there are events, and for each window of the query the columns `WINDOW_id`, `WINDOW_start` and `WINDOW_end`. The id
            numbers the windows of this name by key and start, from 0 on. Where an event may belong to several windows, these are lists.

        Raises
        ------
        DataError
            If a row is bad; it is named.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"visit": wr.session(5)}, aggregates={"n": wr.count()})
        >>> q.label(pa.table({"ts": [20, 1, 3]})).to_pylist()[0]
        {'visit_id': 1, 'visit_start': 20, 'visit_end': 25}
        """
        from windrow.inputs.run import as_table
        from windrow.outputs.label import label

        return label(self, as_table(events, self.source_columns))

    def at(
        self,
        points: Any,
        events: Any = None,
        *,
        min_rows: int = 0,
        on_bad: str = "raise",
        threads: int | None = None,
    ) -> pa.Table:
        """The aggregates at points in time, over bounded data: `q.at(points, events)`, or `q.at(events)` at each event.

        Trailing and around windows say how far they reach from a point. Of windows with edges, of those that hold the point the one
        that ends first is asked, as far as the point: for a tumbling one the events since its start. An event at the point itself counts
        only where `closed` says so. A key without events, and a point before all of them, have empty windows.

        Where events are the points, those that `where` or `on_bad="divert"` leaves out are not in the answer either. Separate points have
        the time and the key as columns: a time or a key that is an expression of events cannot be asked of them.

        Parameters
        ----------
        points
            A table with the key and the time of the query, in any order, and any other columns; or the events, if there is no second
            table. Where events are the points, windows of rows count them by their place: events of equal time are apart.
        events
            All that `run` takes, at once in memory. None (default): `points` are the events.
        min_rows
            Windows of fewer events have no answers; 0 by default.
        on_bad
            "raise" (default) refuses events with a bad row, "divert" leaves the row out. A point without a time is always refused.
        threads
            At most how many threads work on it; None (default) is one for each processor. The answer does not depend on it.

        Returns
        -------
        pa.Table
            The rows of `points`, in their order, and a column for each window and aggregate, called `{aggregate}_{window}`, or as the
            aggregate where there is one window.

        Raises
        ------
        QueryError
            If a window cannot be asked at a point, or a column of an answer is there already.
        DataError
            If a point or an event has no time, or a sum does not fit.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> events = pa.table({"ts": [1, 2, 7], "x": [10, 20, 30]})
        >>> q = wr.query(time="ts", windows={"w": wr.trailing(5)}, aggregates={"total": wr.sum("x"), "n": wr.count()})
        >>> q.at(pa.table({"ts": [7, 2], "label": ["late", "early"]}), events).to_pydict()
        {'ts': [7, 2], 'label': ['late', 'early'], 'total': [20, 10], 'n': [1, 1]}
        >>> q.at(events)["total"].to_pylist()
        [None, 10, 20]
        """
        from windrow.engine.at.asking import at
        from windrow.inputs.run import as_table

        table = as_table(points)
        found = (None, table) if events is None else (table, as_table(events, self.source_columns))
        return at(self, *found, min_rows=min_rows, on_bad=on_bad, threads=threads)

    def plot(
        self,
        events: Any,
        *,
        kind: str = "auto",
        window: str | Sequence[str] | None = None,
        aggregate: str | Sequence[str] | None = None,
        theme: str = "auto",
        title: str | None = None,
    ) -> Figure:
        """A picture of the answer over bounded data: `windrow.plot` of what `run` returns.

        Parameters
        ----------
        events
            As for `run`.
        kind, window, aggregate, theme, title
            As for `windrow.plot`.

        Returns
        -------
        matplotlib.figure.Figure
            Shown by a notebook as it is; `figure.savefig("out.png")` writes it.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.session(3)}, aggregates={"n": wr.count()})
        >>> figure = q.plot(pa.table({"ts": [1, 2, 7, 15, 16]}), kind="bars", theme="dark")
        """
        from windrow.plots import plot

        return plot(self.run(events), kind=kind, window=window, aggregate=aggregate, theme=theme, title=title)

    @keywords_of(EmbeddedOptions)
    def operator(self, options: EmbeddedOptions) -> Operator:
        """A running operator: `process` batches, `advance` the watermark, take the results.

        Parameters
        ----------
        options
            The fields of `windrow.options.EmbeddedOptions` as keywords: `mode`, `lateness`, `on_bad`,
            `max_slices`, `max_ahead`, `store`, `emit`, `watermark` and `clock`.

        Returns
        -------
        Operator
            Empty, and independent of other operators of this query.

        Raises
        ------
        QueryError
            If an option is unknown, or its value makes no sense.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> op = q.operator(mode="append", lateness=0)
        >>> _ = op.process(pa.table({"ts": [1, 2, 7]}))
        >>> op.advance(6).to_pylist()
        [{'window': 'w', 'start': 0, 'end': 5, 'n': 2}]
        """
        from windrow.engine.operator import Operator

        return Operator(self, options.for_operators, options.watermark, options.clock)

    def restore(
        self,
        state: bytes,
        *,
        schema: pa.Schema | None = None,
        clock: Callable[[], int] = time.time_ns,
        **options: Any,
    ) -> Operator:
        """The operator that `snapshot` saved, of this query or of an earlier form of it.

        What both queries have goes on as if nothing had happened; windows and aggregates that are new, or gone, are added and removed
        as `Operator.change` does it.

        Parameters
        ----------
        state
            What `Operator.snapshot` returned.
        schema
            The columns of events from here on; needed only if a new aggregate or window reads one that events have not had.
        clock
            As for `operator`; a watermark that follows the events goes on as it was.
        options
            Those of `operator` that change; all others are as they were.

        Returns
        -------
        Operator
            In the state of the saved one.

        Raises
        ------
        StateError
            If the state is damaged; or if a window, an aggregate, the key or the time is another one, with the exact difference.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> op = q.operator()
        >>> _ = op.process(pa.table({"ts": [1, 2, 7]}))
        >>> q.restore(op.snapshot(), lateness=3).finish()["n"].to_pylist()
        [2, 1]
        """
        from windrow.engine.operator import Operator

        operator = Operator.restored(self, state, emit=options.get("emit", CLOSE), clock=clock)
        operator.change(self, schema=schema, **options)
        return operator

    @keywords_of(SparkOptions)
    def on_spark(self, df: DataFrame, options: SparkOptions) -> DataFrame:
        """The same answer on Spark.

        Parameters
        ----------
        df
            A batch or a streaming DataFrame. A stream must carry a watermark, on the time column or on the
            column that the option `watermark` names.
        options
            The fields of `windrow.options.SparkOptions` as keywords: those of `operator` (`max_slices` per
            bucket), and `side_rows`, `buckets`, `watermark`, `metrics` and `path`.

        Returns
        -------
        DataFrame
            A batch or a stream, as `df` is.

        Raises
        ------
        QueryError
            If an option makes no sense, or Spark cannot answer the query on such a DataFrame.

        Examples
        --------
        >>> import windrow as wr
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> def windows(events):
        ...     return events.transform(q.on_spark)
        """
        from windrow.spark.frame import on_spark

        return on_spark(self, df, options)

    def at_on_spark(
        self,
        points: DataFrame,
        events: DataFrame | None = None,
        *,
        min_rows: int = 0,
        on_bad: str = "raise",
        buckets: int = 16,
    ) -> DataFrame:
        """`at` on Spark, over batch DataFrames: the rows of `points` with a column for each window and aggregate, in any order.

        Parameters
        ----------
        points
            A DataFrame with the key and the time of the query, and any other columns; or the events, if there is no second one.
        events
            The events. None (default): `points` are the events.
        min_rows, on_bad
            As those of `at`.
        buckets
            Over how many buckets keys are spread, each answered at once; 16 by default. Without a key there is one.

        Returns
        -------
        DataFrame
            A batch.

        Raises
        ------
        QueryError
            If a DataFrame is a stream, or `at` would refuse the query.

        Examples
        --------
        >>> import windrow as wr
        >>> q = wr.query(time="ts", key="user", windows={"w": wr.trailing("30 days")}, aggregates={"n": wr.count()})
        >>> def features(labels, events):
        ...     return q.at_on_spark(labels, events)
        """
        from windrow.spark.at import at_on_spark

        return at_on_spark(self, points, events, min_rows=min_rows, on_bad=on_bad, buckets=buckets)

    def explain(
        self,
        schema: pa.Schema | None = None,
        *,
        engine: str = "embedded",
        df: DataFrame | None = None,
        **options: Any,
    ) -> Explanation:
        """What is shared, what is kept and why, as a short text.

        Parameters
        ----------
        schema
            The columns of the events; with it, sizes are exact.
        engine
            "embedded" (default), or "spark" with a DataFrame: the text then begins with the way that the query
            takes there, and why.
        df
            The DataFrame, batch or streaming, that the query would run on.
        options
            Those of `operator`, or of `on_spark`.

        Examples
        --------
        >>> import windrow as wr
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> print(q.explain().splitlines()[0])
        1 window, 1 aggregate, one pass over 'ts'
        >>> q.explain().picture.startswith("<svg")
        True
        """
        from windrow.engine.functions.store_compatibility import has_exact_inverse
        from windrow.engine.intake.projection import projection_of
        from windrow.planner.explain import explain
        from windrow.planner.plan import Plan

        if engine not in ("embedded", "spark"):
            raise QueryError(f"engine must be embedded or spark, not {engine!r}")
        if (engine == "spark") != (df is not None):
            raise QueryError('a DataFrame is explained with engine="spark", and only with it')
        if df is None:
            schema = getattr(schema, "schema", schema)  # of a table
            if schema is not None and not isinstance(schema, pa.Schema):
                raise QueryError(
                    f"explain takes the schema of the events, or a table of them, not {schema!r}"
                )
            projection = projection_of(self)
            if schema is not None and projection is not None:
                schema = projection.schema(schema)
            return explain(Plan.of(self, schema, self.operator(**options).settings), exact=has_exact_inverse)
        from windrow.spark.explain import explain as explain_on_spark

        return explain_on_spark(self, df, **options)


def query(
    *,
    time: ColumnLike | Span,
    windows: Mapping[str, Window] | Sequence[tuple[str, Window]],
    aggregates: Mapping[str, Aggregate] | Sequence[tuple[str, Aggregate]],
    key: str | Sequence[str] | Mapping[str, ColumnLike] | None = None,
    where: ColumnLike | None = None,
    select: Mapping[str, ColumnLike] | None = None,
    ordered: bool = False,
) -> Query:
    """Build a query; everything that can be wrong without seeing data is refused here.

    Parameters
    ----------
    time
        The column of the event time, an expression, or a `span` of two columns for events with a duration.
    windows, aggregates
        Mappings of names to specs, or sequences of (name, spec) pairs.
    key
        A column, or several: each key has windows of its own. None (default) is one group of all events. A mapping gives names to
        expressions: `{"day": wr.expr("date_trunc('day', ts)")}`.
    where
        A condition, such as "status = 'failed'": events for which it does not hold are not seen by the query. None (default) takes
        all. A condition of one aggregate alone is its own `where`.
    select
        Columns to add to the result, as expressions over its columns: `{"rate": "failed / n"}`. None (default) adds none.
    ordered
        True promises that events come in time order; one that does not is then a bad row. The watermark of an operator then
        follows the events, `process` returns the windows that they complete, and no lateness is waited for. False by default.

    Raises
    ------
    QueryError
        If something cannot be meant, in a sentence that says what.

    Examples
    --------
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
    return Query.checked(time, key, windows, aggregates, ordered, where, select)
