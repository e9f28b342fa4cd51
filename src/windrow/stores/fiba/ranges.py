"""The entries of a range of times as one: several windows over one tree.

The two ends of a range part somewhere in the tree. What lies between them there is read from the slots of one node, the rest
from the slots beside the two paths further down.

           .  a [b  c  d] e  .          whole children
              /            \\
          . . [. .]      [. .] . .      what follows the first path, what precedes the second
"""

from __future__ import annotations

from windrow.stores.fiba.layout import (
    CHILDREN,
    END,
    FIRST,
    HEIGHT,
    RIGHT,
    TIMES,
    at,
    cell,
    place_of,
    slot_of,
)
from windrow.stores.operations import combine, load


def query_range(state, cells, notes, low, high):
    """All entries with `low <= time < high` as one, in their order."""
    identity = state[4]
    level = 0
    while level < notes[HEIGHT]:
        right = at(notes[RIGHT + level])
        if low >= notes[right + TIMES + notes[right + FIRST]]:
            break
        level += 1
    node = notes[RIGHT + level]
    while level > 0:
        begin = slot_of(notes, node, low)
        end = slot_of(notes, node, high)
        if begin < end:
            break
        node = notes[at(node) + CHILDREN + begin]
        level -= 1
    if level == 0:
        return forward(cells, node, place_of(notes, node, low), place_of(notes, node, high), identity)

    total = backward(cells, node, begin + 1, end, identity)
    first = notes[at(node) + CHILDREN + begin]
    last = notes[at(node) + CHILDREN + end]
    for _ in range(level - 1):
        slot = slot_of(notes, first, low)
        total = backward(cells, first, slot + 1, notes[at(first) + END], total)
        first = notes[at(first) + CHILDREN + slot]
    total = backward(cells, first, place_of(notes, first, low), notes[at(first) + END], total)
    for _ in range(level - 1):
        slot = slot_of(notes, last, high)
        total = forward(cells, last, notes[at(last) + FIRST], slot, total)
        last = notes[at(last) + CHILDREN + slot]
    return forward(cells, last, notes[at(last) + FIRST], place_of(notes, last, high), total)


def forward(cells, node, begin, end, total):
    """What is there, and then the slots from `begin` to `end`."""
    for i in range(begin, end):
        total = combine(total, load(cells, cell(node) + i))
    return total


def backward(cells, node, begin, end, total):
    """The slots from `begin` to `end`, and then what is there."""
    for i in range(end - 1, begin - 1, -1):
        total = combine(load(cells, cell(node) + i), total)
    return total
