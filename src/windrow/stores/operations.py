"""Names that stand for what an aggregate, or a store, does.

A store is written once, for all aggregates: its functions call `combine`, `load` and `put` from here. When they
are compiled, the functions of an aggregate take the places of these names, and become part of the same
machine code. Loops that drive a store are written in the same way, with names of the store's functions.

    partial    a tuple of numbers (or of small arrays: sketches), or a single number
    cells      a tuple of arrays, one for each number of a partial: room for many partials
    notes      an int64 array, for stores that keep more than partials
    state      a tuple: numbers and partials that change with each call; it comes first and is returned
"""

from __future__ import annotations


def lift(inputs, i):
    """The partial of row `i` of the input columns."""
    raise NotImplementedError


def combine(a, b):
    """Two partials as one; the earlier one comes first."""
    raise NotImplementedError


def invert(a, b):
    """The partial `a` without `b`, which is a part of it."""
    raise NotImplementedError


def same(a, b):
    """Whether two partials are equal in every number; NaN is equal to itself."""
    raise NotImplementedError


def load(cells, i):
    """The partial in cell `i`."""
    raise NotImplementedError


def put(cells, i, partial):
    """Write a partial into cell `i`."""
    raise NotImplementedError


def take(cells, i, inputs, row):
    """Let the partial in cell `i` take in a row of the input columns."""
    raise NotImplementedError


def take_all(cells, i, inputs, low, high):
    """Let the partial in cell `i` take in rows `low` .. `high`, the last one excluded."""
    raise NotImplementedError


def begin(into, i, cells, j, n):
    """Let cell `i`, which holds nothing, hold the partial in cell `j`, which is of `n` values."""
    raise NotImplementedError


def join(into, i, cells, j, n):
    """Let the partial in cell `i` go on with that in cell `j`, which is of `n` values."""
    raise NotImplementedError


def insert(state, cells, notes, partial):
    """The state with one more partial at the end."""
    raise NotImplementedError


def evict(state, cells, notes):
    """The state without its first partial."""
    raise NotImplementedError


def query(state, cells, notes):
    """All partials as one, in their order."""
    raise NotImplementedError


def give(out, i, partial, n):
    """Write what is known of a window of `n` rows as answer number `i`."""
    raise NotImplementedError
