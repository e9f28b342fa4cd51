"""The jobs of `rivals`, `sessions` and `spans`, written as users of other libraries would write them.

Each opponent is a module with `load(events, threads)`, which takes over the events, with `FORMS`, the
ways to write the job, and with `to_arrow` for a result. `worker` runs one in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from benchmarks.support.flights import flights_job
from benchmarks.support.streams import TIME, batch_job, session_job

TUMBLING, SLIDING, BOTH = "tumbling 60 s", "sliding 60 s every 1 s", "both"
SESSION = "session of gap 1 s"
IN_THE_AIR = "flights in the air, 1 hour every 15 minutes"


@dataclass(frozen=True)
class Task:
    """The events of a job, made by each process for itself, and the columns of an answer.

    Opponents of the task `x` are the modules `<library>_x`. Rows are sorted by the columns `order`, and
    compared on the first events, one in `sample` of all.
    """

    name: str
    events: Callable[[int], pa.Table]
    schema: pa.Schema
    order: tuple[str, ...]
    sample: int


BATCH_JOB = Task(
    "job",
    batch_job,
    pa.schema([("key", pa.int64()), ("start", TIME), ("total", pa.int64()), ("top", pa.int64())]),
    ("key", "start"),
    sample=10,
)
SESSIONS = Task(
    "sessions",
    session_job,
    pa.schema([("start", TIME), ("end", TIME), ("total", pa.int64())]),
    ("start",),
    sample=1,
)
SPANS = Task(
    "spans",
    flights_job,
    pa.schema(
        [("origin", pa.string()), ("start", TIME)]
        + [(name, pa.int64()) for name in ("flights", "minutes", "longest")]
    ),
    ("origin", "start"),
    sample=1,
)
TASKS = {task.name: task for task in (BATCH_JOB, SESSIONS, SPANS)}


def rows(task: Task, result: pa.Table) -> pa.Table:
    """A result in one order of rows and columns and with one set of types, to be compared."""
    order = [(name, "ascending") for name in task.order]
    return result.select(task.schema.names).cast(task.schema).sort_by(order).combine_chunks()


@dataclass(frozen=True)
class Form:
    """One way to write one job; `run` gives a result per window, with the columns of the task.

    *Hand-sliced* forms aggregate to seconds first and merge those, which the user has to know and to
    write; the others say what is wanted and leave the rest to the library. A form without `run` is not
    timed itself.
    """

    job: str
    name: str
    run: Callable[[Any], list[Any]] | None
    hand_sliced: bool = False
