"""What does a session cost?

Integer sum, one key: 10 s of events 1 ms apart, then a silence of 1,001 to 3,000 ms, and so on: five silences
a minute. A session of gap 1 s stands beside 20 and 1,000 tumbling windows, first with all events in order, then
with 20 % of them 1 to 2,000 ms late and a watermark that waits for them. Then 100 sessions with gaps of 1,000 to
2,980 ms stand beside one. With keys, the stream is that of *keyed*: a key has an event about every second, so
that none is silent for 30 s, and each is for more than 3 s about ten times. Sessions are compared with
NumPy's, and tumbling windows with those of the context-free engine. At last, one session over sorted events in
memory, as windrow's `run` and as other libraries find it, with the same rows.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.opponents import SESSIONS, rows
from benchmarks.opponents.worker import Opponent, cores, forms
from benchmarks.support.beside import (
    NOTE,
    RATIO,
    Case,
    Rows,
    answer,
    figures,
    line,
    require_same,
)
from benchmarks.support.harness import (
    FULL_EVENTS,
    Contender,
    Figure,
    Line,
    Scale,
    Table,
    at_least,
    at_most,
    clocked,
    race,
    rate,
)
from benchmarks.support.streams import Stream, bursts, drain, drive, keyed, on_one_thread, session_job
from benchmarks.windows import window_lengths

GAP = 1_000
GAPS = tuple(GAP + 20 * i for i in range(100))
TARGETS = {20: 60, 1_000: 10}
ORDERS = ("in order", "20 % late")
ONE_SESSION = "time beside one session"
KEYS = 100_000
KEYED_SECONDS = 200
# Gaps of keyed sessions in seconds, and million events per second to reach.
KEYED_GAPS = {30: 8, 3: None}
LIBRARIES = ("polars", "duckdb", "pandas")
FASTER = "faster by"
# Library, number of the form and threads of what is timed.
Entry = tuple[str, int, int]
OURS: Entry = ("windrow", 0, 1)
LIMIT: Entry = ("numpy.sum", 0, 1)


def query_of(windows: dict[str, wr.Window], *, key: tuple[str, ...] = ()) -> wr.Query:
    return wr.query(time="ts", key=key, windows=windows, aggregates={"total": wr.sum("value")})


def tumbling(count: int) -> dict[str, wr.Window]:
    return {f"{length} ms": wr.tumbling(f"{length} ms") for length in window_lengths(count)}


def session_of(gap: int) -> dict[str, wr.Window]:
    return {f"session {gap} ms": wr.session(f"{gap} ms")}


def expected_sessions(times: np.ndarray, values: np.ndarray, gap: int, window: int) -> Rows:
    """The sessions of events in order, by NumPy."""
    begin = np.concatenate([[0], np.flatnonzero(np.diff(times) > gap) + 1])
    last = np.append(begin[1:], len(times)) - 1
    place = np.full(len(begin), window)
    return Rows(place, times[begin], times[last] + gap, np.add.reduceat(values, begin))


def in_order(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    times, values = stream.columns
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


def check(query: wr.Query, context_free: wr.Query, stream: Stream) -> None:
    """The fixed windows are those of the context-free engine, the session behind them is NumPy's."""
    fixed = len(context_free.windows)
    found, alone = answer(query, stream), answer(context_free, stream)
    require_same(alone, found.of(0, fixed), f"{fixed} tumbling windows beside a session")
    require_same(expected_sessions(*in_order(stream), GAP, fixed), found.of(fixed), "a session")


def check_gaps(query: wr.Query, stream: Stream) -> None:
    """Each session is NumPy's."""
    found, events = answer(query, stream), in_order(stream)
    for i, gap in enumerate(GAPS):
        require_same(expected_sessions(*events, gap, i), found.of(i), f"a session of gap {gap} ms")


def beside_tumbling(scale: Scale) -> Table:
    lines = []
    for order in ORDERS:
        stream = bursts(scale.events, scale.batch, late=order != "in order")
        for count, target in TARGETS.items():
            fixed = query_of(tumbling(count))
            query = query_of(tumbling(count) | session_of(GAP))
            check(query, fixed, stream)
            name = f"{count:,} windows and a session, {order}"
            lines.append(line(Case(name, query, fixed, stream, at_least("M events/s", target)), scale))
    return Table(
        "A session beside tumbling windows", tuple(lines), ours="M events/s", beside=RATIO, note=NOTE
    )


def many_gaps(scale: Scale) -> Table:
    one, many = query_of(session_of(GAP)), query_of({k: w for g in GAPS for k, w in session_of(g).items()})
    fixed = query_of({"10 s": wr.tumbling("10 seconds")})
    lines = []
    for order in ORDERS:
        stream = bursts(scale.events, scale.batch, late=order != "in order")
        check_gaps(many, stream)
        contenders = {name: clocked(partial(drain, q, stream)) for name, q in (("one", one), ("many", many))}
        contenders["context free"] = clocked(partial(drain, fixed, stream))
        contenders["limit"] = clocked(stream.limit)
        for query in (one, fixed):
            drain(query, stream)  # so that it is compiled
        best = race(contenders, scale)
        for name, which in (("1 session", "one"), (f"{len(GAPS)} sessions", "many")):
            columns = figures(stream, best | {"ours": best[which]})
            columns[ONE_SESSION] = best[which] / best["one"]
            target = at_most(ONE_SESSION, 2) if which == "many" else None
            lines.append(Line(f"{name}, {order}", columns, target, headline=target is not None))
    note = f"{NOTE} The context-free engine has one tumbling window of 10 s here."
    return Table("Sessions of many gaps", tuple(lines), ours="M events/s", beside=ONE_SESSION, note=note)


