"""Settings of Hypothesis for the whole suite: the same examples on every machine, no deadline. The order of files."""

import sys
from pathlib import Path

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
    "test_cluster",
    "test_restart",
    "test_streaming",
    "test_builtin_windows",
    "test_bad_input_on_spark",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))
