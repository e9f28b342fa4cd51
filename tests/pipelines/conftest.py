"""Servers, each started once for all tests of this folder, and files of pipelines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# `servers` and `jobs` of this folder, `streams` of the tests on Spark.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "spark")]

from servers import Kafka, PostgresServer  # noqa: E402 (the line above lets it be found)


@pytest.fixture(scope="session")
def kafka_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A Kafka broker on loopback."""
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    with kafka.broker:
        yield kafka


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server on a socket of its own."""
    server = PostgresServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes the text of a pipeline to a file, and gives its path."""

    def written(text: str) -> Path:
        path = tmp_path / "pipeline.yaml"
        path.write_text(text, "utf-8")
        return path

    return written
