"""What a stream is doing, in one line per micro-batch, through Python's logging.

    payments: batch 17: 12,000 rows, 8,431 rows/s, watermark 2026-11-16 10:00:05, lag 4.1 s, state 1.2 MB, late 3, bad 0

*Lag* is the time from the newest event to the end of the micro-batch that took it; the events of a replay are of the
past, and it is left out there. A source that knows it says how many rows wait. *Late*, *bad* and *duplicates* are
counted from the start of the listener. From when on windows and aggregates that came later are complete is said once.
Late rows are those that windrow counts and those that Spark's own operators have dropped; see `Query.on_spark` for `metrics`.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

LOG = logging.getLogger("windrow.pipelines")


@dataclass(frozen=True)
class Progress:
    """One micro-batch, and what was counted up to it."""

    name: str
    batch: int
    rows: int
    rows_per_second: float
    watermark: datetime | None
    lag: timedelta | None
    waiting: int | None
    state_bytes: int
    state_rows: int
    total: int = 0
    late: int = 0
    bad: int = 0
    duplicates: int = 0
    complete_from: Mapping[str, str] = field(default_factory=dict)
    # Of `complete_from`, what no micro-batch before has said.
    news: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, report: Mapping[str, Any], *, metrics: str = "windrow") -> Progress:
        """What Spark reports of a micro-batch (`StreamingQueryProgress.json`)."""
        operators = report["stateOperators"]
        observed = report.get("observedMetrics", {}).get(metrics, {})
        starts = observed.get("complete_from") or {}
        return cls(
            name=report["name"] or report["id"],
            batch=report["batchId"],
            rows=report["numInputRows"],
            rows_per_second=report.get("processedRowsPerSecond", 0.0),
            watermark=_watermark(report),
            lag=_lag(report),
            waiting=_waiting(report),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            total=report["numInputRows"],
            late=(observed.get("late") or 0) + sum(o["numRowsDroppedByWatermark"] for o in operators),
            bad=observed.get("bad") or 0,
            duplicates=sum(o["customMetrics"].get("numDroppedDuplicateRows", 0) for o in operators),
            complete_from=starts,
            news=starts,
        )

    def after(self, before: Progress | None) -> Progress:
        """The same, with all that was counted before."""
        if before is None:
            return self
        return replace(
            self,
            watermark=self.watermark or before.watermark,
            total=before.total + self.total,
            late=before.late + self.late,
            bad=before.bad + self.bad,
            duplicates=before.duplicates + self.duplicates,
            complete_from=self.complete_from or before.complete_from,
            news=dict(self.complete_from.items() - before.complete_from.items()),
        )

    def parts(self) -> list[str]:
        """What a line says, in pieces."""
        said = [f"batch {self.batch}", f"{self.rows:,} rows", f"{self.rows_per_second:,.0f} rows/s"]
        if self.watermark is not None:
            said.append(f"watermark {self.watermark:%Y-%m-%d %H:%M:%S}")
        if self.waiting is not None:
            said.append(f"{self.waiting:,} rows waiting")
        if self.lag is not None:
            said.append(f"lag {_length(self.lag)}")
        said += [f"state {self.state_bytes / 1e6:,.1f} MB", f"late {self.late:,}", f"bad {self.bad:,}"]
        said += [f"duplicates {self.duplicates:,}"] if self.duplicates else []
        return said + [f"{name} complete from {start}" for name, start in sorted(self.news.items())]

    def numbers(self) -> dict[str, float]:
        """All that is a number, by name; what is not known is left out."""
        numbers = {
            "rows": self.total,
            "late_rows": self.late,
            "bad_rows": self.bad,
            "duplicate_rows": self.duplicates,
            "batch": self.batch,
            "rows_per_second": self.rows_per_second,
            "rows_waiting": self.waiting,
            "state_bytes": self.state_bytes,
            "state_rows": self.state_rows,
            "watermark_seconds": None if self.watermark is None else self.watermark.timestamp(),
            "lag_seconds": None if self.lag is None else self.lag.total_seconds(),
        }
        return {name: number for name, number in numbers.items() if number is not None}

    def told(self) -> dict[str, Any]:
        """Name and numbers, for JSON."""
        return {"pipeline": self.name, **self.numbers(), "complete_from": dict(self.complete_from)}

    def __str__(self) -> str:
        batch, *rest = self.parts()
        return f"{self.name}: {batch}: {', '.join(rest)}"


class ProgressListener(StreamingQueryListener):
    """Logs one line per micro-batch of every stream of a session.

    Parameters
    ----------
    metrics
        The name of the observed metrics of windrow; "windrow" by default.
    show
        What is called with the `Progress` of each micro-batch; None (default) logs it.

    Examples
    --------
    >>> def watched(spark):
    ...     spark.streams.addListener(ProgressListener())
    """

    def __init__(self, *, metrics: str = "windrow", show: Callable[[Progress], None] | None = None) -> None:
        self._metrics = metrics
        self._show = show or (lambda progress: LOG.info("%s", progress))
        self._last: dict[str, Progress] = {}
        self._lock = threading.Lock()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """A line is for a micro-batch; there is none yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.catch_up([event.progress])

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """No rows came: no line."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The last micro-batch had its line."""

    def catch_up(self, reports: Iterable[StreamingQueryProgress]) -> None:
        """Log those that were not logged yet: Spark reports them some time later, or not at all at the end."""
        with self._lock:
            for report in (json.loads(each.json) for each in reports):
                run, progress = report["runId"], Progress.of(report, metrics=self._metrics)
                before = self._last.get(run)
                if before is None or progress.batch > before.batch:
                    self._last[run] = progress.after(before)
                    self._show(self._last[run])


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _watermark(report: Mapping[str, Any]) -> datetime | None:
    """Spark's watermark; it says 1970 where it has none yet."""
    text = report.get("eventTime", {}).get("watermark")
    moment = _moment(text) if text else None
    return None if moment is None or moment.timestamp() == 0 else moment


def _lag(report: Mapping[str, Any]) -> timedelta | None:
    newest = report.get("eventTime", {}).get("max")
    if newest is None or any(_is_replay(source) for source in report["sources"]):
        return None
    return _moment(report["timestamp"]) + timedelta(milliseconds=report["batchDuration"]) - _moment(newest)


def _waiting(report: Mapping[str, Any]) -> int | None:
    """Rows that the sources have and the stream has not; None where no source says it."""
    known = [_rows_waiting(source) for source in report["sources"]]
    said = [rows for rows in known if rows is not None]
    return sum(said) if said else None


def _rows_waiting(source: Mapping[str, Any]) -> int | None:
    end, latest = source.get("endOffset"), source.get("latestOffset")
    if not isinstance(end, dict) or not isinstance(latest, dict):
        return None
    if _is_replay(source):
        return max(0, latest["row"] - end["row"])
    partitions = [(topic, p) for topic, found in latest.items() if isinstance(found, dict) for p in found]
    if not partitions:
        return None
    return sum(max(0, latest[topic][p] - end.get(topic, {}).get(p, 0)) for topic, p in partitions)


def _is_replay(source: Mapping[str, Any]) -> bool:
    """Its offsets, unlike those of Kafka, are numbers of rows."""
    end = source.get("endOffset")
    return isinstance(end, dict) and isinstance(end.get("row"), int)


def _length(lag: timedelta) -> str:
    """A length of time as a person says it.

    >>> _length(timedelta(seconds=75)), _length(timedelta(days=40))
    ('1.2 min', '40.0 days')
    """
    seconds = lag.total_seconds()
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"
