"""The slices of all lanes, linked in the order of time, and a journal that takes back what a call has done.

    table    a row for each slice: first and last time, reach, lane, links to its neighbours, flags; the number of the row
             is the slot of its partials and never changes while the slice lives
    lanes    the oldest and the newest slice of each lane, -1 where there is none
    free     rows that no slice has
    journal  rows and lanes as they were before this call first changed them

Inserting costs O(1) for an event that is not before the newest slice of its lane, and a step for each slice that begins
later than the event otherwise. Taking back costs what was changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.arrays import ascending
from windrow.engine.cache import jit
from windrow.errors import LimitError

ALIVE, EMITTED, TOUCHED, WAITING, ENDING = (np.uint8(1 << i) for i in range(5))
TIMED = np.uint8(WAITING | ENDING)
OLDEST, NEWEST, STAMP = range(3)
# What the numbers in `counts` count; ROW is the row to go on from.
FREE, LIVE, IMAGES, LANES, BORN, JOINED, CHANGED, REVISITED, ROW = range(9)
FINE, NO_SLICE, NO_ROOM = range(3)
# As many entries of any list as one event may add, and room for as many events at least is looked for at a time.
MOST = 6
FEW = 64
FIRST_ROOM = 2 * MOST * FEW
LAST_EPOCH = MOST_LANES = np.iinfo(np.int32).max


def slice_type(tick: np.dtype[Any]) -> np.dtype[Any]:
    """A row of the table; `revision` is that of the row emitted last, `stamp` the call that changed it last."""
    whole = [(name, np.int32) for name in ("lane", "earlier", "later", "revision", "stamp")]
    fields: list[Any] = [("first", tick), ("last", tick), ("reach", tick), *whole, ("flags", np.uint8)]
    return np.dtype(fields, align=True)


@jit
def keep(table, s, epoch, journal, images, counts):  # type: ignore[no-untyped-def]
    """Journal a slice before its first change in this call."""
    if table["stamp"][s] != epoch:
        journal[counts[IMAGES]] = table[s]
        images[counts[IMAGES]] = s
        counts[IMAGES] += 1
        table["stamp"][s] = epoch


@jit
def keep_lane(lanes, k, epoch, lane_journal, counts):  # type: ignore[no-untyped-def]
    """Journal the ends of a lane before their first change in this call."""
    if lanes[k, STAMP] != epoch:
        m = counts[LANES]
        lane_journal[m, 0], lane_journal[m, 1], lane_journal[m, 2] = k, lanes[k, OLDEST], lanes[k, NEWEST]
        counts[LANES] += 1
        lanes[k, STAMP] = epoch


@jit
def unlink(  # type: ignore[no-untyped-def]
    table,
    earlier,
    later,
    lane_of,
    flags,
    stamp,
    lanes,
    s,
    epoch,
    journal,
    images,
    lane_journal,
    counts,
    journaled,
):
    """Take a slice out of its lane; its neighbours are neighbours now. The columns of the table come along."""
    before, behind, k = earlier[s], later[s], lane_of[s]
    if before >= 0:
        if journaled and stamp[before] != epoch:
            keep(table, before, epoch, journal, images, counts)
        later[before] = behind
    else:
        if journaled:
            keep_lane(lanes, k, epoch, lane_journal, counts)
        lanes[k, OLDEST] = behind
    if behind >= 0:
        if journaled and stamp[behind] != epoch:
            keep(table, behind, epoch, journal, images, counts)
        earlier[behind] = before
    else:
        if journaled:
            keep_lane(lanes, k, epoch, lane_journal, counts)
        lanes[k, NEWEST] = before
    flags[s] &= TIMED
    counts[LIVE] -= 1


@jit
def note_change(table, s, changed, changed_slices, revisited, counts):  # type: ignore[no-untyped-def]
    """Remember the row that was emitted for a slice, which is about to change, and to look at the slice again."""
    if table["flags"][s] & EMITTED:
        changed[counts[CHANGED]] = table[s]
        changed_slices[counts[CHANGED]] = s
        counts[CHANGED] += 1
        table["flags"][s] &= ~EMITTED
        if not table["flags"][s] & TOUCHED:
            table["flags"][s] |= TOUCHED
            revisited[counts[REVISITED]] = s
            counts[REVISITED] += 1


@jit
def insert(  # type: ignore[no-untyped-def]
    table, lanes, free, counts, epoch,
    journal, images, lane_journal, born, into, taken, changed, changed_slices, revisited,
    lane, low, high, reach, horizon, cell,
):  # fmt: skip
    """Put stretches of time into the slices of their lanes; whether that was done, or what there is not enough of.

    Stretch i is of lane[i], lies in [low[i], high[i]] and holds its session open until reach[i]. Where that is before the
    horizon it goes nowhere, and cell[i] is -1; else cell[i] is its slice. Slices that it connects are joined: `taken`
    onto `into`, in this order. The rows from counts[ROW] on are looked at, so that the loop can go on with more room; a
    row may be looked at twice.
    """
    first, last, furthest = table["first"], table["last"], table["reach"]
    earlier, later, flags, stamp = table["earlier"], table["later"], table["flags"], table["stamp"]
    lane_of, revision = table["lane"], table["revision"]
    events = 0  # so many more can be journaled for sure
    for i in range(counts[ROW], low.shape[0]):
        r = reach[i]
        if r < horizon:
            cell[i] = -1
            continue
        if events == 0:
            events = (journal.shape[0] - counts[IMAGES:ROW].max()) // MOST
            if events < FEW:
                counts[ROW] = i
                return NO_ROOM
        events -= 1
        k, t = lane[i], low[i]
        s = lanes[k, NEWEST]
        while s >= 0 and first[s] > t:
            s = earlier[s]
        n = later[s] if s >= 0 else lanes[k, OLDEST]
        if s >= 0 and t <= furthest[s]:
            if stamp[s] != epoch:
                keep(table, s, epoch, journal, images, counts)
            if flags[s] & EMITTED:
                note_change(table, s, changed, changed_slices, revisited, counts)
        elif n >= 0 and first[n] <= r:
            s, n = n, later[n]
            if stamp[s] != epoch:
                keep(table, s, epoch, journal, images, counts)
            if flags[s] & EMITTED:
                note_change(table, s, changed, changed_slices, revisited, counts)
            first[s] = t
        else:
            if counts[FREE] == 0:
                counts[ROW] = i
                return NO_SLICE
            counts[FREE] -= 1
            new = free[counts[FREE]]
            born[counts[BORN]] = new
            counts[BORN] += 1
            counts[LIVE] += 1
            first[new], last[new], furthest[new] = t, high[i], r
            lane_of[new], earlier[new], later[new] = k, s, n
            revision[new], stamp[new], flags[new] = 0, epoch, ALIVE
            if s >= 0:
                if stamp[s] != epoch:
                    keep(table, s, epoch, journal, images, counts)
                later[s] = new
            else:
                keep_lane(lanes, k, epoch, lane_journal, counts)
                lanes[k, OLDEST] = new
            if n >= 0:
                if stamp[n] != epoch:
                    keep(table, n, epoch, journal, images, counts)
                earlier[n] = new
            else:
                keep_lane(lanes, k, epoch, lane_journal, counts)
                lanes[k, NEWEST] = new
            s = new
        last[s] = max(last[s], high[i])
        furthest[s] = max(furthest[s], r)
        while n >= 0 and first[n] <= furthest[s]:
            if counts[IMAGES:ROW].max() + MOST > journal.shape[0]:
                counts[ROW] = i
                return NO_ROOM
            events = 0
            following = later[n]
            keep(table, n, epoch, journal, images, counts)
            note_change(table, n, changed, changed_slices, revisited, counts)
            last[s] = max(last[s], last[n])
            furthest[s] = max(furthest[s], furthest[n])
            unlink(
                table, earlier, later, lane_of, flags, stamp, lanes, n, epoch, journal, images, lane_journal, counts, True
            )  # fmt: skip
            into[counts[JOINED]], taken[counts[JOINED]] = s, n
            counts[JOINED] += 1
            n = following
        cell[i] = s
    counts[ROW] = 0
    return FINE


@jit
def take_out(table, lanes, slices, epoch, journal, images, lane_journal, counts, journaled):  # type: ignore[no-untyped-def]
    """Take slices out of their lanes; if that is journaled, there is room for three rows and a lane each."""
    earlier, later, lane_of = table["earlier"], table["later"], table["lane"]
    flags, stamp = table["flags"], table["stamp"]
    for i in range(slices.shape[0]):
        s = slices[i]
        if journaled and stamp[s] != epoch:
            keep(table, s, epoch, journal, images, counts)
        unlink(
            table, earlier, later, lane_of, flags, stamp, lanes, s, epoch, journal, images, lane_journal, counts, journaled
        )  # fmt: skip


@jit
def give_back(table, slices, free, counts):  # type: ignore[no-untyped-def]
    """Free the rows of slices that are in no lane; those in a heap are freed when they come out of it."""
    flags = table["flags"]
    for i in range(slices.shape[0]):
        if not flags[slices[i]]:
            free[counts[FREE]] = slices[i]
            counts[FREE] += 1


@jit
def put_back(table, lanes, free, counts, journal, images, lane_journal, born):  # type: ignore[no-untyped-def]
    """Undo the changes since the journal was begun."""
    for m in range(counts[IMAGES]):
        table[images[m]] = journal[m]
    for m in range(counts[LANES]):
        k = lane_journal[m, 0]
        lanes[k, OLDEST], lanes[k, NEWEST] = lane_journal[m, 1], lane_journal[m, 2]
        # Not the stamp of this call, whose number is not given again.
    for m in range(counts[BORN] - 1, -1, -1):
        table["flags"][born[m]] = 0
        free[counts[FREE]] = born[m]
        counts[FREE] += 1


@jit
def walk(table, lanes, out):  # type: ignore[no-untyped-def]
    """All slices, lane by lane and in the order of time."""
    later = table["later"]
    n = 0
    for k in range(lanes.shape[0]):
        s = lanes[k, OLDEST]
        while s >= 0:
            out[n] = s
            n += 1
            s = later[s]
    return n


@jit
def find(table, lanes, images, out):  # type: ignore[no-untyped-def]
    """The slice in the lane of each image that begins when it did, or any row where there is none."""
    for i in range(images.shape[0]):
        s = lanes[images["lane"][i], NEWEST]
        while s >= 0 and table["first"][s] > images["first"][i]:
            s = table["earlier"][s]
        out[i] = max(s, 0)


@jit
def resolve(into, taken, order):  # type: ignore[no-untyped-def]
    """Let `into` be the slice that is not taken itself; `order` sorts `taken`, and who is taken takes nobody any more."""
    count = taken.shape[0]
    for i in range(count - 1, -1, -1):
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if taken[order[middle]] < into[i]:
                low = middle + 1
            else:
                high = middle
        if low < count and taken[order[low]] == into[i]:
            into[i] = into[order[low]]


@jit
def lay_out(parent, child, size, start, cursor):  # type: ignore[no-untyped-def]
    """Places such that each node of a forest has all below it behind it: the first place of each, and how many it has.

    Pairs name a child before it is named as a parent's child again further up; `start` is -1 but for nodes that are no child.
    """
    for i in range(parent.shape[0]):
        size[parent[i]] += size[child[i]]
    place = 0
    for node in range(start.shape[0]):
        if start[node] == 0:
            start[node] = place
            cursor[node] = place + 1
            place += size[node]
    for i in range(parent.shape[0] - 1, -1, -1):
        start[child[i]] = cursor[parent[i]]
        cursor[child[i]] = start[child[i]] + 1
        cursor[parent[i]] += size[child[i]]


def subtrees(
    nodes: np.ndarray, into: np.ndarray, taken: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An order of slices in which each of `nodes` and all that it was made of lie together, and where: first .. last-1."""
    known = ascending(nodes, into, taken)
    parent, child = np.searchsorted(known, into), np.searchsorted(known, taken)
    size, start, cursor = (
        np.ones(len(known), np.int64),
        np.zeros(len(known), np.int64),
        np.zeros(len(known), np.int64),
    )
    start[child] = -1
    lay_out(parent, child, size, start, cursor)
    order = np.empty(len(known), np.int64)
    order[start] = known
    at = np.searchsorted(known, nodes)
    return order, start[at], start[at] + size[at]


