"""A function is known by its code and by all that the code reads."""

from __future__ import annotations

import functools

import numpy as np
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
