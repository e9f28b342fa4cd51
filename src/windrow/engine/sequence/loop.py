"""The loop over events around a step function: all deterministic windows run through it.

    step(parameters, state, time, x0, ..) -> (state, before, begins, behind)

    before   this many of the oldest open windows end, without this event
    begins   this many windows begin with this event
    behind   this many of the oldest open windows end, with this event included

This is Cutty's discretization function (section 3.2) with a third number, for windows that hold the
mark which ends them. The loop only counts: as windows are first in, first out, the j-th that ends is
the j-th that began, and who that was is found afterwards.

    key 3     open before: 2     begins  .  1  .  .  1       begun   2 entries
                                 ends    .  .  2  .  1       ended   3 entries: the two old ones,
                                                                     then the first of the new ones

The source is written for a number of columns and of numbers in the state. Built-in steps take their
parameters as arguments, so that one compiled loop serves all queries. A user's step has none, and its
loop keeps note of where it is, so that an error can be named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from windrow.engine.sequence.run import Run

FINE, NEED_ROOM, TOO_MANY_OPEN, NEGATIVE, TOO_MANY_ENDS = range(5)
SEGMENT, ROW, BEGUN, ENDED, OPENED = range(5)


def _list(letter: str, count: int, index: str = "") -> str:
    return "".join(f"{letter}{i}{index}, " for i in range(count))


def _lines(indent: int, lines: list[str]) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _builtin(columns: int, kinds: str) -> list[str]:
    """The call of a built-in step, which gives the state back as it took it."""
    state, new = (f"({_list(letter, len(kinds))})" for letter in "ab")
    given = f"parameters, {state}, times[i], {_list('x', columns, '[i]')}"
    return [f"{new}, before, begins, behind = step({given})"]


def _user(columns: int, kinds: str, bare: bool) -> list[str]:
    """The call of a user's step: note the row first, because it may raise."""
    state, new = ("a0", "b0") if bare else (f"({_list(letter, len(kinds))})" for letter in "ab")
    return [
        f"cursor[{ROW}] = i",
        f"{new}, begins, before = step({state}, {_list('x', columns, '[i]')})",
        "begins, before, behind = np.int64(begins), np.int64(before), np.int64(0)",
    ]


def _expiry(kinds: str, bare: bool, initial: tuple[int | float, ...]) -> list[str]:
    """End the open windows of a key before an event at or after the end that `due` says of the state, which then begins anew."""
    last = len(kinds) - 1
    state = "a0" if bare else f"({_list('a', last)})"
    return [
        "if queued > 0:",
        f"    cursor[{ROW}] = i",
        f"    over = max(instant(due({state})), after(a{last}))",
        "    if times[i] >= over:",
        "        if ended + queued > end.shape[0]:",
        f"            status = {NEED_ROOM}",
        "            break",
        "        for _ in range(queued):",
        "            end[ended], finish[ended] = rank, over",
        "            ended += 1",
        "        opened -= queued",
        "        queued = queued - queued",
        *(f"        a{i} = s{i}[s] = {value!r}" for i, value in enumerate(initial)),
    ]


@cache
def source_of_ends(kinds: str, *, bare: bool) -> str:
    """`ends`: when the open windows of each state end if no event comes; the last column is the time of the last event."""
    last = len(kinds) - 1
    state = "s0[k]" if bare else f"({_list('s', last, '[k]')})"
    return f"""
def ends({_list("s", len(kinds))}cursor, out):
    for k in range(out.shape[0]):
        cursor[0] = k
        out[k] = max(instant(due({state})), after(s{last}[k]))
"""


