"""How much faster is a table answered by two threads?

Sum and max of integers over sorted events in memory, 1 ms apart, by `run` with one thread and with two: windows of 60 s,
sessions, and windows of 10 rows, for 100 to 100,000 keys and for one. The gap of sessions is twice the mean distance of
the events of a key, so that about every eighth event ends one; one key has those of *sessions*. Then the tumbling windows
over 100 keys beside Polars with as many threads. The rows with one and with two threads are the same before any is timed.
Time is that of the clock on the wall: on a busy machine a second thread has no processor to run on.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks import rivals
from benchmarks.opponents import TUMBLING
from benchmarks.opponents.worker import Opponent, cores
from benchmarks.sessions import GAP
from benchmarks.support.harness import Figure, Line, Scale, Table, at_least, clocked, race, rate
from benchmarks.support.streams import START, TIME, batch_job, session_job

KEYS = (100, 1_000, 100_000)
KINDS = ("tumbling", "session", "rows")
LENGTH, ROWS = 60_000, 10
ONE, TWO, FASTER = "1 thread, M/s", "2 threads, M/s", "2 threads faster by"
ENOUGH, TWICE = 1.7, 2


def events_of(count: int, keys: int) -> pa.Table:
    """Events 1 ms apart, of random keys."""
    random = np.random.default_rng(29)
    times = pa.array(START + np.arange(count, dtype=np.int64)).cast(TIME)
    return pa.table(
        {"ts": times, "key": random.integers(0, keys, count), "value": random.integers(0, 1_000, count)}
    )


def query_of(kind: str, keys: int | None) -> wr.Query:
    gap = GAP if keys is None else 2 * keys
    window = {
        "tumbling": wr.tumbling(f"{LENGTH} milliseconds"),
        "session": wr.session(f"{gap} milliseconds"),
        "rows": wr.tumbling(rows=ROWS),
    }[kind]
    aggregates = {"total": wr.sum("value"), "top": wr.max("value")}
    return wr.query(
        time="ts", key=None if keys is None else "key", windows={kind: window}, aggregates=aggregates
    )


def require_same(query: wr.Query, events: pa.Table) -> None:
    """The rows are the same with one thread and with two, in whatever order they come."""
    order = [(name, "ascending") for name in (*query.key, "start")]
    one, two = (query.run(events, threads=count).sort_by(order) for count in (1, 2))
    assert one.equals(two), f"{query}: two threads give other rows than one"


def line(name: str, query: wr.Query, events: pa.Table, scale: Scale) -> Line:
    """A query over a table with one thread and with two, which take turns."""
    require_same(query, events)
    best = race({count: clocked(partial(query.run, events, threads=count)) for count in (1, 2)}, scale)
    figures: dict[str, Figure] = {ONE: rate(len(events), best[1]), TWO: rate(len(events), best[2])}
    figures[FASTER] = best[1] / best[2]
    return Line(name, figures, at_least(FASTER, ENOUGH), headline=True)


def by_windows(scale: Scale) -> Table:
    lines = []
    for keys in KEYS:
        events = events_of(scale.events // 2, keys)
        lines += [line(f"{kind}, {keys:,} keys", query_of(kind, keys), events, scale) for kind in KINDS]
    bursts = session_job(scale.events // 2)
    lines += [line(f"{kind}, one key", query_of(kind, None), bursts, scale) for kind in KINDS]
    return Table("One thread and two", tuple(lines), ours=TWO, beside=ONE, also=(ONE,))


def beside_polars(scale: Scale) -> Table:
    """The tumbling windows of the batch job, each library with one thread and with as many as there are cores."""
    count = scale.events // 2
    table, query = batch_job(count), rivals.query(TUMBLING)
    forms = [(i, form) for i, form in enumerate(rivals.forms("polars")) if form.job == TUMBLING]
    numbers = sorted({1, min(2, cores())})
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        opponents = {n: stack.enter_context(Opponent("polars", n, count)) for n in numbers}
        rivals.verify(opponents[1], table, folder)
        contenders = {(n, -1): clocked(partial(query.run, table, threads=n)) for n in numbers}
        contenders |= {(n, i): partial(opponents[n].seconds, i) for n, (i, _) in product(numbers, forms)}
        best = race(contenders, scale)
    lines = []
    for n in numbers:
        ours, theirs = best[n, -1], min(best[n, i] for i, _ in forms)
        figures: dict[str, Figure] = {"M events/s": rate(count, ours), "polars, M/s": rate(count, theirs)}
        figures["faster by"] = theirs / ours
        name = "1 thread" if n == 1 else f"{n} threads"
        lines.append(Line(name, figures, at_least("faster by", TWICE), headline=True))
    title = "Tumbling windows over 100 keys, beside Polars with as many threads"
    note = "The faster one of the two ways in which Polars does it."
    return Table(title, tuple(lines), ours="M events/s", beside="polars, M/s", note=note)


def measure(scale: Scale) -> list[Table]:
    return [by_windows(scale), beside_polars(scale)]
