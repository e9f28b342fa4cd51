"""How span events are carried over: slice by slice, or through a tree of some height.

An event that crosses n starts of slices can be folded at each of them, which costs n. Or it is folded into a tree
whose nodes of level l stand for 2**l slices: about one node on each of h levels and n / 2**h on the top one. The
tree is for one batch, and at its end what its nodes hold is pushed down to the slices, once for each slice and key.

    cost of height 0    crossings * START
    cost of height h    events * (h + n / 2**h) * NODE  +  slices * keys * PUSH

Where there is one key, events that follow each other and cross the same starts are combined first, and count as one.

Height 1 and more is the idea of multi-level slices (Suzanne et al., section 4) with nodes that do not overlap, so
that an answer need not look at all levels of all slices. The height is chosen anew for each batch, by the lengths in
that batch: an estimate carried over from earlier ones could only be further from the truth, because what the tree
costs is paid in the batch itself. An aggregate whose partials can be taken out again needs none of this: it is folded
where an event first goes on, and where it ends, however long it lasts.

The constants are nanoseconds for a maximum of integers, measured by `python -m benchmarks.choice constants`.
"""

from __future__ import annotations

from typing import Any

from windrow.planner.plan import can_carry_over

CONTRIBUTIONS = {
    "whole": "in every window that it overlaps, once",
    "prorated": "cut into a piece per slice, by the share of its duration that lies there",
    "start": "counts at its first instant",
    "end": "counts at its last instant",
}
START = 1.6
NODE = 3.3
PUSH = 4.5
HIGHEST = 40


def way_of(partial: Any, *, exact: bool) -> str:
    """How an event is carried over, in words; `exact` says whether partials can be taken out again."""
    if not can_carry_over(partial):
        return "events are kept one by one, and read again for each window"
    if exact:
        return "folded twice, where an event first goes on and where it ends, however long it lasts"
    return (
        "folded at each start of a slice that an event crosses, or through a tree: whichever costs less, and how high the "
        "tree is, is found for each batch from the lengths of its events"
    )


def costs(crossings: int, events: int, slices: int, keys: int) -> list[float]:
    """The cost of each height that makes sense, from 0 on.

    `events` cross `crossings` starts together, of `slices` slices of `keys` keys.
    """
    found = [crossings * START]
    length = crossings / max(events, 1)
    for height in range(1, min(HIGHEST, max(slices - 1, 0).bit_length()) + 1):
        touched = events * (height + length / 2**height)
        found.append(touched * NODE + slices * keys * PUSH)
    return found


def height(crossings: int, events: int, slices: int, keys: int) -> int:
    """The height that costs least; 0 is no tree at all.

    >>> height(100, 100, slices=10, keys=1), height(1_000_000, 1_000, slices=5_000, keys=1)
    (0, 9)
    """
    found = costs(crossings, events, slices, keys)
    return found.index(min(found))
