"""Ctrl-C: once, and the stream stops after the running micro-batch; twice, and it stops at once.

Spark has no call for the first: `StreamingQuery.stop` interrupts the micro-batch. So the stream is watched, and is
stopped when the micro-batch that was running has been committed. What may have begun behind it is interrupted; it is in
no sink and in no commit, and is run again when the pipeline goes on.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# How often a stream is looked at, in seconds.
GLANCE = 0.1
STOPPING = "stopping after the running micro-batch; Ctrl-C again stops at once"


@contextmanager
def signals() -> Iterator[list[int]]:
    """The signals that ask the pipeline to stop, as they come while this is entered."""
    seen: list[int] = []
    # Spark has a handler of its own, which cancels all jobs: this one takes its place.
    before = {
        number: signal.signal(number, lambda came, _: seen.append(came))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(running: StreamingQuery, asked: list[int]) -> int:
    """Wait until the stream has ended, or stop it if signals have asked for that; the exit code says which one did."""
    seen: int | None = None
    while not running.awaitTermination(GLANCE):  # type: ignore[arg-type]  # fractions are fine
        if not asked:
            continue
        done = _last_batch(running)
        if seen is None:
            seen = done
            print(STOPPING, file=sys.stderr, flush=True)
        if len(asked) > 1 or done > seen or not running.status["isTriggerActive"]:
            running.stop()
            return 128 + asked[0]
    return 0


def _last_batch(running: StreamingQuery) -> int:
    """The last micro-batch that has been committed."""
    progress = running.lastProgress
    return -1 if progress is None else int(progress.batchId)
