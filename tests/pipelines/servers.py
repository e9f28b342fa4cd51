"""Real servers for the tests: a Kafka broker with a client that is not Spark's, and PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from patience import PATIENCE

from tools.broker import Broker

Message = tuple[bytes | None, bytes | None]


class Kafka:
    """A broker, and what tests do with it."""

    def __init__(self, folder: Path) -> None:
        self.broker = Broker(folder)
        self.servers = self.broker.servers

    def create(self, topic: str, partitions: int = 1) -> None:
        admin = self._admin()  # what it has begun ends with it
        for future in admin.create_topics([NewTopic(topic, partitions)]).values():
            future.result(PATIENCE)

    def add_partitions(self, topic: str, total: int) -> None:
        admin = self._admin()
        for future in admin.create_partitions([NewPartitions(topic, total)]).values():
            future.result(PATIENCE)

    def produce(self, topic: str, messages: Sequence[bytes | Message], *, partition: int = -1) -> None:
        """See `produce`."""
        produce(self.servers, topic, messages, partition=partition)

    def consume(self, topic: str) -> list[Message]:
        """All messages of a topic, partition by partition."""
        consumer = Consumer(
            {"bootstrap.servers": self.servers, "group.id": "test", "isolation.level": "read_committed"}
        )
        try:
            found = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
            ends = {
                p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=PATIENCE)
                for p in sorted(found)
            }
            return [
                message for p, (low, high) in ends.items() for message in _read(consumer, topic, p, low, high)
            ]
        finally:
            consumer.close()

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})


def produce(servers: str, topic: str, messages: Sequence[bytes | Message], *, partition: int = -1) -> None:
    """Send messages, values or pairs of key and value, and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for message in messages:
        key, value = message if isinstance(message, tuple) else (None, message)
        producer.produce(topic, value, key, partition=partition, on_delivery=_raise)
    assert producer.flush(PATIENCE) == 0


def _raise(error: Any, _: Any) -> None:
    if error is not None:
        raise KafkaException(error)


def _read(consumer: Consumer, topic: str, partition: int, low: int, high: int) -> list[Message]:
    consumer.assign([TopicPartition(topic, partition, low)])
    found: list[Message] = []
    position = low
    while position < high:
        for message in consumer.consume(high - position, timeout=PATIENCE):
            assert message.error() is None, message.error()
            found.append((message.key(), message.value()))
            position = message.offset() + 1
    return found


class PostgresServer:
    """A server with its data in a folder of its own, on a socket in that folder; it does not run as root."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="windrow-postgres-"))
        self.dsn = f"host={self.folder} user=postgres dbname=postgres"
        self._user: dict[str, Any] = {}
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            self._user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        self._data = str(self.folder / "data")
        self._run("initdb", "--pgdata", self._data, "--username", "postgres", "--auth", "trust", "--no-sync")

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._run(
            "pg_ctl",
            "--pgdata",
            self._data,
            "--wait",
            "--timeout",
            str(PATIENCE),
            "--log",
            str(self.folder / "log"),
            "--options",
            options,
            "start",
        )

    def stop(self) -> None:
        self._run("pg_ctl", "--pgdata", self._data, "--mode", "immediate", "stop")
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        command = [_program(program), *arguments]
        # A server that stays must not hold the pipe of its starter open.
        with (self.folder / f"{program}.said").open("w+") as said:
            done = subprocess.run(
                command, stdout=said, stderr=said, cwd=self.folder, check=False, **self._user
            )
            said.seek(0)
            assert done.returncode == 0, said.read()


def _program(name: str) -> str:
    """Debian keeps the server's programs off the path."""
    found = shutil.which(name) or next(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)
    assert found is not None, "PostgreSQL's server is not there: run 'make postgres'"
    return found
