"""Where things lie: the tree as two flat arrays, without an object or a pointer.

`notes` begins with a few numbers about the whole tree and the fingers, one node for each level of a spine; then
come the nodes, all of one size. `cells` begins with the totals along the spines; then come the slots of
the nodes, each with one partial.

    notes   | height, free nodes | left spine | right spine | path | node 0 | node 1 | ..
    node    | first, end, level, next | times ........ | children ........ |
                                        first      end
    cells   | front | left totals | right totals, and what each adds | slots of node 0 | slots of node 1 | ..

A node's slots run from `first` to `end`, so that evicting moves nothing. In a leaf a slot is an entry: its time, and
its partial in the cell. Above, it is a child: a time that none of the child's entries is before, and in
the cell all of the child as one. Children on a spine are the exception: their cells are not kept, as the totals
along the spine take their place; nor is the first time of a node of the left spine, where nothing is earlier.

All zeros is an empty tree, and no number depends on the length of the arrays: a tree grows by moving to
longer ones.
"""

from __future__ import annotations

MAXIMUM = 16
MINIMUM = 8
LEVELS = 24

HEIGHT, TOP, FREE, FREE_COUNT, CLOSED, CLOSED_COUNT, USED = range(7)
LEFT = 8
RIGHT = LEFT + LEVELS
PATH = RIGHT + LEVELS
SLOT = PATH + LEVELS
NODES = SLOT + LEVELS

FIRST, END, LEVEL, NEXT, TIMES = range(5)
CHILDREN = TIMES + MAXIMUM
STRIDE = CHILDREN + MAXIMUM

FRONT = 0
LEFT_TOTALS = FRONT + MAXIMUM
RIGHT_TOTALS = LEFT_TOTALS + LEVELS
RIGHT_OWN = RIGHT_TOTALS + LEVELS
SLOTS = RIGHT_OWN + LEVELS


def nodes(capacity: int) -> int:
    """How many nodes a tree of `capacity` entries can have: all but those of the left spine are half full."""
    total = LEVELS
    count = capacity
    while count > 1:
        count = count // MINIMUM + 1
        total += count
    return total


def cells(capacity: int) -> int:
    """Cells that a tree of `capacity` entries takes."""
    return SLOTS + nodes(capacity) * MAXIMUM


def notes(capacity: int) -> int:
    """Numbers beside them."""
    return NODES + nodes(capacity) * STRIDE


def at(node):
    """Where a node begins in `notes`."""
    return NODES + node * STRIDE


def cell(node):
    """The cell of a node's slot 0."""
    return SLOTS + node * MAXIMUM


def is_empty(notes, node):
    return notes[at(node) + FIRST] == notes[at(node) + END]


def slot_of(notes, node, time):
    """The slot of the child in which an entry of this time has its place."""
    return last_slot(notes, node, notes[at(node) + FIRST], time)


def place_of(notes, leaf, time):
    """The first slot of a leaf that is not before this time."""
    base = at(leaf)
    first = notes[base + FIRST]
    if first == notes[base + END] or notes[base + TIMES + first] >= time:
        return first
    return last_slot(notes, leaf, first, time - 1) + 1


def last_slot(notes, node, slot, time):
    """The last slot whose time is not after this one; `slot` is known to be such a slot.

    Every fourth slot is looked at first, then the three that are left, and none of these looks waits for another. What
    they read beyond the end of the times is still inside the node, and does not count.
    """
    base = at(node)
    end = notes[base + END]
    times = base + TIMES
    step = 4
    while step > 0:
        ahead = 0
        for i in range(1, 4):
            ahead += (slot + i * step < end) & (notes[times + slot + i * step] <= time)
        slot += ahead * step
        step -= 3
    return slot