@cache
def source(
    columns: int,
    kinds: str,
    *,
    user: bool = False,
    bare: bool = False,
    initial: tuple[int | float, ...] | None = None,
) -> str:
    """`discretize` for `columns` inputs and a state with one number for each of `kinds` ("i" or "f").

    A user's windows may end by the watermark: `initial` is the state with which a key begins, and the last number of a
    state is then the time of the last event.

    Segment s is the rows `bounds[s] .. bounds[s+1]-1`; its first row has the rank `first[s]`, its
    state is `s0[s], ..`, and `room[s]` windows of it are open; both are updated. At most `most` windows
    may be open in all. Written are

        begun_to, ended_to         per segment: how many windows have begun and ended up to its end
        begun_rank, begun_time     the windows that begin in this run
        end, finish                the windows that end in this run: rank behind the last event, tick

    `cursor` holds the segment and the row to go on from and how many windows have begun, ended and are
    open. The loop stops before a row for which it has no room, and can be called again with more.
    """
    numbers = range(len(kinds))
    timed = initial is not None
    asked = kinds[:-1] if timed else kinds
    call = _user(columns, asked, bare) if user else _builtin(columns, kinds)
    if initial is not None:
        call = [*_expiry(kinds, bare, initial), *call, f"b{len(asked)} = times[i]"]
    load = [f"a{i} = s{i}[s]" for i in numbers]
    keep = [f"a{i} = {'float' if kinds[i] == 'f' else 'np.int64'}(b{i})" for i in numbers]
    store = [f"s{i}[s] = a{i}" for i in numbers]
    return f"""
def discretize(bounds, first, times, {_list("x", columns)}parameters, {_list("s", len(kinds))}room, most, begun_to, ended_to, begun_rank, begun_time, end, finish, cursor):
    status = {FINE}
    begun, ended, opened = cursor[{BEGUN}], cursor[{ENDED}], cursor[{OPENED}]
    resumed = cursor[{ROW}]
    for s in range(cursor[{SEGMENT}], first.shape[0]):
        queued = room[s]
        low = max(bounds[s], resumed)
        rank = first[s] + low - bounds[s]
{_lines(8, load)}        for i in range(low, bounds[s + 1]):
{_lines(12, call)}            if before != 0 or begins != 0 or behind != 0:
                if before < 0 or begins < 0 or behind < 0:
                    status = {NEGATIVE}
                elif before > queued:
                    status = {TOO_MANY_ENDS}
                elif begins > most - opened + before:
                    status = {TOO_MANY_OPEN}
                elif begun + begins > begun_rank.shape[0] or ended + before + behind > end.shape[0]:
                    status = {NEED_ROOM}
                if status != {FINE}:
                    cursor[{ROW}] = i
                    break
                queued += begins - before - behind
                opened += begins - before - behind
                for _ in range(before):
                    end[ended], finish[ended] = rank, times[i]
                    ended += 1
                for _ in range(begins):
                    begun_rank[begun], begun_time[begun] = rank, times[i]
                    begun += 1
                for _ in range(behind):
                    end[ended], finish[ended] = rank + 1, after(times[i])
                    ended += 1
{_lines(12, keep + (store if user else []))}            rank += 1
{_lines(8, [] if user else store)}        room[s] = queued
        begun_to[s], ended_to[s] = begun, ended
        if status != {FINE}:
            cursor[{SEGMENT}] = s
            break
    cursor[{BEGUN}], cursor[{ENDED}], cursor[{OPENED}] = begun, ended, opened
    return status
"""


@dataclass
class FoundWindows:
    """What the loop writes: see `source`."""

    begun_to: np.ndarray
    ended_to: np.ndarray
    begun_rank: np.ndarray
    begun_time: np.ndarray
    end: np.ndarray
    finish: np.ndarray
    cursor: np.ndarray

    @classmethod
    def of(cls, run: Run, opened: int) -> FoundWindows:
        """Room for one window per row that begins, and for one that ends."""
        segments, rows, tick = len(run.keys), len(run.times) + 1, run.times.dtype
        return cls(
            begun_to=np.empty(segments, np.int64),
            ended_to=np.empty(segments, np.int64),
            begun_rank=np.empty(rows, np.int64),
            begun_time=np.empty(rows, tick),
            end=np.empty(rows, np.int64),
            finish=np.empty(rows, tick),
            cursor=np.array([0, 0, 0, 0, opened], np.int64),
        )

    def __iter__(self) -> Iterator[np.ndarray]:
        return (getattr(self, field.name) for field in fields(self))

    def widen(self) -> None:
        """Twice as much room for windows."""
        for name in ("begun_rank", "begun_time", "end", "finish"):
            old = getattr(self, name)
            wider = np.empty(2 * len(old), old.dtype)
            wider[: len(old)] = old
            setattr(self, name, wider)

    @property
    def row(self) -> int:
        """The row that the loop stopped at."""
        return int(self.cursor[ROW])

    @property
    def begun(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranks and times of the windows that began."""
        size = int(self.cursor[BEGUN])
        return self.begun_rank[:size], self.begun_time[:size]

    @property
    def ended(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the windows that ended, the rank behind the last event and the tick."""
        size = int(self.cursor[ENDED])
        return self.end[:size].copy(), self.finish[:size].copy()
