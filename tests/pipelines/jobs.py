"""Orders of some users as messages, and what pipelines over them must give.

Run as a program, it is a pipeline of its own that can be killed: Kafka JSON in, one sink out, until the topic has no more.

    python jobs.py ASKED        a `Job` as JSON
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import windrow as wr

COLUMNS = "ts timestamp, user string, amount long"
AVRO = json.dumps(
    {
        "type": "record",
        "name": "order",
        "fields": [
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "user", "type": ["null", "string"]},
            {"name": "amount", "type": "long"},
        ],
    }
)
EPOCH = datetime(2024, 5, 1, tzinfo=UTC)
AGGREGATES = {"n": wr.count(), "total": wr.sum("amount"), "high": wr.max("amount")}
WINDOWS = {"w": wr.sliding("20 seconds", every="10 seconds"), "visit": wr.session("3 seconds")}
QUERY = wr.query(time="ts", key="user", windows=WINDOWS, aggregates=AGGREGATES)
# Nobody's: an order long after all others, by which the watermark ends their windows.
LAST = "nobody"


def orders(count: int, *, seed: int = 0, first: int = 0, disorder: int = 0) -> pa.Table:
    """Orders of four users, one of them unnamed, half a second apart, each up to `disorder` seconds out of its place."""
    luck = random.Random(seed)
    places = [
        (first + i) * 500_000 + luck.randrange(-disorder, disorder + 1) * 1_000_000 for i in range(count)
    ]
    return pa.table(
        {
            "ts": pa.array(
                [EPOCH + timedelta(microseconds=p + luck.randrange(400_000)) for p in places], MOMENT
            ),
            "user": pa.array([luck.choice(["ann", "bob", "cyd", None]) for _ in places], pa.string()),
            "amount": pa.array([luck.randrange(100) for _ in places], pa.int64()),
        }
    )


MOMENT = pa.timestamp("us", "UTC")


def last(after: timedelta = timedelta(days=1)) -> pa.Table:
    """The order by which all others' windows end."""
    return pa.table({"ts": pa.array([EPOCH + after], MOMENT), "user": [LAST], "amount": [0]})


def messages(table: pa.Table) -> list[bytes]:
    """Rows as JSON, in their order."""
    return [json.dumps({**row, "ts": row["ts"].isoformat()}).encode() for row in table.to_pylist()]


def answer(table: pa.Table, query: wr.Query = QUERY) -> list[dict[str, Any]]:
    """The windows that an embedded query gives, as plain rows in a fixed order."""
    return in_order(query.run(table).to_pylist())


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of windows, without those that belong to nobody, and without what is not part of the answer."""
    names = ["user", "window", "start", "end", *AGGREGATES]
    kept = [{name: _plain(row[name]) for name in names} for row in rows if row["user"] != LAST]
    return sorted(kept, key=repr)


def stored(database: Any, table: str) -> list[dict[str, Any]]:
    """The windows in a table of PostgreSQL."""
    columns = ["user", "window", "start", "end", *AGGREGATES]
    names = ", ".join(f'"{name}"' for name in columns)
    found = database.execute(f"SELECT {names} FROM {table}").fetchall()
    return in_order([dict(zip(columns, row, strict=True)) for row in found])


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value


def latest(consumed: list[tuple[bytes | None, bytes | None]]) -> list[dict[str, Any]]:
    """What a compacted topic would keep: the last value of each key, unless it is a tombstone."""
    values = dict(consumed)
    rows = [json.loads(value) for value in values.values() if value is not None]
    return in_order(
        [{**row, **{n: datetime.fromisoformat(row[n]) for n in ("start", "end")}} for row in rows]
    )


@dataclass(frozen=True)
class Job:
    """A pipeline from a topic to a sink; `options` are those of `on_spark`, `reading` those of `read_kafka`."""

    servers: str
    topic: str
    folder: str
    sink: str = "parquet"
    target: str = ""
    delay: str = "5 seconds"
    max_ahead: str | None = None
    dedupe: dict[str, str] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    def windows(self, spark: Any) -> Any:
        from windrow.pipelines.dedupe import dedupe
        from windrow.pipelines.kafka import read_kafka
        from windrow.pipelines.skew import not_ahead

        reading = {"schema": COLUMNS, **self.reading}
        events = read_kafka(spark, servers=self.servers, topic=self.topic, **reading)
        if self.max_ahead is not None:
            events = not_ahead(events, time="ts", max_ahead=self.max_ahead, on_bad="divert")
        events = events.withWatermark("ts", self.delay)
        if self.dedupe is not None:
            events = dedupe(events, **self.dedupe)
        return QUERY.on_spark(events, buckets=2, **self.options)

    def start(self, spark: Any, *, until_empty: bool = True) -> Any:
        """The stream at work; it ends when the topic has no more, or does not end."""
        writer = self._writer(self.windows(spark))
        writer = writer.option("checkpointLocation", f"{self.folder}/checkpoint").outputMode("append")
        trigger: dict[str, Any] = {"availableNow": True} if until_empty else {"processingTime": "0 seconds"}
        return writer.trigger(**trigger).start()

    def run(self, spark: Any) -> list[Any]:
        """All reports of a stream that has ended."""
        running = self.start(spark)
        try:
            running.awaitTermination()
            return list(running.recentProgress)
        finally:
            running.stop()

    def _writer(self, windows: Any) -> Any:
        from windrow.pipelines.kafka import to_kafka
        from windrow.pipelines.postgres import Postgres
        from windrow.pipelines.upsert import upsert

        if self.sink == "parquet":
            return windows.writeStream.format("parquet").option("path", self.output)
        if self.sink == "postgres":
            target = Postgres(self.target, table="totals_" + self.topic)
            return windows.writeStream.foreachBatch(upsert(QUERY, target, stream=self.topic))
        bad = f"{self.target}-bad" if self.options.get("side_rows") else None
        sent = to_kafka(windows, QUERY, topic=self.target, bad_topic=bad)
        return sent.writeStream.format("kafka").option("kafka.bootstrap.servers", self.servers)

    @property
    def output(self) -> str:
        return f"{self.folder}/output"

    def result(self, spark: Any) -> list[dict[str, Any]]:
        """What the sink of files has committed."""
        return in_order(spark.read.parquet(self.output).toArrow().to_pylist())

    def commits(self) -> list[int]:
        """The micro-batches that have ended."""
        found = Path(self.folder, "checkpoint", "commits").glob("[0-9]*")
        return sorted(int(path.name) for path in found)

    def forget(self, batch: int) -> None:
        """As if the driver had been killed before it noted that the micro-batch had ended."""
        folder = Path(self.folder, "checkpoint", "commits")
        (folder / str(batch)).unlink()
        (folder / f".{batch}.crc").unlink(missing_ok=True)


def counted(reports: list[Any], name: str) -> int:
    """One of windrow's counters, over all micro-batches."""
    found = [r.observedMetrics["windrow"] for r in reports if "windrow" in r.observedMetrics]
    return sum(row[name] or 0 for row in found)


def main(asked: str) -> None:
    from pyspark.sql import SparkSession

    job = Job(**json.loads(asked))
    builder = SparkSession.builder.appName("orders")
    for name, value in job.settings.items():
        builder = builder.config(name, value)
    job.start(builder.getOrCreate()).awaitTermination()


def command(job: Job) -> list[str]:
    """The job as a program."""
    return [sys.executable, __file__, json.dumps(asdict(job))]


if __name__ == "__main__":
    main(sys.argv[1])
