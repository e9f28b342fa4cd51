"""Entries that come in: at the end, or anywhere.

The place of an entry is found from the nearer finger: up a spine as far as needed, then down. The path down is
written into `notes`; that is why a node need not know its parent. A leaf without room is split, and so is each full
node above it, from the highest one down.
"""

from __future__ import annotations

from windrow.stores.fiba.layout import (
    CHILDREN,
    END,
    FIRST,
    HEIGHT,
    LEFT,
    LEVEL,
    MAXIMUM,
    MINIMUM,
    PATH,
    RIGHT,
    SLOT,
    TIMES,
    TOP,
    at,
    cell,
    place_of,
    slot_of,
)
from windrow.stores.fiba.nodes import take
from windrow.stores.fiba.spines import joined, mend
from windrow.stores.operations import combine, load, put


def insert(state, cells, notes, partial):
    """One more partial at the end, one tick after all that came before."""
    time, head, middle, last, identity = state
    leaf = notes[RIGHT]
    base = at(leaf)
    end = notes[base + END]
    if end < MAXIMUM:
        notes[base + TIMES + end] = time
        notes[base + END] = end + 1
        put(cells, cell(leaf) + end, partial)
        return time + 1, head, middle, combine(last, partial), identity
    notes[TOP] = 0
    notes[PATH] = leaf
    notes[SLOT] = end
    changed = enter(cells, notes, time, partial)
    return mend((time + 1, head, middle, last, identity), cells, notes, changed)


def place(state, cells, notes, time, partial):
    """An entry at any time; one that exists there is combined with the new one, and comes first."""
    if is_after(notes, time):
        return insert((time, *state[1:]), cells, notes, partial)
    locate(notes, time)
    changed = enter(cells, notes, time, partial)
    return mend(state, cells, notes, changed)


def is_after(notes, time):
    """Whether a time is after all entries."""
    base = at(notes[RIGHT])
    end = notes[base + END]
    return notes[base + FIRST] == end or time > notes[base + TIMES + end - 1]


def locate(notes, time):
    """Write down the path to the leaf and the slot for a time, from where it leaves a spine."""
    height = notes[HEIGHT]
    top = 0
    node = notes[RIGHT + height]
    while top < height:
        right = at(notes[RIGHT + top])
        if time >= notes[right + TIMES + notes[right + FIRST]]:
            node = notes[RIGHT + top]
            break
        left = at(notes[LEFT + top])
        last = notes[left + END] - 1
        if notes[left + FIRST] < last and time < notes[left + TIMES + last]:
            node = notes[LEFT + top]
            break
        top += 1
    for level in range(top, 0, -1):
        slot = slot_of(notes, node, time)
        notes[PATH + level] = node
        notes[SLOT + level] = slot
        node = notes[at(node) + CHILDREN + slot]
    notes[PATH] = node
    notes[SLOT] = place_of(notes, node, time)
    notes[TOP] = top


def enter(cells, notes, time, partial):
    """Put an entry where the path ends; whether nodes of a spine had to be split for it.

    The nodes that are full on the path are split from the highest one down, so that each finds room above.
    """
    leaf = notes[PATH]
    slot = notes[SLOT]
    base = at(leaf)
    if slot < notes[base + END] and notes[base + TIMES + slot] == time:
        put(cells, cell(leaf) + slot, combine(load(cells, cell(leaf) + slot), partial))
        return False

    top = notes[TOP]
    level = 0
    while is_full(notes, notes[PATH + level]):
        if level == notes[TOP]:
            lengthen_path(notes)
        level += 1
    for below in range(level - 1, -1, -1):
        split(cells, notes, below)
    leaf = notes[PATH]
    slot = open_slot(cells, notes, leaf, notes[SLOT])
    notes[at(leaf) + TIMES + slot] = time
    put(cells, cell(leaf) + slot, partial)
    return notes[TOP] > top


def is_full(notes, node):
    base = at(node)
    return notes[base + END] - notes[base + FIRST] == MAXIMUM


def lengthen_path(notes):
    """One level more, along the spine that the path has reached; above the root there is a new one."""
    top = notes[TOP]
    below = notes[PATH + top]
    if top == notes[HEIGHT]:
        node = take(notes, top + 1)
        base = at(node)
        notes[base + END] = 1
        notes[base + TIMES] = notes[at(below) + TIMES]
        notes[base + CHILDREN] = below
        notes[LEFT + top + 1] = node
        notes[RIGHT + top + 1] = node
        notes[HEIGHT] = top + 1
    if below == notes[RIGHT + top]:
        node = notes[RIGHT + top + 1]
        slot = notes[at(node) + END] - 1
    else:
        node = notes[LEFT + top + 1]
        slot = notes[at(node) + FIRST]
    notes[TOP] = top + 1
    notes[PATH + top + 1] = node
    notes[SLOT + top + 1] = slot


def split(cells, notes, level):
    """Give the later half of a full node of the path to a new one beside it, for which the node above has room."""
    node = notes[PATH + level]
    base = at(node)
    fresh = take(notes, level)
    new = at(fresh)
    for i in range(MINIMUM, MAXIMUM):
        notes[new + TIMES + i - MINIMUM] = notes[base + TIMES + i]
        put(cells, cell(fresh) + i - MINIMUM, load(cells, cell(node) + i))
    if level > 0:
        for i in range(MINIMUM, MAXIMUM):
            notes[new + CHILDREN + i - MINIMUM] = notes[base + CHILDREN + i]
    notes[base + END] = MINIMUM
    notes[new + END] = MAXIMUM - MINIMUM

    above = notes[PATH + level + 1]
    slot = open_slot(cells, notes, above, notes[SLOT + level + 1] + 1)
    notes[at(above) + TIMES + slot] = notes[new + TIMES]
    notes[at(above) + CHILDREN + slot] = fresh
    notes[SLOT + level + 1] = slot - 1
    if node != notes[LEFT + level]:
        put(cells, cell(above) + slot - 1, joined(cells, notes, node))
    if node == notes[RIGHT + level]:
        notes[RIGHT + level] = fresh
    else:
        put(cells, cell(above) + slot, joined(cells, notes, fresh))
    # An entry that comes between the halves goes to the first, a child that is in the second to the second.
    if notes[SLOT + level] > MINIMUM or (level > 0 and notes[SLOT + level] == MINIMUM):
        notes[PATH + level] = fresh
        notes[SLOT + level] -= MINIMUM
        notes[SLOT + level + 1] = slot


def open_slot(cells, notes, node, slot):
    """Shift slots of a node that has room, so that a new one lies before `slot`; where it is."""
    base = at(node)
    slots = cell(node)
    inner = notes[base + LEVEL] > 0
    end = notes[base + END]
    if end < MAXIMUM:
        notes[base + END] = end + 1
        for i in range(end, slot, -1):
            notes[base + TIMES + i] = notes[base + TIMES + i - 1]
            put(cells, slots + i, load(cells, slots + i - 1))
            if inner:
                notes[base + CHILDREN + i] = notes[base + CHILDREN + i - 1]
        return slot
    first = notes[base + FIRST] - 1
    notes[base + FIRST] = first
    for i in range(first, slot - 1):
        notes[base + TIMES + i] = notes[base + TIMES + i + 1]
        put(cells, slots + i, load(cells, slots + i + 1))
        if inner:
            notes[base + CHILDREN + i] = notes[base + CHILDREN + i + 1]
    return slot - 1
