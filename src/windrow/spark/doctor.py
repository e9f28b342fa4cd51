"""What a stream waits for, told by its checkpoint: nothing is written, and the stream may be running.

The state is read by Spark's own reader, and the operators of buckets are restored from it; what they would still give out
are the windows that are open.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from windrow.errors import StateError, UndescribedError, WindrowError
from windrow.spark.checkpoint import PARTITIONS, Checkpoint, SavedBucket, Stateful, saved_buckets
from windrow.triggers import CLOSE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.engine.operator import Operator
    from windrow.spec import QuerySpec


@dataclass
class Diagnosis:
    """Sentences: what there is (`facts`), what the stream waits for (`waits`), what is `damaged`, and what the state does not tell (`untold`)."""

    facts: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        marks = (
            ("", self.facts),
            ("cannot be told: ", self.untold),
            ("waits: ", self.waits),
            ("damaged: ", self.damaged),
        )
        return "\n".join(mark + sentence for mark, sentences in marks for sentence in sentences)


def examine(spark: SparkSession, folder: str | Path, *, query: QuerySpec | None = None) -> Diagnosis:
    """Read a checkpoint, and say how its stream is.

    Parameters
    ----------
    spark
        A session with the RocksDB state store.
    folder
        A folder of this machine.
    query
        The query of the stream, needed only if it has functions of the user's own.

    Raises
    ------
    QueryError
        If the folder is not the checkpoint of a stream.

    Examples
    --------
    >>> def look(spark):
    ...     print(examine(spark, "state/"))
    """
    found = Diagnosis()
    try:
        known = Checkpoint.read(folder)
    except StateError as problem:
        found.damaged.append(str(problem))
        return found
    last = known.last
    if last is None:
        found.waits.append(
            "no micro-batch has finished"
            + (
                "; the first one is planned, and is run when the stream starts"
                if known.planned
                else ": nothing was read yet"
            )
        )
        return found
    found.facts.append(
        f"{len(known.committed)} micro-batches are on record; the last one that finished is {last}{_at(known, last)}"
    )
    if known.unfinished is not None:
        found.waits.append(
            f"micro-batch {known.unfinished}{_at(known, known.unfinished)} was planned and has not finished: it is running now, or is run "
            "again when the stream starts"
        )
    if last not in known.planned:
        found.damaged.append(f"micro-batch {last} is in commits and not in offsets")
        return found
    mark = int(known.committed[last].get("nextBatchWatermarkMs", 0))
    _watermark(known, last, mark, found)
    if not known.operators:
        found.facts.append("the stream keeps no state")
    for operator in known.operators:
        if not operator.is_ours:
            found.facts.append(f"state {operator.number} is Spark's own: {operator.name}")
            continue
        try:
            saved = saved_buckets(spark, known.folder, operator, last)
            _state(known, operator, saved, mark, query, found)
        except StateError as problem:
            found.damaged.append(f"state {operator.number}: {problem}")
        except (PySparkException, Py4JError) as problem:
            found.damaged.append(
                f"state {operator.number} cannot be read: {str(problem).strip().partition(chr(10))[0]}"
            )
    return found


def _watermark(known: Checkpoint, last: int, mark: int, found: Diagnosis) -> None:
    """How far time has come, since when it stands still, and which source brings nothing."""
    if not mark:
        found.waits.append(
            "there is no watermark yet: no event has come that has a time, or all are from before 1970. Windows end only when there is one"
        )
        return
    found.facts.append(f"the watermark is {_moment(mark)}")
    numbers = sorted(number for number in known.planned if number <= last)
    still = [n for n in numbers if int(known.planned[n].get("batchWatermarkMs", 0)) >= mark]
    # With the micro-batch behind the one that moved it, a watermark holds for the first time.
    if len(still) > 1:
        found.waits.append(
            f"the watermark has stood still since micro-batch {still[0]}{_at(known, still[0])}, for {len(still)} micro-batches: it follows "
            "the newest event, and moves when a newer one comes"
        )
    count = max(len(known.planned[n]["sources"]) for n in numbers)
    for i in range(count):
        lines = [known.planned[n]["sources"][i : i + 1] for n in numbers]
        silent = [n for n, line in zip(numbers, lines, strict=True) if line == lines[-1]]
        # A source without an offset, which Spark writes as a dash, has no part in the stream.
        if lines[-1] not in ([], [""], ["-"]) and len(silent) > 2:
            found.waits.append(
                f"source {i} has brought nothing since micro-batch {silent[0]}{_at(known, silent[0])}"
            )


def _state(
    known: Checkpoint,
    operator: Stateful,
    saved: list[SavedBucket],
    mark: int,
    query: QuerySpec | None,
    found: Diagnosis,
) -> None:
    """What is open in all buckets together."""
    name = f"state {operator.number}"
    if not saved:
        found.waits.append(f"{name} is empty: no rows have come")
        return
    about = saved[0].about
    partitions = known.settings.get(PARTITIONS, operator.partitions)
    size = sum(bucket.about.base_bytes + bucket.about.log_bytes for bucket in saved)
    found.facts.append(
        f"{name}: format {about.format}, {len(saved)} buckets in {partitions} partitions, {size / 1e6:,.1f} MB written"
    )
    if saved[0].buckets and saved[0].buckets != len(saved):
        found.damaged.append(f"{name} has {len(saved)} of {saved[0].buckets} buckets")
    try:
        operators = [bucket.operator(query) for bucket in saved]
    except UndescribedError as problem:
        found.untold.append(f"{name}: {problem}")
        return
    metrics = [each.metrics() for each in operators]
    keys, events, late, bad, pending = (
        sum(getattr(each, what) for each in metrics) for what in ("keys", "events", "late", "bad", "pending")
    )
    found.facts.append(
        f"{name}: {keys:,} keys; {events:,} events (or slices of them), {late:,} late and {bad:,} bad since the state began; "
        f"{pending:,} events wait for their order"
    )
    try:
        still = _open(operators)
    except WindrowError as problem:
        found.untold.append(f"{name}: which windows are open: {problem}")
        return
    for window, (count, oldest) in sorted(still.items()):
        text = f"window {window!r}: {count:,} open"
        if oldest is not None:
            text += f", of which the first ends at {_shown(oldest)}{_wait(oldest, mark, operators[0])}"
        found.facts.append(text)


def _open(operators: list[Operator]) -> dict[str, tuple[int, Any]]:
    """For each window how many are not final, and the end of the one that ends first. The operators are used up."""
    counts: dict[str, int] = dict.fromkeys(operators[0].query.windows, 0)
    first: dict[str, Any] = defaultdict(lambda: None)
    for operator in operators:
        settings = operator.settings
        if settings.trigger is not None and settings.trigger.discarding:
            raise UndescribedError(
                f"its rows add up ({settings.trigger}, discarding), and the state holds only what came since the last look"
            )
        if settings.mode == "update":
            operator.reconfigure(replace(settings, mode="append", emit=CLOSE))
        rows = operator.finish()
        for name in counts:
            ends = rows.filter(pc.equal(rows["window"], name))["end"]
            if len(ends):
                counts[name] += len(ends)
                least = pc.min(ends)
                first[name] = (
                    least if first[name] is None or least.as_py() < first[name].as_py() else first[name]
                )
    return {name: (count, first[name]) for name, count in counts.items()}


def _wait(end: pa.Scalar, mark: int, operator: Operator) -> str:
    """How far the watermark has to go until a window is final."""
    measure, lateness = operator.measure, operator.engines[0].lateness
    if measure.tick_nanoseconds is None:
        left = timedelta(milliseconds=float(end.as_py() + lateness - mark))
    else:
        ticks = pc.cast(end, pa.int64()).as_py() if pa.types.is_timestamp(end.type) else None
        if ticks is None:
            return ""
        left = timedelta(milliseconds=(ticks + lateness) * measure.tick_nanoseconds / 1e6 - mark)
    if left <= timedelta(0):
        return ": it comes with the next micro-batch"
    return f": it comes when the watermark has moved on by {left}"


def _shown(end: pa.Scalar) -> str:
    return str(end.as_py())


def _at(known: Checkpoint, number: int) -> str:
    """When a micro-batch was planned."""
    planned = known.planned.get(number, {}).get("batchTimestampMs")
    return f" (planned at {_moment(planned)})" if planned else ""


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