class Slices:
    """The table, its lanes and the journal of the call that goes on."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        self.table: Any = np.zeros(0, slice_type(tick))
        self.lanes = np.empty((0, 3), np.int32)
        self.counts = np.zeros(ROW + 1, np.int64)
        self.free = np.empty(0, np.int32)
        self._epoch = np.int32(0)
        self._before = self.counts.copy()
        self._begin_lists(FIRST_ROOM)

    def _begin_lists(self, room: int) -> None:
        """Empty journals and lists, with room for so many entries each."""
        self._journal, self._changed = np.zeros(room, self.table.dtype), np.zeros(room, self.table.dtype)
        self._lane_journal = np.zeros((room, 3), np.int32)
        lists = ("images", "born", "into", "taken", "changed", "revisited")
        self._lists = {name: np.zeros(room, np.int32) for name in lists}

    def __len__(self) -> int:
        return int(self.counts[LIVE])

    @property
    def capacity(self) -> int:
        return len(self.table)

    # -- one call ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a call, which ends with `settle` or `rollback`."""
        if self._epoch == LAST_EPOCH:
            self.table["stamp"] = 0
            self.lanes[:, STAMP] = 0
            self._epoch = np.int32(0)
        self._epoch += np.int32(1)
        self.counts[IMAGES : JOINED + 1] = 0
        self.counts[ROW] = 0
        self._before = self.counts.copy()

    def insert(
        self,
        lane: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        reach: np.ndarray,
        horizon: Any,
        cell: np.ndarray,
    ) -> bool:
        """See the loop `insert`; False where rows have run out: make more (`grow`), and call again."""
        horizon = self.table.dtype["first"].type(horizon)
        while True:
            lists = self._lists
            status = insert(
                self.table, self.lanes, self.free, self.counts, self._epoch,
                self._journal, lists["images"], self._lane_journal, lists["born"], lists["into"], lists["taken"],
                self._changed, lists["changed"], lists["revisited"],
                lane, low, high, reach, horizon, cell,
            )  # fmt: skip
            if status != NO_ROOM:
                return bool(status == FINE)
            self._make_room(2 * len(self._journal))

    def take_out(self, slices: np.ndarray, *, for_good: bool = False) -> None:
        """Take slices out of their lanes; what is done for good cannot be undone, and costs less."""
        if not for_good:
            self._make_room(int(self.counts[IMAGES : LANES + 1].max()) + 3 * len(slices))
        lists = self._lists
        take_out(
            self.table, self.lanes, slices, self._epoch, self._journal, lists["images"], self._lane_journal, self.counts,
            not for_good,
        )  # fmt: skip

    def _make_room(self, room: int) -> None:
        if room > len(self._journal):
            self._journal = _longer(self._journal, room)
            self._changed = _longer(self._changed, room)
            self._lane_journal = _longer(self._lane_journal, room)
            self._lists = {name: _longer(column, room) for name, column in self._lists.items()}

    @property
    def born(self) -> np.ndarray:
        """The slices that this call has made."""
        return self._lists["born"][: self.counts[BORN]]

    @property
    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """(into, taken): the slices that this call has joined, in this order."""
        count = self.counts[JOINED]
        return self._lists["into"][:count].astype(np.int64), self._lists["taken"][:count].astype(np.int64)

    @staticmethod
    def resolved(into: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `joined`, with slices that stay in the place of those that were joined to others in turn."""
        into = into.copy()
        resolve(into, taken, np.argsort(taken))
        return into, taken

    def rollback(self) -> None:
        """Undo all that the call has done."""
        lists = self._lists
        put_back(
            self.table, self.lanes, self.free, self.counts, self._journal, lists["images"], self._lane_journal, lists["born"]
        )  # fmt: skip
        free = self.counts[FREE]
        self.counts[:] = self._before
        self.counts[FREE] = free

    def settle(self, gone: np.ndarray) -> None:
        """The call has succeeded: free the rows of slices that are in no lane any more."""
        give_back(self.table, gone, self.free, self.counts)

    # -- revisions ---------------------------------------------------------------------------------

    @property
    def changed(self) -> tuple[np.ndarray, np.ndarray]:
        """Slices as they were when they were last emitted, of those that have changed since, and their rows."""
        count = self.counts[CHANGED]
        return self._changed[:count], self._lists["changed"][:count]

    @changed.setter
    def changed(self, images: np.ndarray) -> None:
        self._make_room(len(images) + MOST)
        self._changed[: len(images)] = images
        find(self.table, self.lanes, images, self._lists["changed"])
        self.counts[CHANGED] = len(images)

    @property
    def revisited(self) -> np.ndarray:
        """Slices that are to be looked at again because what was emitted of them has changed."""
        listed = self._lists["revisited"][: self.counts[REVISITED]]
        flags = self.table["flags"][listed]
        return listed[(flags & ALIVE > 0) & (flags & TOUCHED > 0)]

    def forget_changes(self) -> None:
        """What has changed was emitted."""
        self.table["flags"][self._lists["revisited"][: self.counts[REVISITED]]] &= ~TOUCHED
        self.counts[CHANGED] = self.counts[REVISITED] = 0

    # -- memory ------------------------------------------------------------------------------------

    def grow(self, capacity: int) -> None:
        """Have more rows."""
        old = self.capacity
        self.table = _longer(self.table, capacity)
        free, held = np.empty(capacity, np.int32), int(self.counts[FREE])
        fresh = np.arange(capacity - 1, old - 1, -1, dtype=np.int32)
        # Rows that were there are taken first.
        free[: len(fresh)], free[len(fresh) : len(fresh) + held] = fresh, self.free[:held]
        self.free = free
        self.counts[FREE] += len(fresh)

    def cut(self, capacity: int, lanes: int) -> None:
        """Have no more rows and lanes than these; no slice is in the others."""
        self.lanes = self.lanes[:lanes]
        if capacity < self.capacity:
            free = self.free[: self.counts[FREE]]
            free = free[free < capacity]
            self.table, self.counts[FREE] = self.table[:capacity].copy(), len(free)
            self.free = np.append(free, np.empty(capacity - len(free), np.int32))

    def grow_lanes(self, count: int) -> None:
        """Have more lanes."""
        if count > len(self.lanes):
            if count > MOST_LANES:
                raise LimitError(f"{count:,} keys times session windows are more than {MOST_LANES:,}")
            lanes = np.full((max(count, 2 * len(self.lanes)), 3), -1, np.int32)
            lanes[: len(self.lanes)] = self.lanes
            self.lanes = lanes

    def in_order(self) -> np.ndarray:
        """All slices, lane by lane and in the order of time: O(slices and lanes)."""
        out = np.empty(len(self), np.int64)
        walk(self.table, self.lanes, out)
        return out

    def replace(self, rows: np.ndarray, capacity: int, lanes: int) -> None:
        """Hold these slices instead, which are sorted by lane and time, as rows 0, 1, 2, .. of `capacity`; in no heap."""
        count = len(rows)
        self.table = np.zeros(capacity, self.table.dtype)
        self.table[:count] = rows
        table: Any = self.table[:count]
        table["stamp"] = 0
        table["flags"] = (rows["flags"] & ~TIMED) | ALIVE
        lane = rows["lane"]
        same = lane[1:] == lane[:-1] if count else np.empty(0, bool)
        table["earlier"], table["later"] = np.arange(count) - 1, np.arange(count) + 1
        table["earlier"][1:][~same] = table["later"][:-1][~same] = -1
        self.lanes = np.full((lanes, 3), -1, np.int32)
        if count:
            table["earlier"][0] = table["later"][-1] = -1
            leads = np.append(True, ~same)
            self.lanes[lane[leads], OLDEST] = np.flatnonzero(leads)
            trails = np.append(~same, True)
            self.lanes[lane[trails], NEWEST] = np.flatnonzero(trails)
        self.free = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        self.counts[FREE], self.counts[LIVE] = capacity - count, count
        touched = np.flatnonzero(table["flags"] & TOUCHED)
        self._begin_lists(max(FIRST_ROOM, len(touched) + MOST))
        self._lists["revisited"][: len(touched)] = touched
        self.counts[REVISITED] = len(touched)

    @property
    def nbytes(self) -> int:
        lists = sum(column.nbytes for column in self._lists.values())
        journals = self._journal.nbytes + self._changed.nbytes + self._lane_journal.nbytes
        return int(self.table.nbytes + self.lanes.nbytes + self.free.nbytes + lists + journals)


def _longer(column: np.ndarray, length: int) -> np.ndarray:
    wider = np.zeros((length, *column.shape[1:]), column.dtype)
    wider[: len(column)] = column
    return wider
