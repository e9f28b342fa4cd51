"""Single compiled steps that all loops share: compare, note an event, empty a subwindow, begin a slice."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.compiling.tiers import Twofold, jit
from windrow.policies.layout import AT, FROM, KIND, OF_PARTITION, OF_ROW, OF_TUPLE, UPTO, by, of

# The position of a row that is not kept. Else it is a place, or -1 - place for a row that joins the slice there.
NOWHERE = -(2**62)


def _exceeds(value, mark, threshold):  # type: ignore[no-untyped-def]
    """Whether value - mark > threshold, however far integers lie apart."""
    if isinstance(value, np.integer):
        return int(value) - int(mark) > threshold
    return value - mark > threshold


def _compiled_exceeds() -> Any:
    from numba.core import types
    from numba.extending import overload

    def choose(value, mark, threshold):  # type: ignore[no-untyped-def]
        """Integers of 64 bits with a sign differ by at most 64 bits without one."""
        if isinstance(value, types.Integer):

            def whole(value, mark, threshold):  # type: ignore[no-untyped-def]
                return value > mark and np.uint64(value) - np.uint64(mark) > np.uint64(threshold)

            return whole

        def real(value, mark, threshold):  # type: ignore[no-untyped-def]
            return value - mark > threshold

        return real

    overload(_exceeds)(choose)
    return _exceeds


exceeds: Any = Twofold(_exceeds, _compiled_exceeds)


@jit
def row_at(order, place):  # type: ignore[no-untyped-def]
    """The row of the log at a place, or -1 where windows keep none."""
    return order[place] if order.shape[0] > 0 else -1


@jit
def note(tape, g, kind, row, p, row_held, low, high, at):  # type: ignore[no-untyped-def]
    """Write an event on the tape."""
    t = g[of.TAPE]
    tape[KIND, t] = kind
    tape[OF_ROW, t] = row
    tape[OF_PARTITION, t] = p
    tape[OF_TUPLE, t] = row_held
    tape[FROM, t] = low
    tape[UPTO, t] = high
    tape[AT, t] = at
    g[of.TAPE] = t + 1


@jit
def told(tape, table, g, wanted, stop, kind, row, p, subject, at):  # type: ignore[no-untyped-def]
    """Note an event of partition p, as it is now, if it is wanted; whether a handler waits for it."""
    if wanted >> kind & 1 == 0:
        return False
    note(tape, g, kind, row, p, subject, table[p, of.HEAD], table[p, of.TAIL], at)
    return stop >> kind & 1 == 1


@jit
def leave(g, row, phase, why):  # type: ignore[no-untyped-def]
    """Remember where a loop is left; why it is."""
    g[of.ROW], g[of.PHASE] = row, phase
    return why


@jit
def close(table, closed, g, p, folded):  # type: ignore[no-untyped-def]
    """Empty a tumbling subwindow."""
    g[of.TOTAL] -= table[p, of.TAIL] - table[p, of.HEAD]
    table[p, of.HEAD] = table[p, of.TAIL]
    if folded:
        closed[g[of.CLOSED]] = table[p, of.CELL]
        g[of.CLOSED] += 1
        table[p, of.CELL] = -1


@jit
def begins_slice(table, s, now, p):  # type: ignore[no-untyped-def]
    """Whether a row begins a slice, where windows are made of slices of rows that come and go together.

    By count a slice has SLICE rows. By time it ends where a trigger is due, and where a row is just young enough for one.
    """
    if s[of.EVICTION] == by.COUNT:
        filled = table[p, of.FILLED]
        table[p, of.FILLED] = 0 if filled + 1 == s[of.SLICE] else filled + 1
        return filled == 0
    age = now - table[p, of.CREATED_AT]
    slice_number = age // s[of.EVERY] + (age + s[of.SIZE]) // s[of.EVERY]
    begins = table[p, of.HEAD] == table[p, of.TAIL] or slice_number != table[p, of.FILLED]
    table[p, of.FILLED] = slice_number
    return begins
