"""Entries that leave: the oldest one, or all before a time.

The left spine is all that eviction touches. Its nodes may hold as little as one slot, so nothing is moved or merged:
a node that is empty goes, and the next one beside it is on the spine.
"""

from __future__ import annotations

from windrow.stores.fiba.layout import (
    CHILDREN,
    END,
    FIRST,
    FRONT,
    HEIGHT,
    LEFT,
    TIMES,
    TOP,
    at,
    is_empty,
    place_of,
    slot_of,
)
from windrow.stores.fiba.nodes import release
from windrow.stores.fiba.spines import mend_left, mend_right
from windrow.stores.operations import load


def evict(state, cells, notes):
    """The state without its oldest entry."""
    clock, _, middle, last, identity = state
    base = at(notes[LEFT])
    first = notes[base + FIRST] + 1
    notes[base + FIRST] = first
    if first < notes[base + END] and notes[HEIGHT] > 0:
        return clock, load(cells, FRONT + first), middle, last, identity
    notes[TOP] = 0
    return settle(state, cells, notes)


def evict_until(state, cells, notes, time):
    """The state without the entries before `time`."""
    clock, _, middle, last, identity = state
    base = at(notes[LEFT])
    first = notes[base + FIRST]
    end = notes[base + END]
    if first == end or notes[base + TIMES + first] >= time:
        return state
    if notes[base + TIMES + end - 1] >= time and notes[HEIGHT] > 0:
        while notes[base + TIMES + first] < time:
            first += 1
        notes[base + FIRST] = first
        return clock, load(cells, FRONT + first), middle, last, identity
    cut(notes, time)
    return settle(state, cells, notes)


def cut(notes, time):
    """Free all that is left of the path to a time, which is then the left spine.

    The leaf at its end may be empty.
    """
    height = notes[HEIGHT]
    top = 0
    while top < height:
        base = at(notes[LEFT + top])
        last = notes[base + END] - 1
        if notes[base + FIRST] < last and notes[base + TIMES + last] >= time:
            break
        top += 1
    for level in range(top, 0, -1):
        node = notes[LEFT + level]
        base = at(node)
        slot = slot_of(notes, node, time)
        for i in range(notes[base + FIRST], slot):
            release(notes, notes[base + CHILDREN + i])
        notes[base + FIRST] = slot
        notes[LEFT + level - 1] = notes[base + CHILDREN + slot]
    leaf = notes[LEFT]
    notes[at(leaf) + FIRST] = place_of(notes, leaf, time)
    notes[TOP] = top


def settle(state, cells, notes):
    """The state after the left spine has lost slots, which may leave it with empty nodes."""
    height = notes[HEIGHT]
    level = notes[TOP]
    lower_root(notes)
    if is_empty(notes, notes[LEFT]):
        level = max(level, next_leaf(notes))
        lower_root(notes)
    if notes[HEIGHT] < height or height == 0:
        level = notes[HEIGHT]
        state = mend_right(state, cells, notes, level, level == 0)
    return mend_left(state, cells, notes, level)


def lower_root(notes):
    """A root with a single child is none: the child is."""
    height = notes[HEIGHT]
    base = at(notes[LEFT + height])
    while height > 0 and notes[base + FIRST] + 1 == notes[base + END]:
        notes[base + FIRST] += 1
        release(notes, notes[LEFT + height])
        height -= 1
        base = at(notes[LEFT + height])
    notes[HEIGHT] = height


def next_leaf(notes):
    """Free an empty left leaf, and the nodes above it that had no other child; the level where one had."""
    level = 0
    while level < notes[HEIGHT] and is_empty(notes, notes[LEFT + level]):
        release(notes, notes[LEFT + level])
        level += 1
        notes[at(notes[LEFT + level]) + FIRST] += 1
    for above in range(level, 0, -1):
        base = at(notes[LEFT + above])
        notes[LEFT + above - 1] = notes[base + CHILDREN + notes[base + FIRST]]
    if level == 0:
        notes[at(notes[LEFT]) + FIRST] = 0
        notes[at(notes[LEFT]) + END] = 0
    return level
