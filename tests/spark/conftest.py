"""What the tests of this folder share."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_spark import COMPILED, INTERPRETED

# `streams` and `stores`.
sys.path.insert(0, str(Path(__file__).parent))
# Tests of what the JVM computes for windrow, of Spark's own windows beside ours, and of examples: as users have it.
AS_COMPILED = {
    "test_batch",
    "test_builtin_windows",
    "test_jvm_windows",
    "test_pushdown",
    "test_readme_on_spark",
    "test_sessions",
}


@pytest.fixture(scope="module", autouse=True)
def _code_of_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark compiles the stages of its jobs where tests are about them."""
    if request.path.stem not in AS_COMPILED:
        yield
        return
    conf = request.getfixturevalue("spark").conf
    before = {name: conf.get(name) for name in INTERPRETED}
    for name, value in COMPILED.items():
        conf.set(name, value)
    yield
    for name, value in before.items():
        conf.set(name, value)
