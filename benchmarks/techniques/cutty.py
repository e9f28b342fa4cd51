"""Cutty: slices begin where windows begin, and nowhere else; windows end inside of slices.

    events     o  o   o o    o  o   o  o
    windows    |----------A1------|                 when A1 ends, B is being filled:
                      |----------A2------|          A1 = slice A + what B holds so far
    slices     |--A---|--B--------- ..

All queries share the slices. One partial is open, the others are leaves of a FlatFAT: a window is the join of the
leaves from its begin on, and of the open partial. So each window is answered when the stream passes its end, and its
answer waits for the watermark.

    order       in order only
    windows     periodic windows of time
    aggregates  those with a partial of fixed size
    time        1 combine per event, log2(n) per slice; about log2(n) per window, n windows being open
    space       2 n partials: a leaf for each begin of an open window, and the tree above them
    paper       Carbone, Traub, Katsifodimos, Haridi and Markl, Cutty: aggregate sharing for user-defined
                windows, CIKM 2016
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.techniques.base import Method, Technique
from benchmarks.techniques.due import first_at
from benchmarks.techniques.flat_fat import between
from benchmarks.techniques.pairs_plus import fold_run
from benchmarks.techniques.partials import Cells, events
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.slice_tree import SliceTree, append, rows_of
from benchmarks.techniques.wheeled import NO_KEYS
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import run_end
from windrow.engine.aligned.edges import Edges
from windrow.engine.windows import first_ending_after
from windrow.measure import Tick
from windrow.planner.window_set import fuse
from windrow.stores.operations import combine, load, put


@jit
def soonest(every, offset, whole, rest, number):
    """The first end among the windows with these numbers."""
    found = offset[0] + (number[0] + whole[0]) * every[0] + rest[0]
    for i in range(1, every.shape[0]):
        found = min(found, offset[i] + (number[i] + whole[i]) * every[i] + rest[i])
    return found


@jit
def count_ended(every, offset, whole, rest, number, last, t):
    """How many windows end up to `t` and hold the last event."""
    count = 0
    for i in range(every.shape[0]):
        k = number[i]
        while offset[i] + k * every[i] <= last and offset[i] + (k + whole[i]) * every[i] + rest[i] <= t:
            count += 1
            k += 1
    return count


def pass_ends(
    every, offset, whole, rest, number, last, t, cells, clock, stride, keys, capacity, front, end, current,
    made, window, cell, out,
):  # fmt: skip
    """Answer all windows that end up to `t`; how many answers there are then, and how many combines it took.

    number: of each placement, the first window that has not ended. last: the time of the last event.
    """
    combines = 0
    for i in range(every.shape[0]):
        k = number[i]
        while offset[i] + (k + whole[i]) * every[i] + rest[i] <= t:
            start = offset[i] + k * every[i]
            if start > last:
                # No event can be in this one, nor in others before `t`.
                k = max(k, first_ending_after(t, every[i], offset[i], whole[i], rest[i]))
                break
            leaf = first_at(clock, 0, capacity - 1, front, end, start)
            for key in range(keys):
                found = False
                total = load(current, key)
                if leaf < end:
                    found, total, joins = between(cells, key, stride, capacity, leaf, end)
                    combines += joins
                if events(current, key) > 0:
                    if found:
                        total = combine(total, load(current, key))
                        combines += 1
                    else:
                        total = load(current, key)
                        found = True
                if found:
                    window[0, made] = i
                    window[1, made] = k
                    cell[made] = key
                    put(out, made, total)
                    made += 1
            k += 1
        number[i] = k
    return made, combines


def cut_at_begins(
    inputs, times, keys, begin, edges, every, offset, whole, rest, number, moments, cells, clock, stride,
    count, capacity, front, end, current, held, made, window, cell, out,
):  # fmt: skip
    """Fold events into slices that begin at edges, and answer windows on the way, as far as there is room.

    moments: the time of the last event, of the first one of the current slice, and the begin that comes next.
    Returns the next event, the number of leaves, of answers, and of combines.
    """
    combines = 0
    p = 0
    e = begin
    while e < times.shape[0]:
        t = times[e]
        ending = soonest(every, offset, whole, rest, number)
        if t >= ending:
            ended = count_ended(every, offset, whole, rest, number, moments[0], t)
            if made + ended * count > cell.shape[0]:
                break
            made, joins = pass_ends(
                every, offset, whole, rest, number, moments[0], t, cells, clock, stride, count, capacity,
                front, end, current, made, window, cell, out,
            )  # fmt: skip
            combines += joins
            ending = soonest(every, offset, whole, rest, number)
        if t >= moments[2]:
            filled = False
            for key in range(count):
                filled = filled or held[key] > 0
            if filled and end - front == capacity:
                break
            if filled:
                clock[end & (capacity - 1)] = moments[1]
                combines += append(cells, current, held, stride, count, capacity, end)
                end += 1
            while edges[p + 1] <= t:
                p += 1
            moments[1] = t
            moments[2] = edges[p + 1]
        stop = run_end(times, e, min(ending, moments[2]))
        combines += fold_run(inputs, keys, e, stop, current)
        moments[0] = times[stop - 1]
        e = stop
    return e, end, made, combines


class _Answers:
    """Answers that wait: placement and number of each window, its key, its partial."""

    def __init__(self, method: Method, room: int) -> None:
        self.window = np.zeros((2, room), np.int64)
        self.key = np.zeros(room, np.int64)
        self.cells = method.partials.cells(room)
        self.made = 0

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray, Cells]:
        return self.window, self.key, self.cells


class _Cutty(Method):
    in_order = True

    def prepare(self) -> None:
        w = self.windows
        self._tree = SliceTree(self)
        periods, phases, rests = fuse(w.every, w.offset, np.zeros_like(w.rest))
        self._begins = Edges(replace(w, periods=periods, phases=phases, rests=rests))
        self._number = np.zeros(len(w.every), np.int64)
        self._moments = np.array([self.lowest - 1] * 3, self.measure.dtype)
        self._answers = _Answers(self, 1024)
        self._placed = (w.every, w.offset, w.whole, w.rest, self._number)

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        tree = self._tree
        low, high = times[0].item(), times[-1].item()
        if self.highest_time is None:
            self._number[:] = self._first_ending_after(low)
        edges = self._begins.enclosing(times, low, high, self.clamp(self.highest))
        tree.make_room(0)
        numbers = NO_KEYS if keys is None else keys
        run = self.partials.loop(cut_at_begins)
        done = 0
        while True:
            answers = self._answers
            shape = (tree.stride, max(1, self.keys.count), tree.capacity, tree.front, tree.end)
            done, tree.end, answers.made, combines = run(
                inputs,
                times,
                numbers,
                done,
                edges,
                *self._placed,
                self._moments,
                tree.cells,
                tree.clock,
                *shape,
                tree.current,
                tree.held,
                answers.made,
                *answers.columns,
            )
            self.combines += int(combines)
            if done == len(times):
                break
            self._forget()
            if 2 * len(tree) > tree.capacity:
                tree.make_room(tree.capacity)
            self._make_room_for_answers(times[done])
        self._forget()

    def _first_ending_after(self, point: Tick) -> np.ndarray:
        w = self.windows
        number = np.floor_divide(point - w.offset - w.rest, w.every).astype(np.int64) - w.whole + 1
        for _ in range(2 if self.measure.floating else 0):
            number += w.ends(number) <= point
            number -= w.ends(number - 1) > point
        return number

    def _make_room_for_answers(self, t: Tick) -> None:
        old = self._answers
        ended = count_ended(*self._placed, self._moments[0], self._moments.dtype.type(t))
        new = _Answers(self, 2 * (old.made + ended * max(1, self.keys.count)))
        new.made = old.made
        for column, had in zip((new.key, *new.cells), (old.key, *old.cells), strict=True):
            column[: old.made] = had[: old.made]
        new.window[:, : old.made] = old.window[:, : old.made]
        self._answers = new

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        if self.highest_time is None:
            return
        self._pass(watermark)
        w, answers = self.windows, self._answers
        placement, number = answers.window[:, : answers.made]
        start = w.offset[placement] + number * w.every[placement]
        end = w.offset[placement] + (number + w.whole[placement]) * w.every[placement] + w.rest[placement]
        there = np.flatnonzero(end <= until)
        given = Rows(
            w.owner[placement[there]],
            start[there],
            end[there],
            answers.key[there],
            rows_of(answers.cells, there),
        )
        rest = np.flatnonzero(end > until)
        for column in (answers.key, *answers.cells):
            column[: len(rest)] = column[rest]
        answers.window[:, : len(rest)] = answers.window[:, rest]
        answers.made = len(rest)
        yield given

    def _pass(self, watermark: Tick) -> None:
        """Answer the windows that the watermark has passed, as an event would."""
        tree = self._tree
        self._make_room_for_answers(watermark)
        answers = self._answers
        run = self.partials.loop(pass_ends)
        answers.made, combines = run(
            *self._placed,
            self._moments[0],
            self._moments.dtype.type(watermark),
            tree.cells,
            tree.clock,
            tree.stride,
            max(1, self.keys.count),
            tree.capacity,
            tree.front,
            tree.end,
            tree.current,
            answers.made,
            *answers.columns,
        )
        self.combines += int(combines)

    def _forget(self) -> None:
        """Evict the leaves before the first open window, and the current slice if none begins at or before it."""
        begin = self.windows.starts(self._number).min()
        self._tree.queues.evict(begin)
        if self._moments[1] < begin:
            self._tree.held[:] = 0

    def let_go(self, horizon: Tick) -> None:
        if self.highest_time is not None:
            self._forget()

    def widen(self) -> None:
        self._tree.widen()
        self._answers.cells = self.partials.split_counts(self._answers.cells)

    def recode(self, column: str, moved: np.ndarray) -> None:
        self._tree.recode(column, moved)
        self.partials.recode(self._answers.cells, column, moved)

    def live(self) -> tuple[int, int]:
        return self._tree.partials, 0


class Cutty(Technique):
    """See the module."""

    method = _Cutty
    no_sessions = "its slices begin at the same instants for all keys, and each key has sessions of its own"
