"""Kafka in, Kafka and files out, against the embedded answer over the same events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jobs import AVRO, COLUMNS, QUERY, Job, answer, last, latest, messages, orders
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import to_avro
from servers import Kafka

import windrow as wr
from windrow.errors import QueryError
from windrow.pipelines.kafka import read_kafka, to_kafka


def test_a_changelog_in_kafka_replayed_by_key_is_the_answer_also_where_a_batch_is_sent_twice(
    spark: Any, kafka_server: Kafka, tmp_path: Path
) -> None:
    """Orders come further out of their places than a micro-batch is long: sessions fuse, windows are revised."""
    given = orders(90, disorder=20)
    kafka_server.create("json", 2)
    kafka_server.create("changes", 2)
    for partition in (0, 1):
        kafka_server.produce("json", messages(given)[partition::2], partition=partition)
    job = Job(
        kafka_server.servers,
        "json",
        str(tmp_path),
        sink="kafka",
        target="changes",
        delay="0 seconds",
        options={"mode": "update", "lateness": "1 hour"},
        reading={"max_rows": 30},
    )
    job.run(spark)
    job.forget(job.commits()[-1])
    kafka_server.produce("json", messages(last()), partition=0)
    job.run(spark)
    sent = kafka_server.consume("changes")
    assert max(Counter(sent).values()) == 2, "no micro-batch was sent twice"
    assert any(value is None for _, value in sent), "no window was deleted"
    assert latest(sent) == answer(given)


def test_avro_orders_become_files_of_windows_exactly_once(
    spark: Any, kafka_server: Kafka, tmp_path: Path
) -> None:
    given = pa.concat_tables([orders(60), last()])
    kafka_server.create("avro")
    frame = spark.createDataFrame(given.to_pylist(), COLUMNS).coalesce(1)
    frame = frame.select(to_avro(sf.struct("ts", "user", "amount"), AVRO).alias("value"))
    frame.write.format("kafka").option("kafka.bootstrap.servers", kafka_server.servers).option(
        "topic", "avro"
    ).save()
    reading = {"format": "avro", "schema": AVRO, "max_rows": 25}
    job = Job(kafka_server.servers, "avro", str(tmp_path), reading=reading)
    job.run(spark)
    job.forget(job.commits()[-1])
    job.run(spark)
    assert job.result(spark) == answer(given)


def test_what_cannot_be_meant_is_refused(spark: Any) -> None:
    def read(**options: Any) -> Any:
        return read_kafka(spark, **{"servers": "localhost:1", "topic": "t", "schema": COLUMNS, **options})

    for options, said in {
        "on_bad": ({"on_bad": "ignore"}, "on_bad must be raise or divert"),
        "format": ({"format": "xml"}, "format must be json or avro, not 'xml'"),
        "avro": ({"format": "avro"}, "an Avro schema is a record with fields, as JSON"),
        "poison": ({"schema": "poison string"}, "cannot have a column called poison"),
        "patience": ({"patience": 0}, "patience must be a duration longer than zero"),
    }.values():
        with pytest.raises(QueryError, match=said):
            read(**options)
    empty = spark.createDataFrame([], "user string, window string, start timestamp, end timestamp")
    with pytest.raises(QueryError, match="there is no column n, total, high"):
        to_kafka(empty, QUERY, topic="t")


def test_keys_are_the_same_in_every_time_zone(spark: Any) -> None:
    """Cumulated windows share a start: the end is part of the key."""
    query = wr.query(
        time="ts", windows={"c": wr.cumulate("2 minutes", step="1 minute")}, aggregates={"n": wr.count()}
    )
    frame = spark.createDataFrame(orders(3).to_pylist(), COLUMNS)
    keys = []
    for zone in ("America/New_York", "UTC"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        keys.append([row.key for row in to_kafka(query.on_spark(frame), query, topic="t").collect()])
    assert sorted(keys[0]) == sorted(keys[1])
    assert min(keys[0]) == (
        '{"window":"c","start":"2024-05-01T00:00:00.000000Z","end":"2024-05-01T00:01:00.000000Z"}'
    )
    assert len(set(keys[0])) == 2
