"""Functions of the user's own that cannot be compiled: what is said, and that threads may find out together."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba.core.errors import TypingError
from patience import PATIENCE

from windrow.compiling.compiler import InterpretedWarning, _UserKernel, warn_interpreted


def digits(x):
    return len(str(x))


def lift(inputs, i):
    return digits(inputs[i])


def insert(inputs, i):
    return step(inputs, i)


def step(inputs, i):
    return lift(inputs, i)


for function in (lift, step, insert):
    function.__module__ = "windrow.engine.functions.bound_kernels"


def test_a_warning_names_the_functions_of_the_user_however_deep_they_are_called():
    with pytest.warns(InterpretedWarning, match="^digits 'digits': cannot be compiled"):
        warn_interpreted({"insert": insert, "nothing": None}, TypingError("no"))


def test_two_threads_that_find_out_together_give_up_one_way_and_not_two():
    both = threading.Barrier(2)

    def impossible(x):
        both.wait(PATIENCE)
        raise TypingError("no")

    kernel = _UserKernel("def one(x):\n    return -1\n", "one", {}, [impossible, lambda x: x])
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(kernel, [3, 4])) == [3, 4]
