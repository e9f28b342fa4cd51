"""A function is known by its code and by all that the code reads."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from windrow.compiling.fingerprint import code_of

CALLER = """
LIMIT = {limit}

def inner(x):
    return x {sign} 1

def again(x):
    return inner(x) if x < LIMIT else again(x - 1)
"""


def made(limit="np.int64(5)", sign="+"):
    scope = {"np": np}
    exec(CALLER.format(limit=limit, sign=sign), scope)
    return scope["again"]


def test_the_same_code_has_the_same_text():
    assert code_of(made()) == code_of(made())


@pytest.mark.parametrize("change", [{"limit": "np.int64(6)"}, {"limit": "5.0"}, {"sign": "-"}])
def test_what_a_function_reads_and_calls_counts(change):
    assert code_of(made(**change)) != code_of(made())


def test_arguments_that_are_filled_in_count():
    assert code_of(functools.partial(made(), 1)) != code_of(functools.partial(made(), 2))


class Scale:
    """Something that can be called, and a method that reads what it is bound to."""

    __slots__ = ("by", "lock")

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by

    def times(self, x):
        return x * self.by


@dataclass
class Weights:
    """Of many numbers, most of which its text leaves out."""

    of: np.ndarray


def long(by):
    found = np.ones(2000)
    found[1000] = by
    return found


def closed_over(weights):
    return lambda x: x * weights[1000]


def with_default(weights):
    return lambda x, w=weights: x * w[1000]


def reading(weights):
    scope = {"weights": weights}
    exec("def read(x):\n    return x * weights", scope)
    return scope["read"]


@pytest.mark.parametrize(
    "make",
    [
        Scale,
        lambda by: Scale(by).times,
        lambda by: functools.lru_cache(lambda x: x * by),
        lambda by: closed_over(long(by)),
        lambda by: closed_over(pa.array(long(by))),
        lambda by: closed_over([long(by)]),
        lambda by: closed_over(Weights(long(by))),
        lambda by: closed_over(Scale(by)),
        lambda by: closed_over(np.array([1 + by * 1e-12])),
        lambda by: with_default(long(by)),
        lambda by: reading(long(by)),
        lambda by: reading([by]),
        lambda by: reading({1: by}),
        lambda by: reading(Scale(by)),
        lambda by: reading(Scale(by).times),
        lambda by: reading((lambda x: x * by,)),
    ],
)
def test_what_a_function_is_made_of_counts(make):
    assert code_of(make(2)) == code_of(make(2))
    assert code_of(make(2)) != code_of(make(3))


def test_the_text_of_what_holds_itself_ends():
    weights = Scale([])
    weights.by.append(weights)
    assert "[Scale]" in code_of(weights)


def test_the_text_has_no_addresses_and_no_order_of_sets():
    text = code_of(closed_over([object(), iter([]), {"a", "b", "c"}]))
    assert " at 0x" not in text
    assert "{'a', 'b', 'c'}" in text


def test_the_text_of_many_functions_that_call_each_other_stays_short():
    def chain(by, length=200):
        function = lambda x: x * by  # noqa: E731
        for _ in range(length):
            function = outer(function)
        return function

    def outer(called):
        return lambda x: called(x)

    assert len(code_of(chain(2))) < 1 << 20
    assert code_of(chain(2)) == code_of(chain(2))
    assert code_of(chain(2)) != code_of(chain(3))
