"""Ctrl-C: once, and the stream stops after the running micro-batch; twice, and it stops at once.

Spark has no call for the first: `StreamingQuery.stop` interrupts the micro-batch. So the stream is watched, and is
stopped when the micro-batch that was running has been committed. What may have begun behind it is interrupted; it is in
no sink and in no commit, and is run again when the pipeline goes on.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# How often a stream is looked at, in seconds.
GLANCE = 0.1
STOPPING = "stopping after the running micro-batch; Ctrl-C again stops at once"


class Stop:
    """Whether somebody wants the pipeline to stop; counts signals while it is entered."""

    def __init__(self) -> None:
        self.signals: list[int] = []
        self._before: dict[int, Any] = {}

    @property
    def wanted(self) -> bool:
        return bool(self.signals)

    @property
    def at_once(self) -> bool:
        return len(self.signals) > 1

    @property
    def code(self) -> int:
        """The exit code that says which signal it was."""
        return 128 + self.signals[0]

    def __enter__(self) -> Stop:
        # Spark has a handler of its own, which cancels all jobs: this one takes its place.
        self._before = {
            number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)


def follow(running: StreamingQuery, stop: Stop) -> int:
    """Wait until the stream has ended, or stop it if that is wanted; the exit code."""
    seen: int | None = None
    while not running.awaitTermination(GLANCE):  # type: ignore[arg-type]  # fractions are fine
        if not stop.wanted:
            continue
        done = _last_batch(running)
        if seen is None:
            seen = done
            print(STOPPING, file=sys.stderr, flush=True)
        if stop.at_once or done > seen or not running.status["isTriggerActive"]:
            running.stop()
            return stop.code
    return 0


def _last_batch(running: StreamingQuery) -> int:
    """The last micro-batch that has been committed."""
    progress = running.lastProgress
    return -1 if progress is None else int(progress.batchId)
