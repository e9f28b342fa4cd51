"""The slices of all lanes, linked in the order of time, and a journal that takes back what a call has done.

    table    a row for each slice: first and last time, reach, lane, links to its neighbours, flags; the number of the row
             is the slot of its partials and never changes while the slice lives
    lanes    the oldest and the newest slice of each lane, -1 where there is none
    free     rows that no slice has
    journal  rows and lanes as they were before this call first changed them
    lists    what the call has done: slices that are new, slices that were joined, and so on

Inserting costs O(1) for an event that is not before the newest slice of its lane, and a step for each slice that begins
later than the event otherwise. Taking back costs what was changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.errors import LimitError

ALIVE, EMITTED, TOUCHED, WAITING, ENDING = (np.uint8(1 << i) for i in range(5))
TIMED = np.uint8(WAITING | ENDING)
# Columns of `lanes`: the slices at its ends, and the calls that changed and visited it last.
OLDEST, NEWEST, STAMP, VISITED = range(4)
# Rows of `lists`, whose lengths are in `counts`. The first two last until windows are emitted, the others for a call.
CHANGED, REVISITED, IMAGES, LANES, BORN, JOINED, ENDED, HEADS = range(8)
# More rows of `lists`: what was joined to the slices in JOINED; the ends of the lanes in LANES.
TAKEN, WAS_OLDEST, WAS_NEWEST = range(8, 11)
# What else is in `counts`: the row to go on from, sessions found so far, one more than the slice whose
# joins were interrupted (0: none), and how many rows of the table are free and in a lane.
ROW, FOUND, HALF_DONE, FREE, LIVE = range(8, 13)
# The two rows of `journal`: slices before this call, and as they were emitted.
BEFORE, SHOWN = range(2)
# Rows of `numbers` and `times` of sessions that have ended; `lay_out` makes the first two a range of slices.
SLICE, JOINS, LANE, KEY = range(4)
START, LAST, REACH = range(3)
FINE, NO_SLICE, NO_ROOM, TOO_MANY = range(4)
# As many entries of any list as one event or session may add; room for that many events at least is looked for at a time.
MOST = 6
FEW = 64
FIRST_ROOM = 2 * MOST * FEW
NONE = np.empty(0, np.int64)
LAST_EPOCH = MOST_LANES = np.iinfo(np.int32).max


def slice_type(tick: np.dtype[Any]) -> np.dtype[Any]:
    """A row of the table; `revision` is that of the row emitted last, `stamp` the call that changed it last."""
    whole = [(name, np.int32) for name in ("lane", "earlier", "later", "revision", "stamp")]
    fields: list[Any] = [("first", tick), ("last", tick), ("reach", tick), *whole, ("flags", np.uint8)]
    return np.dtype(fields, align=True)


@jit
def keep(table, s, epoch, journal, lists, counts):  # type: ignore[no-untyped-def]
    """Journal a slice before its first change in this call."""
    if table["stamp"][s] != epoch:
        journal[BEFORE, counts[IMAGES]] = table[s]
        lists[IMAGES, counts[IMAGES]] = s
        counts[IMAGES] += 1
        table["stamp"][s] = epoch


@jit
def keep_lane(lanes, k, epoch, lists, counts):  # type: ignore[no-untyped-def]
    """Journal the ends of a lane before their first change in this call."""
    if lanes[k, STAMP] != epoch:
        m = counts[LANES]
        lists[LANES, m], lists[WAS_OLDEST, m], lists[WAS_NEWEST, m] = k, lanes[k, OLDEST], lanes[k, NEWEST]
        counts[LANES] += 1
        lanes[k, STAMP] = epoch


@jit
def link(earlier, later, lanes, k, before, behind):  # type: ignore[no-untyped-def]
    """Let slices `before` and `behind`, which may be -1, be neighbours in a lane; they and the lane were kept."""
    if before >= 0:
        later[before] = behind
    else:
        lanes[k, OLDEST] = behind
    if behind >= 0:
        earlier[behind] = before
    else:
        lanes[k, NEWEST] = before


@jit
def note_change(table, s, journal, lists, counts):  # type: ignore[no-untyped-def]
    """Remember the row that was emitted for a slice, which is about to change, and to look at the slice again."""
    if table["flags"][s] & EMITTED:
        journal[SHOWN, counts[CHANGED]] = table[s]
        lists[CHANGED, counts[CHANGED]] = s
        counts[CHANGED] += 1
        table["flags"][s] &= ~EMITTED
        if not table["flags"][s] & TOUCHED:
            table["flags"][s] |= TOUCHED
            lists[REVISITED, counts[REVISITED]] = s
            counts[REVISITED] += 1


@jit
def note_joined(table, into, taken, lists, counts):  # type: ignore[no-untyped-def]
    """A slice takes another one, which is in no lane any more."""
    last, reach = table["last"], table["reach"]
    last[into], reach[into] = max(last[into], last[taken]), max(reach[into], reach[taken])
    table["flags"][taken] &= TIMED
    lists[JOINED, counts[JOINED]], lists[TAKEN, counts[JOINED]] = into, taken
    counts[JOINED] += 1
    counts[LIVE] -= 1


@jit
def join_following(table, lanes, s, epoch, journal, lists, counts):  # type: ignore[no-untyped-def]
    """Join to a slice those behind it that it reaches; False where room has run out before all were."""
    first, reach, earlier, later = table["first"], table["reach"], table["earlier"], table["later"]
    lane = table["lane"]
    n = later[s]
    while n >= 0 and first[n] <= reach[s]:
        if counts[:ROW].max() + MOST > lists.shape[1]:
            return False
        keep(table, n, epoch, journal, lists, counts)
        note_change(table, n, journal, lists, counts)
        note_joined(table, s, n, lists, counts)
        n = later[n]
        if n >= 0:
            keep(table, n, epoch, journal, lists, counts)
        else:
            keep_lane(lanes, lane[s], epoch, lists, counts)
        link(earlier, later, lanes, lane[s], s, n)
    return True


@jit
def insert(  # type: ignore[no-untyped-def]
    table, lanes, free, epoch, journal, lists, counts,
    numbers, low, high, gaps, horizon, lane, width, most, cell,
):  # fmt: skip
    """Put stretches of time into the slices of their lanes; whether that was done, or what there is not enough of.

    Stretch i lies in [low[i], high[i]] and is of key numbers[i], or numbers[0]. It goes to the first of the lanes from
    number * width + lane on that it is not late for: one for each row of `gaps`, which says how much further than to high[i]
    the stretch holds its session open, for all or for each of them. cell[i] is its slice then, or -1 where it is late for
    all. Slices that it connects are joined. The rows from counts[ROW] on are looked at, so that the loop can go on with
    more room; a row may be looked at twice. At most `most` slices may live.
    """
    first, last, reach = table["first"], table["last"], table["reach"]
    earlier, later, flags, stamp = table["earlier"], table["later"], table["flags"], table["stamp"]
    lane_of, revision = table["lane"], table["revision"]
    keyed, many_gaps, levels = numbers.shape[0] > 1, gaps.shape[1] > 1, gaps.shape[0]
    events = 0  # so many more can be journaled for sure
    for i in range(counts[ROW], low.shape[0]):
        t, until, column = low[i], high[i], i if many_gaps else 0
        level = 0
        r = until + gaps[0, column]
        while r < horizon and level + 1 < levels:
            level += 1
            r = until + gaps[level, column]
        if r < horizon:
            cell[i] = -1
            continue
        if events == 0:
            events = (lists.shape[1] - counts[:ROW].max()) // MOST
            if events < FEW:
                counts[ROW] = i
                return NO_ROOM
        events -= 1
        k = numbers[i if keyed else 0] * width + lane + level
        s = lanes[k, NEWEST]
        while s >= 0 and first[s] > t:
            s = earlier[s]
        n = later[s] if s >= 0 else lanes[k, OLDEST]
        touches = s >= 0 and t <= reach[s]
        if not touches and n >= 0 and first[n] <= r:
            s, touches = n, True
        if touches:
            if stamp[s] != epoch:
                keep(table, s, epoch, journal, lists, counts)
            if flags[s] & EMITTED:
                note_change(table, s, journal, lists, counts)
            first[s], last[s], reach[s] = min(first[s], t), max(last[s], until), max(reach[s], r)
        else:
            if counts[FREE] == 0 or counts[LIVE] >= most:
                counts[ROW] = i
                return TOO_MANY if counts[LIVE] >= most else NO_SLICE
            counts[FREE] -= 1
            new = free[counts[FREE]]
            lists[BORN, counts[BORN]] = new
            counts[BORN] += 1
            counts[LIVE] += 1
            first[new], last[new], reach[new] = t, until, r
            lane_of[new], revision[new], stamp[new], flags[new] = k, 0, epoch, ALIVE
            # As `link` does, which costs more here.
            earlier[new], later[new] = s, n
            if s < 0 or n < 0:
                keep_lane(lanes, k, epoch, lists, counts)
            if s >= 0:
                if stamp[s] != epoch:
                    keep(table, s, epoch, journal, lists, counts)
                later[s] = new
            else:
                lanes[k, OLDEST] = new
            if n >= 0:
                if stamp[n] != epoch:
                    keep(table, n, epoch, journal, lists, counts)
                earlier[n] = new
            else:
                lanes[k, NEWEST] = new
            s = new
        n = later[s]
        if n >= 0 and first[n] <= reach[s]:
            events = 0
            if not join_following(table, lanes, s, epoch, journal, lists, counts):
                counts[ROW] = i
                return NO_ROOM
        cell[i] = s
    counts[ROW] = 0
    return FINE


@jit
def end_sessions(  # type: ignore[no-untyped-def]
    table, lanes, epoch, journal, lists, counts, popped, gaps, levels, floors, horizon, numbers, times
):  # fmt: skip
    """Find the sessions that are final in all lanes of the keys of `popped`; whether that was done, or there is no room.

    The first `levels` lanes of a key are handed up, each to the next one; what is final elsewhere is listed as ENDED. A
    session that a slice of a smaller gap may still join waits for that. floors: by lane, the first start of a session that
    is told of. For each of these, `numbers` gets its slice, how many were joined so far, lane and key, and `times` its
    first and last event and its reach. HEADS are the oldest slices that are left and in no heap.
    """
    first, last, reach = table["first"], table["last"], table["reach"]
    earlier, later, flags, lane = table["earlier"], table["later"], table["flags"], table["lane"]
    stamp, width = table["stamp"], floors.shape[0]
    if counts[HALF_DONE]:
        if not join_following(table, lanes, counts[HALF_DONE] - 1, epoch, journal, lists, counts):
            return NO_ROOM
        counts[HALF_DONE] = 0
    room = 0  # so many more sessions can be journaled for sure
    for i in range(counts[ROW], popped.shape[0]):
        key = lane[popped[i]] // width
        if lanes[(key + 1) * width - 1, VISITED] == epoch:
            continue
        counts[ROW] = i
        below = np.int32(-1)  # the oldest slice of all smaller gaps
        for j in range(width):
            k = key * width + j
            s = lanes[k, OLDEST]
            if j >= levels:
                below = np.int32(-1)
            goes_up = j + 1 < levels
            if counts[ENDED] and lane[lists[ENDED, counts[ENDED] - 1]] == k:
                s = later[lists[ENDED, counts[ENDED] - 1]]
            while lanes[k, VISITED] != epoch:
                if room == 0:
                    room = (lists.shape[1] - counts[:ROW].max()) // MOST
                if room == 0 or counts[FOUND] == numbers.shape[1]:
                    return NO_ROOM
                room -= 1
                if s < 0 or reach[s] >= horizon or (below >= 0 and first[below] <= reach[s]):
                    if s >= 0 and reach[s] >= horizon and not flags[s] & WAITING:
                        lists[HEADS, counts[HEADS]] = s
                        counts[HEADS] += 1
                    lanes[k, VISITED] = epoch
                    break
                if first[s] >= floors[j]:
                    m = counts[FOUND]
                    numbers[SLICE, m], numbers[JOINS, m], numbers[LANE, m], numbers[KEY, m] = (
                        s,
                        counts[JOINED],
                        j,
                        key,
                    )
                    times[START, m], times[LAST, m], times[REACH, m] = first[s], last[s], reach[s]
                    counts[FOUND] += 1
                following = later[s]
                if not goes_up:
                    lists[ENDED, counts[ENDED]] = s
                    counts[ENDED] += 1
                    s = following
                    continue
                if stamp[s] != epoch:
                    keep(table, s, epoch, journal, lists, counts)
                if following >= 0 and stamp[following] != epoch:
                    keep(table, following, epoch, journal, lists, counts)
                for moved in (k, k + 1):
                    if lanes[moved, STAMP] != epoch:
                        keep_lane(lanes, moved, epoch, lists, counts)
                link(earlier, later, lanes, k, -1, following)
                reach[s] = last[s] + gaps[j + 1, 0]
                up = lanes[k + 1, NEWEST]
                while up >= 0 and first[up] > first[s]:
                    up = earlier[up]
                if up >= 0 and stamp[up] != epoch:
                    keep(table, up, epoch, journal, lists, counts)
                if up >= 0 and first[s] <= reach[up]:
                    note_joined(table, up, s, lists, counts)
                else:
                    n = later[up] if up >= 0 else lanes[k + 1, OLDEST]
                    if n >= 0 and stamp[n] != epoch:
                        keep(table, n, epoch, journal, lists, counts)
                    link(earlier, later, lanes, k + 1, up, s)
                    link(earlier, later, lanes, k + 1, s, n)
                    lane[s] = k + 1
                    up = s
                n = later[up]
                if n >= 0 and first[n] <= reach[up]:
                    room = 0
                    if not join_following(table, lanes, up, epoch, journal, lists, counts):
                        counts[HALF_DONE] = up + 1
                        return NO_ROOM
                s = following
            s = lanes[k, OLDEST]
            if s >= 0 and (below < 0 or first[s] < first[below]):
                below = s
    return FINE


@jit
def lay_out(slices, joins, into, taken, start, size, order):  # type: ignore[no-untyped-def]
    """An order of slices in which those of each session lie together; how many there are.

    Session i is slices[i] with all that was joined to it by the first joins[i] pairs; it becomes order[slices[i]] ..
    order[joins[i]-1]. start has a -1 for each row of the table, and size a 1, before and after.
    """
    p = 0
    for i in range(slices.shape[0]):
        while p < joins[i]:
            size[into[p]] += size[taken[p]]
            p += 1
        joins[i] = size[slices[i]]
    for q in range(taken.shape[0]):
        if q >= p:
            size[into[q]] += size[taken[q]]
        start[taken[q]] = -2
    # A slice that is joined to none has its place, and behind it all that is joined to it, in the order of joins.
    place = 0
    for nodes in (into, slices):
        for node in nodes:
            if start[node] == -1:
                start[node] = place
                place += size[node]
                size[node] = place
    for q in range(taken.shape[0] - 1, -1, -1):
        count = size[taken[q]]
        size[into[q]] -= count
        start[taken[q]] = size[into[q]]
        size[taken[q]] += start[taken[q]]
    for nodes in (into, taken, slices):
        for node in nodes:
            order[start[node]] = node
    for i in range(slices.shape[0]):
        node = slices[i]
        slices[i], joins[i] = start[node], start[node] + joins[i]
    for q in range(place):
        start[order[q]], size[order[q]] = -1, 1
    return place


@jit
def take_out(table, lanes, slices, epoch, journal, lists, counts):  # type: ignore[no-untyped-def]
    """Take slices out of their lanes; there is room for three rows and a lane each."""
    earlier, later, lane = table["earlier"], table["later"], table["lane"]
    for s in slices:
        for kept in (s, np.int64(earlier[s]), np.int64(later[s])):
            if kept >= 0:
                keep(table, kept, epoch, journal, lists, counts)
        keep_lane(lanes, lane[s], epoch, lists, counts)
        link(earlier, later, lanes, lane[s], earlier[s], later[s])
        table["flags"][s] &= TIMED
        counts[LIVE] -= 1


@jit
def drop(table, lanes, slices, counts):  # type: ignore[no-untyped-def]
    """Take slices out of their lanes for good; none that stays in the same lane is older."""
    earlier, later, lane, flags = table["earlier"], table["later"], table["lane"], table["flags"]
    for s in slices:
        flags[s] &= TIMED
    for s in slices:
        n = later[s]
        if n < 0:
            lanes[lane[s], OLDEST] = lanes[lane[s], NEWEST] = -1
        elif flags[n] & ALIVE:
            lanes[lane[s], OLDEST] = n
            earlier[n] = -1
    counts[LIVE] -= slices.shape[0]


@jit
def give_back(table, slices, free, counts):  # type: ignore[no-untyped-def]
    """Free the rows of slices that are in no lane; those in a heap are freed when they come out of it."""
    flags = table["flags"]
    for s in slices:
        if not flags[s]:
            free[counts[FREE]] = s
            counts[FREE] += 1


@jit
def put_back(table, lanes, free, journal, lists, counts):  # type: ignore[no-untyped-def]
    """Undo the changes since the journal was begun."""
    for m in range(counts[IMAGES]):
        table[lists[IMAGES, m]] = journal[BEFORE, m]
    for m in range(counts[LANES]):
        # Not the stamp of this call, whose number is not given again.
        k = lists[LANES, m]
        lanes[k, OLDEST], lanes[k, NEWEST] = lists[WAS_OLDEST, m], lists[WAS_NEWEST, m]
    for m in range(counts[BORN] - 1, -1, -1):
        table["flags"][lists[BORN, m]] = 0
        free[counts[FREE]] = lists[BORN, m]
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
def resolve(into, taken, root):  # type: ignore[no-untyped-def]
    """Let `into` be the slice that is not taken itself; who is taken takes nobody any more. `root` has a -1 for each row."""
    for i in range(taken.shape[0] - 1, -1, -1):
        if root[into[i]] >= 0:
            into[i] = root[into[i]]
        root[taken[i]] = into[i]
    for i in range(taken.shape[0]):
        root[taken[i]] = -1


class Slices:
    """The table, its lanes, and the journal and lists of the call that goes on."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        self.table: Any = np.zeros(0, slice_type(tick))
        self.lanes = np.empty((0, 4), np.int32)
        self.counts = np.zeros(LIVE + 1, np.int64)
        self.free = np.empty(0, np.int32)
        # For each row, a number that loops may write to and put back to -1, and one to put back to 1.
        self.scratch = np.empty((2, 0), np.int32)
        self.epoch = np.int32(0)
        # How many sessions the last watermark has found, and the next one will perhaps.
        self._found_last = 0
        self._before = self.counts.copy()
        self._begin_lists(FIRST_ROOM)

    def _begin_lists(self, room: int) -> None:
        """Empty journals and lists, with room for so many entries each."""
        self.journal = np.zeros((2, room), self.table.dtype)
        self.lists = np.zeros((WAS_NEWEST + 1, room), np.int32)

    def __len__(self) -> int:
        return int(self.counts[LIVE])

    @property
    def capacity(self) -> int:
        return len(self.table)

    @property
    def call(self) -> tuple[Any, ...]:
        """The state that loops change, as the arguments that they have in common."""
        return self.epoch, self.journal, self.lists, self.counts

    # -- one call ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a call, which ends with `settle` or `rollback`."""
        if self.epoch == LAST_EPOCH:
            self.table["stamp"] = 0
            self.lanes[:, STAMP:] = 0
            self.epoch = np.int32(0)
        self.epoch += np.int32(1)
        self.counts[IMAGES : HALF_DONE + 1] = 0
        self._before = self.counts.copy()

    def insert(self, *stretches: Any) -> int:
        """See the loop `insert`; where rows have run out, make more (`grow`) and call again."""
        while True:
            status: int = insert(self.table, self.lanes, self.free, *self.call, *stretches)
            if status != NO_ROOM:
                return status
            self.make_room(4 * self.lists.shape[1])

    def end(self, popped: Any, gaps: Any, levels: int, floors: Any, horizon: Any) -> tuple[Any, ...]:
        """The sessions that are final: slices, which of them each session has (first .. last-1), lanes, keys, and times.

        See the loop `end_sessions`.
        """
        room = max(2 * len(popped) + FEW, self._found_last)
        numbers, times = np.empty((4, room), np.int64), np.empty((3, room), floors.dtype)
        given = popped, gaps, levels, floors, floors.dtype.type(horizon)
        while end_sessions(self.table, self.lanes, *self.call, *given, numbers, times) == NO_ROOM:
            if self.counts[FOUND] == numbers.shape[1]:
                numbers, times = (np.concatenate([rows, rows], axis=1) for rows in (numbers, times))
            else:
                self.make_room(4 * self.lists.shape[1])
        count, joins = int(self.counts[FOUND]), int(self.counts[JOINED])
        self._found_last = count + count // 4
        first, last, lane, key = numbers[:, :count]
        if not joins:
            order, first = first, np.arange(count)
            return order, first, first + 1, lane, key, times[:, :count]
        order = np.empty(count + 2 * joins, np.int64)
        pairs = self.lists[[JOINED, TAKEN], :joins].astype(np.int64)
        order = order[: lay_out(first, last, *pairs, *self.scratch, order)]
        return order, first, last, lane, key, times[:, :count]

    def take_out(self, slices: np.ndarray) -> None:
        """Take slices out of their lanes."""
        self.make_room(int(self.counts[:ROW].max()) + 3 * len(slices))
        take_out(self.table, self.lanes, slices, *self.call)

    def drop(self, slices: np.ndarray) -> None:
        """Take the oldest slices out of their lanes, which cannot be undone."""
        drop(self.table, self.lanes, slices, self.counts)

    def make_room(self, room: int) -> None:
        """Let the journal and each list have room for so many entries."""
        more = room - self.lists.shape[1]
        if more > 0:
            self.journal, self.lists = (
                np.concatenate([rows, np.zeros((len(rows), more), rows.dtype)], axis=1)
                for rows in (self.journal, self.lists)
            )

    def listed(self, which: int) -> np.ndarray:
        """One of the lists of this call."""
        return self.lists[which, : self.counts[which]]

    @property
    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """(into, taken): the slices that this call has joined, in this order; those of `into` are not taken themselves."""
        if not self.counts[JOINED]:
            return NONE, NONE
        into, taken = self.lists[[JOINED, TAKEN], : self.counts[JOINED]].astype(np.int64)
        resolve(into, taken, self.scratch[0])
        return into, taken

    def rollback(self) -> None:
        """Undo all that the call has done."""
        put_back(self.table, self.lanes, self.free, self.journal, self.lists, self.counts)
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
        return self.journal[SHOWN, : self.counts[CHANGED]], self.listed(CHANGED)

    @changed.setter
    def changed(self, images: np.ndarray) -> None:
        self.make_room(len(images) + MOST)
        self.journal[SHOWN, : len(images)] = images
        find(self.table, self.lanes, images, self.lists[CHANGED])
        self.counts[CHANGED] = len(images)

    @property
    def revisited(self) -> np.ndarray:
        """Slices that are to be looked at again because what was emitted of them has changed."""
        listed = self.listed(REVISITED)
        flags = self.table["flags"][listed]
        return listed[(flags & ALIVE > 0) & (flags & TOUCHED > 0)]

    def forget_changes(self, held: np.ndarray) -> None:
        """What has changed was emitted, but for the `held` ones of it."""
        images, rows = self.changed
        images, rows = images[held], rows[held]
        again = np.unique(rows)
        self.table["flags"][self.listed(REVISITED)] &= ~TOUCHED
        self.table["flags"][again] |= TOUCHED
        self.journal[SHOWN, : len(images)], self.lists[CHANGED, : len(rows)] = images, rows
        self.lists[REVISITED, : len(again)] = again
        self.counts[CHANGED], self.counts[REVISITED] = len(rows), len(again)

    # -- memory ------------------------------------------------------------------------------------

    def _resize(self, capacity: int) -> None:
        kept = min(capacity, self.capacity)
        table, self.table = self.table, np.zeros(capacity, self.table.dtype)
        self.table[:kept] = table[:kept]
        self.scratch = np.ones((2, capacity), np.int32)
        self.scratch[0] = -1

    def grow(self, capacity: int) -> None:
        """Have more rows."""
        fresh = np.arange(capacity - 1, self.capacity - 1, -1, dtype=np.int32)
        held = self.free[: self.counts[FREE]]
        self._resize(capacity)
        # Rows that were there are taken first.
        self.free = np.concatenate([fresh, held, np.empty(capacity - len(fresh) - len(held), np.int32)])
        self.counts[FREE] += len(fresh)

    def cut(self, capacity: int, lanes: int) -> None:
        """Have no more rows and lanes than these; no slice is in the others."""
        self.lanes = self.lanes[:lanes]
        if capacity < self.capacity:
            free = self.free[: self.counts[FREE]]
            free = free[free < capacity]
            self._resize(capacity)
            self.free, self.counts[FREE] = np.resize(free, capacity), len(free)

    def grow_lanes(self, count: int) -> None:
        """Have more lanes."""
        if count > len(self.lanes):
            if count > MOST_LANES:
                raise LimitError(f"{count:,} keys times session windows are more than {MOST_LANES:,}")
            more = np.full((max(count, 2 * len(self.lanes)) - len(self.lanes), 4), -1, np.int32)
            self.lanes = np.concatenate([self.lanes, more])

    def in_order(self) -> np.ndarray:
        """All slices, lane by lane and in the order of time: O(slices and lanes)."""
        out = np.empty(len(self), np.int64)
        walk(self.table, self.lanes, out)
        return out

    def replace(self, rows: np.ndarray, capacity: int, lanes: int) -> None:
        """Hold these slices instead, which are sorted by lane and time, as rows 0, 1, 2, .. of `capacity`; in no heap."""
        count = len(rows)
        self.table = self.table[:0]
        self._resize(capacity)
        table: Any = self.table[:count]
        table[:] = rows
        table["stamp"] = 0
        table["flags"] = (rows["flags"] & ~TIMED) | ALIVE
        lane = rows["lane"]
        leads, trails = np.ones(count, bool), np.ones(count, bool)
        leads[1:] = trails[:-1] = lane[1:] != lane[:-1]
        table["earlier"] = np.where(leads, -1, np.arange(count) - 1)
        table["later"] = np.where(trails, -1, np.arange(count) + 1)
        self.lanes = np.full((lanes, 4), -1, np.int32)
        self.lanes[lane[leads], OLDEST] = np.flatnonzero(leads)
        self.lanes[lane[trails], NEWEST] = np.flatnonzero(trails)
        self.free = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        self.counts[FREE], self.counts[LIVE] = capacity - count, count
        touched = np.flatnonzero(table["flags"] & TOUCHED)
        self._begin_lists(max(FIRST_ROOM, len(touched) + MOST))
        self.lists[REVISITED, : len(touched)] = touched
        self.counts[REVISITED] = len(touched)

    @property
    def nbytes(self) -> int:
        held = (self.table, self.lanes, self.free, self.scratch, self.journal, self.lists)
        return sum(column.nbytes for column in held)
