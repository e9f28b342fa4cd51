"""Rows of both sides of a join that come in one order, taken all at once.

    place     0   1   2   3   4   5         left:  a is there from 0 on, and leaves at 4, when c comes
    left      a   b           c             right: x meets a and b; y meets a and b; z meets b and c
    right             x   y       z

A window does not look at the other side. So each side lets all of its rows in, and its tape tells at which
place every row left. Whom a row meets is then found in the chain of its key: those that came before its own
place, and left after it. That is what row by row would give, without a call for each change of sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from windrow.policies.operators.join import Join
    from windrow.policies.operators.side import Side
    from windrow.policies.tape import Tape
    from windrow.policies.window import Window

Found = tuple[np.ndarray, np.ndarray]


def take_together(
    join: Join, sides: Sequence[Side], batches: Sequence[pa.RecordBatch], places: Sequence[np.ndarray]
) -> None:
    """Let rows of both sides in, and give out matches and rows that leave without one, in order."""
    keys = [join.numbers(batch, side) for batch, side in zip(batches, sides, strict=True)]
    windows = [side.window for side in sides if side.window is not None]
    for side, window in zip(sides, windows, strict=True):
        side.left(window.advance())
        window.can_take_back = True
    try:
        tapes = _inserted(windows, batches)
        ends = [side.chains.ends() for side in sides]
        for side, key in zip(sides, keys, strict=True):
            side.link(key)
        try:
            found = [_met(join, side, sides[1 - side.place], batches, keys, places, tapes) for side in sides]
        except BaseException:
            for side, end in zip(sides, ends, strict=True):
                side.take_back(end)
            raise
    finally:
        for window in windows:
            window.can_take_back = False
    for side, (_, theirs) in zip(sides, found, strict=True):
        sides[1 - side.place].chains.matched[theirs] = True
    left = [
        side.outcome(tape, batch, mine)
        for side, tape, batch, (mine, _) in zip(sides, tapes, batches, found, strict=True)
    ]
    _give(join, sides, batches, places, found, left)


def _inserted(windows: Sequence[Window], batches: Sequence[pa.RecordBatch]) -> list[Tape]:
    """What rows do to both windows; rows that one refuses do nothing to the other."""
    left = windows[0].insert(batches[0])
    try:
        return [left, windows[1].insert(batches[1])]
    except BaseException:
        windows[0].take_back()
        raise


def _met(
    join: Join,
    side: Side,
    other: Side,
    batches: Sequence[pa.RecordBatch],
    keys: Sequence[np.ndarray],
    places: Sequence[np.ndarray],
    tapes: Sequence[Tape],
) -> Found:
    """Pairs of a row that has come to a side and one that was on the other then."""
    me, place = side.place, places[side.place]
    lives = other.lives(tapes[other.place], places[other.place])

    probe = partial(other.chains.probe, place=place, lives=lives)
    return join.matches(batches[me], keys[me], side, other, probe)


def _give(
    join: Join,
    sides: Sequence[Side],
    batches: Sequence[pa.RecordBatch],
    places: Sequence[np.ndarray],
    found: Sequence[Found],
    left: Sequence[tuple[pa.Table, np.ndarray, bool]],
) -> None:
    """At each place there are three steps: rows leave, the row that comes is matched, and is not kept."""
    parts, at = [], []
    for side, batch, (mine, theirs) in zip(sides, batches, found, strict=True):
        pairs = join.pairs(batch, mine, theirs, side, sides[1 - side.place])
        parts.append(join.side_by_side(*pairs))
        at.append(3 * places[side.place][mine] + 1)
    for side, (alone, when, late) in zip(sides, left, strict=True):
        if not alone.num_rows:
            continue
        if join.apart:
            join.lone(side, alone)
            continue
        parts.append(join.with_nulls(side.place, alone))
        at.append(np.where(when < 0, -1, 3 * places[side.place][when] + 2 * late))
    together, steps = pa.concat_tables(parts), np.concatenate(at)
    if len(steps):
        order = np.argsort(steps, kind="stable")
        steps = steps[order]
        ends = np.flatnonzero((steps % 3 == 1) & (np.diff(steps, append=-1) != 0)) + 1
        join.emit(together.take(pa.array(order)), marks=ends)
