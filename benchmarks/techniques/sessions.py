"""Sessions that are open: where each of them begins and ends, for each key, as events come in any order.

    events       o  o o        o  o             gap 4: an event belongs to a session that lies no further away
    sessions    |------|      |----|
                          *                     a late event that is near enough to two of them ..
                |------------------|            .. fuses them

The sessions of a key are a chain, the newest first, because events come in about the order of time: most of them
find their session at once. Each session has a number, which is used again when the session is over.

A technique that keeps tuples asks for the sessions that are over, and finds their tuples by key and time. One that
keeps a bucket for each window has one for each number; it is told which events go to which session (`Placed`), and
which buckets are to be fused.

A session takes an event at its very end, so it is over once the watermark has passed its end. From then on no event
joins it: a late one that comes near begins a session of its own, as in the engine.

An event that would be a session on its own which is over is late for these sessions, even where an open one lies
around it; other windows may still take it. Then its tuple lies among those of the session without being one of them,
and the session remembers so (`Aside`). The horizon only moves on, so of equal times those that are late are the last
ones to come; and a session that lies around a late event did so when it came, as none grows back to before it.

paper    Traub et al., Scotty, ACM TODS 2021, section 6.2 with Figure 9: the cases of a late event
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from windrow.compiling.tiers import jit
from windrow.measure import Measure, Tick
from windrow.windows.base import Window
from windrow.windows.session import Session


@jit
def place_events(times, keys, gap, e, head, first, last, older, free, run, session, into, gone, made):
    """Extend, begin and fuse sessions from event `e` on; the event at which there was no number left, or the end.

    Events run[r] .. run[r+1]-1 are in session[r]; `made` counts runs and fused pairs. `into` took what `gone` held.
    free: how many numbers are free, and which.
    """
    count = times.shape[0]
    while e < count:
        t = times[e]
        k = keys[e] if keys.shape[0] > 0 else 0
        newer, s = -1, head[k]
        while s >= 0 and t + gap < first[s]:
            newer, s = s, older[s]
        if s < 0 or t > last[s] + gap:
            if free[0] == 0:
                return e
            free[0] -= 1
            new = free[1 + free[0]]
            first[new] = last[new] = t
            older[new] = s
            s = new
            if newer < 0:
                head[k] = s
            else:
                older[newer] = s
        elif t < first[s]:
            first[s] = t
            before = older[s]
            if before >= 0 and t <= last[before] + gap:
                last[before] = last[s]
                into[made[1]] = before
                gone[made[1]] = s
                made[1] += 1
                s = before
                if newer < 0:
                    head[k] = s
                else:
                    older[newer] = s
        else:
            last[s] = max(last[s], t)
        if made[0] == 0 or session[made[0] - 1] != s:
            run[made[0]] = e
            session[made[0]] = s
            made[0] += 1
        e += 1
        # Events that follow mostly lie in the same session; one that comes near to a newer one is looked at anew.
        beyond = gap if newer < 0 else gap - gap
        while e < count and (keys.shape[0] == 0 or keys[e] == k):
            t = times[e]
            if t < first[s] or t > last[s] + beyond:
                break
            last[s] = max(last[s], t)
            e += 1
    return e


@jit
def settle(session, into, gone, joined, free):
    """Let runs name the sessions that are left, and the numbers of the others be free."""
    for f in range(gone.shape[0]):
        joined[gone[f]] = into[f]
    for r in range(session.shape[0]):
        while joined[session[r]] >= 0:
            session[r] = joined[session[r]]
    for f in range(gone.shape[0]):
        joined[gone[f]] = -1
        free[1 + free[0]] = gone[f]
        free[0] += 1


@jit
def take_over(gap, horizon, head, first, last, older, free, key, number):
    """Take out the sessions that end before the horizon; how many there are. Later ones end later."""
    count = 0
    for k in range(head.shape[0]):
        newer, s = -1, head[k]
        while s >= 0 and last[s] + gap >= horizon:
            newer, s = s, older[s]
        if newer < 0:
            head[k] = -1
        else:
            older[newer] = -1
        while s >= 0:
            key[count] = k
            number[count] = s
            count += 1
            free[1 + free[0]] = s
            free[0] += 1
            s = older[s]
    return count


@jit
def find_oldest(head, first, older, start):
    """Lower `start` to where the oldest session of each key begins."""
    for k in range(head.shape[0]):
        s = head[k]
        while s >= 0:
            start[k] = min(start[k], first[s])
            s = older[s]


@jit
def find_inside(times, keys, head, first, last, older, inside):
    """Which of these events lie between the first and the last event of an open session."""
    for e in range(times.shape[0]):
        s = head[keys[e] if keys.shape[0] > 0 else 0]
        while s >= 0 and times[e] < first[s]:
            s = older[s]
        inside[e] = s >= 0 and times[e] <= last[s]


@dataclass
class Aside:
    """The last count[i] events of a key at a time are not in the session that lies around them; by key, then time."""

    key: np.ndarray
    time: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, keys: np.ndarray, times: np.ndarray) -> Aside:
        """These events, counted."""
        order = np.lexsort((times, keys))
        keys, times = keys[order], times[order]
        new = np.ones(len(keys), bool)
        new[1:] = (keys[1:] != keys[:-1]) | (times[1:] != times[:-1])
        begin = np.flatnonzero(new)
        return cls(keys[begin], times[begin], np.diff(begin, append=len(keys)))

    def __len__(self) -> int:
        return len(self.key)


@dataclass
class Placed:
    """Events run[r] .. run[r+1]-1 are in session[r], after gone[f] was fused into into[f], one f after another."""

    run: np.ndarray
    session: np.ndarray
    into: np.ndarray
    gone: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.run)


@dataclass
class Over:
    """Sessions that are over: their window, key and number, their first and last event, their end, what is not in them."""

    spec: np.ndarray
    key: np.ndarray
    number: np.ndarray
    start: np.ndarray
    last: np.ndarray
    end: np.ndarray
    aside: Aside

    def __len__(self) -> int:
        return len(self.number)

    def where(self, order: np.ndarray) -> Over:
        names = ("spec", "key", "number", "start", "last", "end")
        return replace(self, **{name: getattr(self, name)[order] for name in names})


class OpenSessions:
    """The open sessions of one window; see the module. Numbers are less than `room`."""

    def __init__(self, spec: int, gap: Tick, dtype: np.dtype) -> None:
        self.spec = spec
        self.gap = dtype.type(gap)
        self._dtype = dtype
        self._head = np.empty(0, np.int64)
        self._first, self._last = np.empty(0, dtype), np.empty(0, dtype)
        self._older, self._joined = np.empty(0, np.int64), np.empty(0, np.int64)
        self._free = np.zeros(1, np.int64)
        # Key and time of the events that are late for an open session which lies around them.
        self._aside = np.empty(0, np.int64), np.empty(0, dtype)

    @property
    def room(self) -> int:
        return len(self._first)

    def __len__(self) -> int:
        return self.room - int(self._free[0])

    def place(self, times: np.ndarray, keys: np.ndarray | None, known: int) -> Placed:
        """Let sessions have these events, whose keys are among `known` ones."""
        count = len(times)
        self._know(known)
        numbers = np.empty(0, np.int64) if keys is None else keys
        run, session, into, gone = (np.empty(count + 1, np.int64) for _ in range(4))
        made = np.zeros(2, np.int64)
        done = 0
        while True:
            chains = (self._head, self._first, self._last, self._older, self._free)
            done = place_events(times, numbers, self.gap, done, *chains, run, session, into, gone, made)
            if done == count:
                break
            self._make_room()
        runs, fused = made.tolist()
        run[runs] = count
        placed = Placed(run[: runs + 1], session[:runs], into[:fused], gone[:fused])
        settle(placed.session, placed.into, placed.gone, self._joined, self._free)
        return placed

    def refuse(self, times: np.ndarray, horizon: Tick) -> np.ndarray:
        """Which events are late: each would be a session on its own that ends before the horizon."""
        return times + self.gap < self._dtype.type(horizon)

    def pass_over(self, times: np.ndarray, keys: np.ndarray | None, known: int) -> None:
        """These events are late here, but not for all windows."""
        self._know(known)
        numbers = np.zeros(len(times), np.int64) if keys is None else keys
        inside = self._inside(numbers, times)
        had_keys, had_times = self._aside
        self._aside = np.append(had_keys, numbers[inside]), np.append(had_times, times[inside])

    def _inside(self, keys: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Around which events an open session lies."""
        inside = np.empty(len(times), bool)
        find_inside(times, keys, self._head, self._first, self._last, self._older, inside)
        return inside

    def _know(self, known: int) -> None:
        """Have a chain for each of so many keys."""
        self._head = np.append(self._head, np.full(max(1, known) - len(self._head), -1))

    def _make_room(self) -> None:
        """Twice as many numbers, as none is free."""
        had = self.room
        more = max(64, had)
        self._first = np.append(self._first, np.zeros(more, self._dtype))
        self._last = np.append(self._last, np.zeros(more, self._dtype))
        self._older = np.append(self._older, np.full(more, -1))
        self._joined = np.append(self._joined, np.full(more, -1))
        # Those that were fused in this batch are in no chain, and not free yet.
        self._free = np.zeros(1 + had + more, np.int64)
        self._free[0] = more
        self._free[1 : 1 + more] = np.arange(had + more - 1, had - 1, -1)

    def over(self, horizon: Tick) -> Over:
        """The sessions that end before the horizon, which are forgotten."""
        key, number = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        chains = (self._head, self._first, self._last, self._older, self._free)
        count = take_over(self.gap, self._dtype.type(horizon), *chains, key, number)
        key, number = key[:count], number[:count]
        start, last = self._first[number], self._last[number]
        keys, times = self._aside
        inside = self._inside(keys, times)
        self._aside = keys[inside], times[inside]
        aside = Aside.of(keys[~inside], times[~inside])
        return Over(np.full(count, self.spec), key, number, start, last, last + self.gap, aside)

    def lower(self, start: np.ndarray) -> None:
        """Lower `start`, an instant for each key, to where the oldest session of each key begins."""
        find_oldest(self._head, self._first, self._older, start)


def static_sessions(windows: Mapping[str, Window], measure: Measure) -> list[OpenSessions]:
    """The sessions of a query whose gap is the same for all events; none of them is open yet."""
    return [
        OpenSessions(spec, measure.ticks(window.gap, what="gap"), measure.dtype)
        for spec, window in enumerate(windows.values())
        if isinstance(window, Session) and window.gap is not None
    ]
