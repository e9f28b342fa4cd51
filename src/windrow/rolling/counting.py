"""Partials that know of how many values they are made: the number is their last field.

`COUNTED` has functions around those of an aggregate, `COUNT` those of an aggregate that is nothing but the number;
by whether some of the inputs are null, which their last column then says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.stores import operations
from windrow.stores.operations import combine, lift, load, put


def lift_one(inputs, i):
    return (*lift(inputs, i), np.int64(1))


def lift_present(inputs, i):
    return (*lift(inputs, i), np.int64(inputs[-1][i]))


def combine_counted(a, b):
    return (*combine(a[:-1], b[:-1]), a[-1] + b[-1])


def load_counted(cells, i):
    return (*load(cells[:-1], i), cells[-1][i])


def put_counted(cells, i, partial):
    put(cells[:-1], i, partial[:-1])
    cells[-1][i] = partial[-1]


def count_one(inputs, i):
    return (np.int64(1),)


def count_present(inputs, i):
    return (np.int64(inputs[-1][i]),)


def combine_counts(a, b):
    return (a[0] + b[0],)


def load_count(cells, i):
    return (cells[0][i],)


def put_count(cells, i, partial):
    cells[0][i] = partial[0]


def _named(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    names = (operations.lift, operations.combine, operations.load, operations.put)
    return {name.__name__: function for name, function in zip(names, functions, strict=True)}


COUNTED = {
    False: _named(lift_one, combine_counted, load_counted, put_counted),
    True: _named(lift_present, combine_counted, load_counted, put_counted),
}
COUNT = {
    False: _named(count_one, combine_counts, load_count, put_count),
    True: _named(count_present, combine_counts, load_count, put_count),
}
