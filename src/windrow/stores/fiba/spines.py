"""The totals along the two spines, and how they are made true again after a change.

    level 2                root              total of its middle children
                         /  |   \\
    level 1            a  . . .   z          left: a's other children, then the total above
                     /               \\       right: the total above, then z's other children
    level 0       front             last

A window is then `head + middle + last`: all up to the right spine, the right spine without its leaf, and this leaf.
`front` has the total from each slot of the left leaf on: evicting an entry goes one slot further, as appending one adds
to `last`. A change at one level of a spine alters the totals from there down, which is why an entry near the
end costs little. A tree of one leaf has a last leaf alone.
"""

from __future__ import annotations

from windrow.stores.fiba.layout import (
    END,
    FIRST,
    FRONT,
    HEIGHT,
    LEFT,
    LEFT_TOTALS,
    PATH,
    RIGHT,
    RIGHT_OWN,
    RIGHT_TOTALS,
    SLOT,
    TOP,
    at,
    cell,
)
from windrow.stores.operations import combine, load, put


def joined(cells, notes, node):
    """All that a node holds, as one."""
    base = at(node)
    slots = cell(node)
    first = notes[base + FIRST]
    total = load(cells, slots + first)
    for i in range(first + 1, notes[base + END]):
        total = combine(total, load(cells, slots + i))
    return total


def mend(state, cells, notes, changed):
    """The state after something was put at the end of the path; `changed` says whether nodes of a spine were split."""
    top = notes[TOP]
    for level in range(top):
        node = notes[PATH + level]
        if node == notes[RIGHT + level]:
            changed = True
        elif node != notes[LEFT + level]:
            above = notes[PATH + level + 1]
            put(cells, cell(above) + notes[SLOT + level + 1], joined(cells, notes, node))
    is_root = top == notes[HEIGHT]
    is_right = notes[PATH + top] == notes[RIGHT + top]
    if is_right and (changed or top == 0 or not is_root):
        state = mend_right(state, cells, notes, top, changed)
    if is_root or not is_right:
        state = mend_left(state, cells, notes, top)
    return state


def mend_left(state, cells, notes, level):
    """The totals of the left spine, from a level down to the leaf."""
    clock, _, middle, last, identity = state
    height = notes[HEIGHT]
    if height == 0:
        return clock, identity, middle, last, identity
    total = identity if level == height else load(cells, LEFT_TOTALS + level + 1)
    while level > 0:
        node = notes[LEFT + level]
        base = at(node)
        slots = cell(node)
        end = notes[base + END] - (level == height)
        for i in range(end - 1, notes[base + FIRST], -1):
            total = combine(load(cells, slots + i), total)
        put(cells, LEFT_TOTALS + level, total)
        level -= 1
    leaf = notes[LEFT]
    base = at(leaf)
    slots = cell(leaf)
    for i in range(notes[base + END] - 1, notes[base + FIRST] - 1, -1):
        total = combine(load(cells, slots + i), total)
        put(cells, FRONT + i, total)
    return clock, total, middle, last, identity


def mend_right(state, cells, notes, level, changed):
    """The totals of the right spine, from a level down; `changed` says whether nodes below the level are others too."""
    clock, head, _, last, identity = state
    highest = min(level, notes[HEIGHT] - 1)
    middle = identity
    if level < notes[HEIGHT] - 1:
        middle = load(cells, RIGHT_TOTALS + level + 1)
    for below in range(highest, 0, -1):
        if changed or below == highest:
            node = notes[RIGHT + below]
            base = at(node)
            slots = cell(node)
            own = identity
            for i in range(notes[base + FIRST], notes[base + END] - 1):
                own = combine(own, load(cells, slots + i))
            put(cells, RIGHT_OWN + below, own)
        middle = combine(middle, load(cells, RIGHT_OWN + below))
        put(cells, RIGHT_TOTALS + below, middle)
    if changed or level == 0:
        leaf = notes[RIGHT]
        base = at(leaf)
        slots = cell(leaf)
        last = identity
        for i in range(notes[base + FIRST], notes[base + END]):
            last = combine(last, load(cells, slots + i))
    return clock, head, middle, last, identity
