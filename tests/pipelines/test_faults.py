"""What happens to every pipeline in its life: nothing is lost, and nothing counts twice.

The death of a worker is in `test_cluster`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from jobs import (
    COLUMNS,
    EPOCH,
    MOMENT,
    Job,
    answer,
    command,
    counted,
    last,
    latest,
    messages,
    orders,
    stored,
)
from killing import killed_at_last, reach
from profiles import NIGHTLY
from pyspark.errors import StreamingQueryException
from servers import Kafka, PostgresServer

from windrow.pipelines.failures import plainly

HOUR = 7_200  # in half seconds, which is how far orders are apart
FIRST, BURST, GAINED = orders(60), orders(20, first=HOUR), orders(20, first=HOUR + 120)
TWICE = BURST.slice(0, 5)
FUTURE = pa.table(
    {"ts": pa.array([datetime(2099, 1, 1, tzinfo=UTC)], MOMENT), "user": ["ann"], "amount": [1]}
)


@dataclass(frozen=True)
class Survived:
    """What a stream gave out, what it set aside, and its reports."""

    windows: list[dict[str, Any]]
    aside: list[dict[str, Any]]
    reports: list[Any]

    def of(self, begin: datetime, end: datetime) -> list[dict[str, Any]]:
        return [row for row in self.windows if begin.isoformat() <= row["start"] < end.isoformat()]


@pytest.fixture(scope="module")
def survived(spark: Any, kafka_server: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Survived:
    """One stream that meets all that can be in a topic.

    orders  poison  2099  orders                         stopped and started again
                                  an hour of silence     a new partition: orders, five of them twice
    """
    kafka_server.create("faults")
    kafka_server.produce("faults", [*messages(FIRST.slice(0, 40)), b"poison", *messages(FUTURE)])
    kafka_server.produce("faults", messages(FIRST.slice(40)))
    job = Job(
        kafka_server.servers,
        "faults",
        str(tmp_path_factory.mktemp("faults")),
        sink="kafka",
        target="survived",
        max_ahead="10 minutes",
        options={"on_bad": "divert", "side_rows": True},
        reading={"max_rows": 50, "on_bad": "divert"},
    )
    reports = job.run(spark)
    kafka_server.add_partitions("faults", 2)
    kafka_server.produce("faults", messages(pa.concat_tables([BURST, TWICE])), partition=0)
    kafka_server.produce("faults", messages(pa.concat_tables([GAINED, last()])), partition=1)
    reports += job.run(spark)
    aside = [json.loads(value or b"null") for _, value in kafka_server.consume("survived-bad")]
    return Survived(latest(kafka_server.consume("survived")), aside, reports)


def test_a_poison_message_is_set_aside_and_counted(survived: Survived) -> None:
    (row,) = [row for row in survived.aside if row["side_row"]["poison"] is not None]
    poison = row["side_row"]["poison"]
    assert (poison["topic"], poison["partition"], poison["offset"]) == ("faults", 0, 40)
    assert poison["reason"] == "it is not json of the schema"
    assert row["side"] == "bad"
    assert counted(survived.reports, "bad") == 2


def test_an_event_dated_2099_does_not_silence_the_stream(survived: Survived) -> None:
    (row,) = [row for row in survived.aside if row["side_row"]["ahead"] is not None]
    assert row["side_row"]["ahead"] == "2099-01-01T00:00:00.000000Z"
    assert survived.of(EPOCH - timedelta(hours=1), EPOCH + timedelta(minutes=30)) == answer(FIRST)


def test_a_burst_after_an_hour_of_silence_is_neither_late_nor_too_early(survived: Survived) -> None:
    """`max_ahead` is ten minutes: of the clock, and not of the watermark."""
    begin = EPOCH + timedelta(minutes=30)
    assert survived.of(begin, begin + timedelta(minutes=30, seconds=50)) == answer(
        pa.concat_tables([BURST, TWICE])
    )
    assert counted(survived.reports, "late") == 0


def test_a_partition_that_a_topic_gains_is_read_from_its_start(survived: Survived) -> None:
    begin = EPOCH + timedelta(minutes=60, seconds=50)
    assert survived.of(begin, begin + timedelta(hours=1)) == answer(GAINED)


def test_a_message_that_was_delivered_twice_counts_twice(survived: Survived) -> None:
    total = sum(row["n"] for row in survived.windows if row["window"] == "visit")
    assert total == len(FIRST) + len(BURST) + len(TWICE) + len(GAINED)
    assert counted(survived.reports, "events") == total + 1


def test_a_message_that_was_delivered_twice_counts_once_if_it_is_asked_for(
    spark: Any, kafka_server: Kafka, tmp_path: Path
) -> None:
    """Also where the second comes in a later micro-batch, behind a restart. Bad ones all count, and hide no good one."""
    numbered = FIRST.append_column("id", pa.array(range(len(FIRST))))
    end = last().append_column("id", pa.array([-1]))
    bad = [b"poison", *messages(FUTURE.append_column("id", pa.array([55]))), b"poison"]
    kafka_server.create("twice")
    kafka_server.produce("twice", bad + messages(numbered.slice(0, 58)) + messages(numbered.slice(50, 5)))
    job = Job(
        kafka_server.servers,
        "twice",
        str(tmp_path),
        dedupe={"id": "id", "horizon": "10 minutes"},
        max_ahead="10 minutes",
        options={"on_bad": "divert"},
        reading={"schema": f"{COLUMNS}, id long", "on_bad": "divert"},
    )
    reports = job.run(spark)
    kafka_server.produce("twice", bad + messages(pa.concat_tables([numbered.slice(50), end])))
    reports += job.run(spark)
    assert job.result(spark) == answer(FIRST)
    assert counted(reports, "bad") == 2 * len(bad)


def test_a_poison_message_stops_a_stream_until_it_is_asked_to_go_on(
    spark: Any, kafka_server: Kafka, tmp_path: Path
) -> None:
    kafka_server.create("poison")
    kafka_server.produce("poison", [*messages(FIRST.slice(0, 3)), b'{"ts":\n"soon"}', *messages(last())])
    job = Job(kafka_server.servers, "poison", str(tmp_path), reading={"max_rows": 3})
    with pytest.raises(StreamingQueryException) as failure:
        job.run(spark)
    assert str(plainly(failure.value, checkpoint="state")).startswith(
        "topic poison, partition 0, offset 3: this message cannot be read, it is not json of the schema: "
        '{"ts": "soon"}; on_bad=\'divert\' counts such messages and goes on'
    )
    assert job.commits() == [0]
    asked = replace(job, options={"on_bad": "divert"}, reading={"on_bad": "divert"})
    assert counted(asked.run(spark), "bad") == 1
    assert asked.result(spark) == answer(FIRST.slice(0, 3))


def test_a_broker_that_is_killed_and_started_again_is_waited_for(
    spark: Any, kafka_server: Kafka, tmp_path: Path
) -> None:
    kafka_server.create("restarted")
    kafka_server.produce("restarted", messages(pa.concat_tables([FIRST, last()])))
    job = Job(kafka_server.servers, "restarted", str(tmp_path), reading={"max_rows": 15})
    running = job.start(spark)
    try:
        while not job.commits():
            assert not running.awaitTermination(0.02), "the stream ended before the broker was killed"
        kafka_server.broker.kill()
        assert running.isActive
        kafka_server.broker.start()
        running.awaitTermination()
    finally:
        running.stop()
    assert job.result(spark) == answer(FIRST)


@pytest.mark.parametrize(
    ("is_there", "said"),
    [
        (False, "the Kafka broker does not answer: see that it runs at the address given, and start again"),
        (True, "the topic is not there: create it, and start again"),
    ],
    ids=["broker", "topic"],
)
def test_a_broker_or_a_topic_that_stays_away_is_a_clear_error(
    spark: Any, kafka_server: Kafka, tmp_path: Path, is_there: bool, said: str
) -> None:
    """A stream waits no longer than it was asked to."""
    servers = kafka_server.servers if is_there else "127.0.0.1:1"
    job = Job(servers, "nowhere", str(tmp_path), reading={"patience": "500 milliseconds"})
    with pytest.raises(StreamingQueryException) as failure:
        job.run(spark)
    assert str(plainly(failure.value, checkpoint="state")).startswith(said)


def test_a_driver_that_is_killed_at_any_point_leaves_a_table_without_gaps_and_without_doubles(
    spark: Any,
    kafka_server: Kafka,
    kafka_jars: str,
    postgres_server: PostgresServer,
    small_spark: dict[str, str],
    tmp_path: Path,
) -> None:
    """When a micro-batch was in the table and Spark did not know it yet; at night also when it was planned."""
    kafka_server.create("killed")
    kafka_server.produce("killed", messages(pa.concat_tables([FIRST, last()])))
    settings = {**small_spark, "spark.master": "local[1]", "spark.jars": kafka_jars}
    job = Job(
        kafka_server.servers,
        "killed",
        str(tmp_path),
        sink="postgres",
        target=postgres_server.dsn,
        reading={"max_rows": 15},
        settings=settings,
    )
    with psycopg.connect(postgres_server.dsn, autocommit=True) as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS windrow_batches (stream text PRIMARY KEY, batch bigint, checkpoint text)"
        )

        def applied(batch: int) -> bool:
            line = "SELECT batch FROM windrow_batches WHERE stream = 'killed'"
            return (database.execute(line).fetchone() or (-1,))[0] >= batch

        def planned(batch: int) -> bool:
            return (tmp_path / "checkpoint" / "offsets" / str(batch)).exists()

        first = random.Random(3).randrange(1, 3)
        moments: list[Callable[[], bool]] = [lambda: applied(first + 1)]
        if NIGHTLY:  # what comes behind is the same as for `state_written` in `test_restart`
            moments.insert(0, lambda: planned(first))
        for happened in moments:
            with killed_at_last(command(job), tmp_path) as process:
                reach(process, happened)
        job.run(spark)
        found = stored(database, "totals_killed")
    assert found == answer(FIRST)


def test_a_checkpoint_on_a_full_disk_is_a_clear_error_and_goes_on_when_there_is_room(
    spark: Any, kafka_server: Kafka, kafka_jars: str, small_spark: dict[str, str], tmp_path: Path
) -> None:
    kafka_server.create("full")
    kafka_server.produce("full", messages(FIRST.slice(0, 30)))
    more = tmp_path / "more"
    more.write_bytes(b"\n".join(messages(pa.concat_tables([FIRST.slice(30), last()]))))
    settings = {**small_spark, "spark.master": "local[1]", "spark.jars": kafka_jars}
    job = Job(kafka_server.servers, "full", str(tmp_path), settings=settings)
    rights = [] if os.getuid() == 0 else ["--map-root-user"]
    script = Path(__file__).parent / "full_disk.py"
    result = tmp_path / "result"
    parts = [
        "unshare",
        "--mount",
        *rights,
        sys.executable,
        str(script),
        json.dumps(asdict(job)),
        str(more),
        str(result),
    ]
    paths = [*os.environ.get("PYTHONPATH", "").split(":"), str(script.parent), str(script.parent.parent)]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": ":".join(path for path in paths if path),
    }
    done = subprocess.run(parts, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert result.read_text().startswith(
        "the disk is full: make room, and start again (all that was finished"
    )
    assert job.result(spark) == answer(FIRST)
