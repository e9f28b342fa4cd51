"""What the whole suite shares.

Settings of Hypothesis: the same examples on every machine, no deadline. The order of files. One small Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# `specimens` and `functions` are shared by tests in several folders.
sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "windrow",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("windrow")

# What takes longest begins first, so that no worker is left with it in the end.
LONGEST = (
    "test_faults",
    "test_cluster",
    "test_restart",
    "test_streaming",
    "test_builtin_windows",
    "test_bad_input_on_spark",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


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
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent),
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
def kafka_jars() -> str:
    """The value of `spark.jars` with which Spark reads and writes Kafka; `make kafka` fetches them."""
    from windrow.pipelines.jars import spark_jars

    return spark_jars()


@pytest.fixture(scope="session")
def spark(small_spark: dict[str, str], kafka_jars: str) -> Iterator[Any]:
    """A local Spark with one core: a process can have one only, so all folders share it."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("windrow").config("spark.jars", kafka_jars)
    for name, value in small_spark.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
    yield session
    session.stop()