def check_keyed(query: wr.Query, stream: Stream, gap: int) -> int:
    """The sessions of each key are NumPy's; gives the number of rows."""
    table = pa.concat_tables(drive(query, stream))
    found = [table[name].cast(pa.int64()).to_numpy() for name in ("key", "start", "end", "total")]
    order = np.lexsort((found[1], found[0]))
    times, values = stream.columns
    keys = np.concatenate([batch.column("key").to_numpy() for batch in stream.batches])
    sequence = np.lexsort((times, keys))
    times, values, keys = times[sequence], values[sequence], keys[sequence]
    begin = np.concatenate([[0], np.flatnonzero((np.diff(times) > gap) | (np.diff(keys) > 0)) + 1])
    last = np.append(begin[1:], len(times)) - 1
    expected = (keys[begin], times[begin], times[last] + gap, np.add.reduceat(values, begin))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine[order], theirs, f"sessions of gap {gap} ms")
    return len(order)


def many_keys(scale: Scale) -> Table:
    keys = max(10, KEYS * scale.events // FULL_EVENTS)
    stream, _ = keyed(scale.events, keys, scale.batch, seconds=KEYED_SECONDS)
    fixed = query_of({"60 s": wr.tumbling("60 seconds")}, key=("key",))
    drain(fixed, stream)
    lines = []
    for seconds, target in KEYED_GAPS.items():
        query = query_of({"session": wr.session(f"{seconds} seconds")}, key=("key",))
        found = check_keyed(query, stream, seconds * 1_000)
        aim = at_least("M events/s", target) if target else None
        measured = line(Case(f"{keys:,} keys, gap {seconds} s", query, fixed, stream, aim), scale)
        columns = {**measured.figures, "sessions": found}
        lines.append(Line(measured.name, columns, aim, headline=measured.headline))
    note = f"{NOTE} The context-free engine has one tumbling window of 60 s here."
    return Table("Sessions of many keys", tuple(lines), ours="M events/s", beside=RATIO, note=note)


def verify(opponent: Opponent, events: pa.Table, folder: Path) -> None:
    """Each form of the opponent finds our sessions."""
    ours = rows(SESSIONS, query_of(session_of(GAP)).run(events))
    for i, form in enumerate(forms(opponent.library, SESSIONS)):
        (theirs,) = opponent.rows(i, folder / "rows")
        if not ours.equals(theirs):
            raise AssertionError(f"{opponent.library}, {form.name}: not the same sessions as ours")


def over_bounded_data(scale: Scale) -> Table:
    """Ours, the limit and all forms of other libraries, in turns."""
    events = scale.events // 2
    table, query = session_job(events), query_of(session_of(GAP))
    columns = [table["ts"].cast(pa.int64()).to_numpy(), table["value"].to_numpy()]
    contenders: dict[Entry, Contender] = {
        OURS: clocked(partial(on_one_thread(query), table)),
        LIMIT: clocked(lambda: [column.sum() for column in columns]),
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for library in LIBRARIES:
            # pandas has one thread, whatever the machine has.
            for threads in sorted({1, cores()}) if library != "pandas" else (1,):
                opponent = stack.enter_context(Opponent(library, threads, events, SESSIONS))
                verify(opponent, table, folder)
                for i in range(len(forms(library, SESSIONS))):
                    contenders[library, i, threads] = partial(opponent.seconds, i)
        times = race(contenders, scale)
    return tabulate(times, events)


def tabulate(times: dict[Entry, float], events: int) -> Table:
    ours = times[OURS]
    lines = [Line("windrow", {"M events/s": rate(events, ours), "limit, M/s": rate(events, times[LIMIT])})]
    fastest = min(seconds for entry, seconds in times.items() if entry[0] in LIBRARIES)
    for library in LIBRARIES:
        for i, form in enumerate(forms(library, SESSIONS)):
            one, several = times[library, i, 1], times.get((library, i, cores()))
            columns: dict[str, Figure] = {"M events/s": rate(events, one), FASTER: one / ours}
            if several is not None and cores() > 1:
                columns[f"{cores()} threads, M/s"] = rate(events, several)
                columns[f"{FASTER} ({cores()} threads)"] = several / ours
            lines.append(Line(f"{library}: {form.name}", columns, headline=fastest in (one, several)))
    note = "How many times as fast windrow is stands beside each form. Limit: numpy.sum over both columns."
    return Table("A session over bounded data", tuple(lines), ours=FASTER, beside="M events/s", note=note)


def measure(scale: Scale) -> list[Table]:
    return [beside_tumbling(scale), many_gaps(scale), many_keys(scale), over_bounded_data(scale)]
