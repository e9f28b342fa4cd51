"""What the whole suite shares: settings of Hypothesis, the order of files, one small Spark, and the last word."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import profiles  # noqa: F401 (it chooses how much Hypothesis tries)
import pytest

# Processes that tests start find `tests.referee` and `tools`, too.
ROOT = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(
    dict.fromkeys([ROOT, *os.environ.get("PYTHONPATH", ROOT).split(os.pathsep)])
)
# What a test compiles depends on nothing but the test; those of the child itself turn it on.
os.environ.setdefault("WINDROW_COMPILE_AHEAD", "0")


@atexit.register  # before all others, so that it is called behind all of them
def _end_with_the_summary() -> None:
    """Nothing is printed behind the summary of the tests.

    When the interpreter ends, DuckDB lists a page of its own objects that something still refers to.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stderr__.fileno())


# What takes longest comes first, so that no worker is left with it in the end. A file that waits for Spark and one that
# compiles take turns: two at once would compile the same, or ask for more than two cores.
FIRST = (
    "test_stream",
    "test_faults",
    "test_sequences",
    "test_cluster",
    "test_spans",
    "test_restart",
    "test_benchmarks",
    "test_streaming",
    "test_docs",
    "test_agreement",
    "test_command",
    "test_every_pair",
    "test_transcripts_on_spark",
    "test_parallel",
    "test_builtin_windows",
    "test_papers",
    "test_bad_input_on_spark",
)


# Compiling makes objects by the million, most of which stay: to look for garbage among them again and again takes a
# tenth of the time of all tests.
gc.set_threshold(50_000, 10, 10)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _tiers() -> Iterator[None]:
    """`WINDROW_BOTH_TIERS=1` compares the tiers in each call of a loop."""
    if not os.environ.get("WINDROW_BOTH_TIERS"):
        yield
        return
    from both_tiers import both_tiers

    with both_tiers():
        yield


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
