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

# What compiles most comes first, so that later processes find it on disk. What takes longest is next, so that no
# worker is left with it in the end.
FIRST = (
    "test_stream",
    "test_sequences",
    "test_spans",
    "test_faults",
    "test_restart",
    "test_cluster",
    "test_streaming",
    "test_command",
    "test_docs",
    "test_benchmarks",
    "test_builtin_windows",
    "test_bad_input_on_spark",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


@pytest.fixture(scope="session")
def small_spark(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a Spark with one shuffle partition, without its web pages."""
    from small_spark import settings

    return settings(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="session")
def kafka_jars() -> str:
    """The value of `spark.jars` with which Spark reads and writes Kafka; `make kafka` fetches them."""
    from windrow.pipelines.jars import spark_jars

    return spark_jars()


@pytest.fixture(scope="session")
def spark(small_spark: dict[str, str], kafka_jars: str) -> Iterator[Any]:
    """A local Spark with one core: a process can have one only, so all folders share it."""
    from small_spark import start

    session = start({**small_spark, "spark.jars": kafka_jars})
    yield session
    session.stop()
