"""`windrow bench`: how fast a query is on this machine, beside polars and duckdb where these are installed and can say the same.

Each runs once to warm up, and then some times, in turns; the best time counts. What others cannot say in one query is shown as "-".
Numbers of rows are compared; "other rows" is said where another one answers another question, such as polars, which leaves out sliding windows
that begin before the first event.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import windrow as wr
from windrow.aggregates.base import Aggregate
from windrow.cli.inputs import columns_of, query_of, schema_of, table_of
from windrow.measure import Measure
from windrow.query import Query
from windrow.windows.base import Periodic, placements

ROUNDS = 3
POLARS = {"count": "len", "sum": "sum", "mean": "mean", "min": "min", "max": "max"}
SECOND = 1_000_000


def bench_command(query: str | None, events: Sequence[str], *, rows: int, key: Sequence[str] | None) -> int:
    """Measure, and show a table."""
    if query is None:
        found, table = standard(), made_up(rows)
        print(
            f"{rows:,} made-up events of 100 keys; name a query and files to measure your own",
            file=sys.stderr,
        )
    else:
        file = query_of(query, key)
        found, table = file.query, table_of(events, columns_of(file, schema_of(events)))
    report = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in ("window", "windrow", "polars", "duckdb"):
        report.add_column(heading, justify="left" if heading == "window" else "right")
    for name, window in found.windows.items():
        alone = replace(found, windows=MappingProxyType({name: window}))
        report.add_row(Text(f"{name}: {window}"), *measured(alone, table))
    if len(found.windows) > 1:
        report.add_row(Text("all of them in one pass", style="bold"), *measured(found, table))
    Console().print(report)
    print(f"events per second; the best of {ROUNDS} runs, one after the other", file=sys.stderr)
    return 0


def standard() -> Query:
    """What is measured where no query is named."""
    return wr.query(
        time="ts",
        key="k",
        windows={
            "a minute": wr.tumbling("1 minute"),
            "10 minutes": wr.sliding("10 minutes", every="1 minute"),
            "session": wr.session("30 seconds"),
        },
        aggregates={"n": wr.count(), "total": wr.sum("x"), "mean": wr.mean("x"), "highest": wr.max("x")},
    )


def made_up(rows: int) -> pa.Table:
    """Events of an hour, in the order of their time."""
    random = np.random.default_rng(7)
    times = np.sort(random.integers(0, 3_600 * SECOND, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": random.integers(0, 100, rows),
            "x": random.random(rows),
        }
    )


def measured(query: Query, table: pa.Table) -> list[str]:
    """Events per second of each, or why there is no figure."""
    runs: dict[str, Callable[[], int] | None] = {"windrow": lambda: len(query.run(table))}
    for name, make in (("polars", in_polars), ("duckdb", in_duckdb)):
        runs[name] = make(query, table) if importlib.util.find_spec(name) else None
    counts = {name: run() for name, run in runs.items() if run is not None}
    best = dict.fromkeys(counts, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            if run is not None:
                begun = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - begun)
    shown = []
    for name in runs:
        if name not in counts:
            shown.append("-" if importlib.util.find_spec(name) else "not installed")
        elif counts[name] != counts["windrow"]:
            shown.append("other rows")
        else:
            shown.append(f"{len(table) / best[name] / 1e6:,.1f} M")
    return shown


def _simple(query: Query, table: pa.Table) -> tuple[int, int] | None:
    """Every how many microseconds the only window of a query begins, and how long it is; None if others cannot say the query."""
    aggregates = all(_function(a) in POLARS and len(a.columns) <= 1 for a in query.aggregates.values())
    if len(query.windows) != 1 or not isinstance(query.time, str) or not aggregates:
        return None
    # Columns that are computed are not in the table.
    if query.where is not None or query.select or not {*query.columns} <= {*table.column_names}:
        return None
    (window,) = query.windows.values()
    type_ = table.schema.field(query.time).type
    if window.layout != "aligned" or window.since is not None or not pa.types.is_timestamp(type_):
        return None
    places = [*placements(window, Measure(query.time, pa.timestamp("us")))]
    if len(places) != 1 or not isinstance(places[0], Periodic) or places[0].offset:
        return None
    return int(places[0].every), int(places[0].length)


def _function(aggregate: Aggregate) -> str:
    """What an aggregate is called, here and elsewhere."""
    return str(aggregate).partition("(")[0]


def in_polars(query: Query, table: pa.Table) -> Callable[[], int] | None:
    """The same by `group_by_dynamic`."""
    import polars as pl

    simple = _simple(query, table)
    if simple is None:
        return None
    every, length = simple
    time_column = query.time_columns[0]
    events: Any = pl.from_arrow(table)
    frame = events.sort(time_column)
    answers = [
        pl.len().alias(name)
        if not a.columns
        else getattr(
            pl.col(a.columns[0]), "count" if _function(a) == "count" else POLARS[_function(a)]
        )().alias(name)
        for name, a in query.aggregates.items()
    ]
    options: dict[str, Any] = {
        "every": f"{every}us",
        "period": f"{length}us",
        "group_by": list(query.key) or None,
    }
    return lambda: len(frame.group_by_dynamic(time_column, **options).agg(answers))


def in_duckdb(query: Query, table: pa.Table) -> Callable[[], int] | None:
    """The same by `time_bucket`, with each event once for each window that holds it."""
    import duckdb

    simple = _simple(query, table)
    if simple is None:
        return None
    every, length = simple
    time_column = query.time_columns[0]
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.register("events", table)
    names = {
        name: '"' + name.replace('"', '""') + '"' for name in (*query.key, time_column, *query.aggregates)
    }
    for a in query.aggregates.values():
        names |= {c: '"' + c.replace('"', '""') + '"' for c in a.columns}
    functions = {"mean": "avg"}
    answers = ", ".join(
        f"{functions.get(_function(a), _function(a))}({names[a.columns[0]] if a.columns else '*'}) AS {names[name]}"
        for name, a in query.aggregates.items()
    )
    begin = f"time_bucket(INTERVAL {every} microseconds, {names[time_column]}, TIMESTAMP '1970-01-01') - INTERVAL {every} microseconds * step"
    keys = "".join(f"{names[k]}, " for k in query.key)
    text = (
        f"SELECT {keys}{begin} AS start, {answers} FROM events, range({-(-length // every)}) AS steps(step) "
        f"WHERE {names[time_column]} < {begin} + INTERVAL {length} microseconds GROUP BY {keys}start"
    )
    return lambda: len(connection.sql(text).to_arrow_table())
