"""One small Spark for all tests in this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

# `streams` is shared by the tests of this folder.
sys.path.insert(0, str(Path(__file__).parent))

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="session")
def small_spark(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a Spark with one shuffle partition, without its web pages."""
    folder = tmp_path_factory.mktemp("spark")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        # Jobs are short: code that is compiled at once costs more than it saves.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Workers find `functions` and `specimens`, as the tests do.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent.parent),
        "spark.local.dir": str(folder),
        # On a machine that is busy with other tests, workers may be slow to start.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.stateStore.providerClass": ROCKS,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


@pytest.fixture(scope="session")
def spark(small_spark: dict[str, str]) -> Iterator[Any]:
    """A local Spark with one core."""
    builder = SparkSession.builder.master("local[1]").appName("windrow")
    for name, value in small_spark.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
    yield session
    session.stop()
