"""Is it faster than Polars and DuckDB on the same batch job?

Events in memory, 1 ms apart, 100 keys; sum and max over tumbling windows of 60 s, over sliding windows of
60 s every second, and over both. *Direct* forms say what is wanted; *hand-sliced* forms do by hand what windrow
does by itself. All forms give the same rows on the first tenth of the events before any is timed.
windrow has one thread here, and the others are shown with one and with all; *threads* gives windrow as many.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks.opponents import BATCH_JOB, BOTH, SLIDING, TUMBLING, Form, rows, worker
from benchmarks.opponents.worker import Opponent
from benchmarks.support.harness import Contender, Line, Scale, Table, at_least, clocked, race, rate
from benchmarks.support.streams import batch_job, on_one_thread

LIBRARIES = ("polars", "duckdb")
TUMBLE, SLIDE = wr.tumbling("60 seconds"), wr.sliding("60 seconds", every="1 second")
JOBS: dict[str, dict[str, wr.Window]] = {
    TUMBLING: {"tumbling": TUMBLE},
    SLIDING: {"sliding": SLIDE},
    BOTH: {"tumbling": TUMBLE, "sliding": SLIDE},
}
FASTER = "faster by"
NOTE = (
    "How many times as fast windrow is stands beside each form; the target stands at the fastest direct one. "
    "Limit: numpy.sum over the three columns."
)
# Library, form and threads of what is timed.
Entry = tuple[str, Form | None, int]
Times = dict[Entry, float]
OURS: Entry = ("windrow", None, 1)
LIMIT: Entry = ("numpy.sum", None, 1)
# Direct forms answer one window at a time: both take as long as the best form for each.
IN_TURN = Form(BOTH, "best direct query of each, in turn", run=None)


def query(job: str) -> wr.Query:
    aggregates = {"total": wr.sum("value"), "top": wr.max("value")}
    return wr.query(time="ts", key=["key"], windows=JOBS[job], aggregates=aggregates)


def answer(job: str, events: pa.Table) -> list[pa.Table]:
    """Our rows, a table per window."""
    table = query(job).run(events)
    return [rows(BATCH_JOB, table.filter(pc.equal(table["window"], name))) for name in JOBS[job]]


def forms(library: str) -> tuple[Form, ...]:
    return worker.forms(library, BATCH_JOB)


def verify(opponent: Opponent, events: pa.Table, folder: Path) -> None:
    """Each form of the opponent gives our rows."""
    part = events.slice(0, len(events) // BATCH_JOB.sample)
    ours = {job: answer(job, part) for job in JOBS}
    for i, form in enumerate(forms(opponent.library)):
        theirs = opponent.rows(i, folder / "rows")
        for mine, other in zip(ours[form.job], theirs, strict=True):
            if not mine.equals(other):
                raise AssertionError(
                    f"{opponent.library}, {form.job}, {form.name}: not the same rows as ours"
                )


def measure(scale: Scale) -> list[Table]:
    events = scale.events // 2
    table = batch_job(events)
    cores = worker.cores()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        opponents = {
            (library, threads): stack.enter_context(Opponent(library, threads, events))
            for library in LIBRARIES
            for threads in sorted({1, cores})
        }
        for library in LIBRARIES:
            verify(opponents[library, 1], table, folder)
        times = {job: contest(job, table, opponents, scale) for job in JOBS}
    for library, threads in opponents:
        parts = [fastest(times[job], library, threads) for job in (TUMBLING, SLIDING)]
        times[BOTH][library, IN_TURN, threads] = sum(parts)
    return [tabulate(job, times[job], events, cores) for job in JOBS]


def contest(job: str, events: pa.Table, opponents: dict[tuple[str, int], Opponent], scale: Scale) -> Times:
    """The seconds of all forms of one job, which take turns with ours."""
    columns = [events.column("ts").cast(pa.int64()), events.column("key"), events.column("value")]
    arrays = [column.to_numpy() for column in columns]
    contenders: dict[Entry, Contender] = {OURS: clocked(partial(on_one_thread(query(job)), events))}
    contenders[LIMIT] = clocked(lambda: [array.sum() for array in arrays])
    for (library, threads), opponent in opponents.items():
        for i, form in enumerate(forms(library)):
            if form.job == job:
                contenders[library, form, threads] = partial(opponent.seconds, i)
    return race(contenders, scale)


def fastest(times: Times, library: str, threads: int) -> float:
    """The best direct form of a library."""
    return min(
        seconds
        for (name, form, count), seconds in times.items()
        if name == library and count == threads and form is not None and not form.hand_sliced
    )


def tabulate(job: str, times: Times, events: int, cores: int) -> Table:
    ours = times[OURS]
    own = {"M events/s": rate(events, ours), "limit, M/s": rate(events, times[LIMIT])}
    lines = [Line("windrow", own)]
    entries = [(library, form) for library, form, threads in times if form is not None and threads == 1]
    for library, form in sorted(entries, key=lambda entry: (entry[1].hand_sliced, entry[0])):
        one, several = times[library, form, 1], times[library, form, cores]
        figures = {
            "M events/s": rate(events, one),
            FASTER: one / ours,
            f"{cores} threads, M/s": rate(events, several),
            f"{FASTER} ({cores} threads)": several / ours,
        }
        peers = [entry for entry in entries if entry[1].hand_sliced == form.hand_sliced]
        leads = one == min(times[*peer, 1] for peer in peers)
        target = at_least(FASTER, 5) if leads and not form.hand_sliced else None
        lines.append(Line(f"{library}: {form.name}", figures, target, headline=leads))
    return Table(f"Batch job, {job}", tuple(lines), ours=FASTER, beside="M events/s", note=NOTE)
