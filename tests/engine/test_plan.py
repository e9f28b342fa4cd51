"""The fingerprint of a query tells functions of the user's apart, and is the same in every process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import windrow as wr
from windrow.engine.snapshot.plan import plan_hash

FACTOR = 2


class Scale:
    """An object without a text of its own: its `repr` is an address."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


def hash_of(lift: Callable[..., Any]) -> bytes:
    total = wr.aggregate(lift=lift, combine=lambda a, b: a + b, identity=0.0, columns=["x"], name="total")
    return plan_hash(wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"a": total}))


def closed_over(value: Any) -> Callable[..., Any]:
    return lambda x: x * value.factor if isinstance(value, Scale) else x * value


def times(factor: float, x: float) -> float:
    return x * factor


def by_global(x: float) -> float:
    return x * FACTOR


def by_default(x: float, *, factor: float = 2.0) -> float:
    return x * factor


@pytest.mark.parametrize(
    "make",
    [closed_over, lambda factor: closed_over(Scale(factor)), lambda factor: functools.partial(times, factor)],
    ids=["a number", "an object", "partial"],
)
def test_what_a_function_is_closed_over_counts(make: Callable[[float], Callable[..., Any]]) -> None:
    assert hash_of(make(2.0)) == hash_of(make(2.0))
    assert hash_of(make(2.0)) != hash_of(make(3.0))


def test_a_constant_that_a_function_reads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash_of(by_global)
    assert hash_of(by_global) == before
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert hash_of(by_global) != before


def test_defaults_of_keywords_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash_of(by_default)
    monkeypatch.setattr(by_default, "__kwdefaults__", {"factor": 3.0})
    assert hash_of(by_default) != before
