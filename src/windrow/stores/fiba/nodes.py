"""Nodes that come and go.

A node that is freed takes all below it with it, and these are not visited: a whole subtree is put on a list, closed, and
opened one node at a time when nodes are needed. So evicting a million entries at once takes no longer
than evicting the path beside them.
"""

from __future__ import annotations

from windrow.stores.fiba.layout import (
    CHILDREN,
    CLOSED,
    CLOSED_COUNT,
    END,
    FIRST,
    FREE,
    FREE_COUNT,
    LEVEL,
    NEXT,
    USED,
    at,
)


def take(notes, level):
    """An empty node for this level."""
    if notes[FREE_COUNT] == 0 and notes[CLOSED_COUNT] > 0:
        open_subtree(notes)
    if notes[FREE_COUNT] > 0:
        node = notes[FREE]
        notes[FREE] = notes[at(node) + NEXT]
        notes[FREE_COUNT] -= 1
    else:
        notes[USED] += 1
        node = notes[USED]
    base = at(node)
    notes[base + FIRST] = 0
    notes[base + END] = 0
    notes[base + LEVEL] = level
    return node


def release(notes, node):
    """Free a node, and the children that it has left."""
    base = at(node)
    if notes[base + LEVEL] > 0 and notes[base + FIRST] < notes[base + END]:
        notes[base + NEXT] = notes[CLOSED]
        notes[CLOSED] = node
        notes[CLOSED_COUNT] += 1
    else:
        notes[base + NEXT] = notes[FREE]
        notes[FREE] = node
        notes[FREE_COUNT] += 1


def open_subtree(notes):
    """Make a closed node free, and close its children."""
    node = notes[CLOSED]
    base = at(node)
    notes[CLOSED] = notes[base + NEXT]
    notes[CLOSED_COUNT] -= 1
    for i in range(notes[base + FIRST], notes[base + END]):
        release(notes, notes[base + CHILDREN + i])
    notes[base + FIRST] = notes[base + END]
    release(notes, node)


def has_room(notes, needed):
    """Whether `needed` more nodes can be taken; an entry takes none, or one for each level and a new root."""
    while notes[FREE_COUNT] < needed and notes[CLOSED_COUNT] > 0:
        open_subtree(notes)
    return at(notes[USED] + 1 + needed - notes[FREE_COUNT]) <= len(notes)
