"""Cutting the events of many keys: sorted by key and time, then into slices at whatever separates them.

time     1   2     5       7 8   9        one key; gap 2, a fixed edge at 8
slices  |-----|   |-|     |-|  |----|
           gap       gap     edge
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.engine.arrays import different
from windrow.engine.cache import jit

# Segments of up to so many rows are sorted by insertion.
FEW_ROWS = 32


@dataclass
class Pieces:
    """Events low[i] .. high[i]-1 of a sorted batch, all of one key, which nothing separates."""

    low: np.ndarray
    high: np.ndarray
    segment: np.ndarray
    edge: np.ndarray


@jit
def counting_order(numbers, keys):  # type: ignore[no-untyped-def]
    """The stable order of rows by key number, and where the rows of each key begin (keys + 1 entries)."""
    bounds = np.zeros(keys + 1, np.int64)
    for i in range(numbers.shape[0]):
        bounds[numbers[i] + 1] += 1
    for k in range(keys):
        bounds[k + 1] += bounds[k]
    place = bounds[:-1].copy()
    order = np.empty(numbers.shape[0], np.int64)
    for i in range(numbers.shape[0]):
        k = numbers[i]
        order[place[k]] = i
        place[k] += 1
    return order, bounds


@jit
def sort_segments(times, order, bounds):  # type: ignore[no-untyped-def]
    """Sort the rows of each segment by time, in place and stably."""
    for s in range(bounds.shape[0] - 1):
        low, high = bounds[s], bounds[s + 1]
        fine = True
        for i in range(low + 1, high):
            if times[order[i]] < times[order[i - 1]]:
                fine = False
                break
        if fine:
            continue
        if high - low <= FEW_ROWS:
            for i in range(low + 1, high):
                row = order[i]
                t = times[row]
                j = i
                while j > low and times[order[j - 1]] > t:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = row
        else:
            stamps = np.empty(high - low, times.dtype)
            for i in range(low, high):
                stamps[i - low] = times[order[i]]
            order[low:high] = order[low:high][np.argsort(stamps, kind="mergesort")]


@jit
def split_late(times, line, late, late_times):  # type: ignore[no-untyped-def]
    """Rows that are no earlier than all before them to `line`, the others to `late`; how many of each."""
    ahead = 0
    behind = 0
    highest = times[0]
    for i in range(times.shape[0]):
        t = times[i]
        if t >= highest:
            line[ahead] = i
            ahead += 1
            highest = t
        else:
            late[behind] = i
            late_times[behind] = t
            behind += 1
    return ahead, behind


@jit
def merge_late(times, line, late, late_times, order):  # type: ignore[no-untyped-def]
    """Rows in line and late rows, both in order, as one; among equal times the lower row goes first."""
    i = 0
    r = 0
    for j in range(late.shape[0]):
        t, row = late_times[j], late[j]
        while i < line.shape[0] and (times[line[i]] < t or (times[line[i]] == t and line[i] < row)):
            order[r] = line[i]
            r += 1
            i += 1
        order[r] = row
        r += 1
    while i < line.shape[0]:
        order[r] = line[i]
        r += 1
        i += 1


def time_order(times: np.ndarray) -> np.ndarray:
    """The stable order of times, cheap where most are in order already: only late ones are sorted."""
    line, late = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    late_times = np.empty(len(times), times.dtype)
    ahead, behind = split_late(times, line, late, late_times)
    late, late_times = late[:behind], late_times[:behind]
    if behind:
        bits = behind.bit_length()
        base = late_times.min()
        if times.dtype.kind == "i" and int(late_times.max()) - int(base) < 1 << (62 - bits):
            # Time and place in one number: one plain sort, which is stable and fast.
            packed = np.sort(((late_times - base) << bits) | np.arange(behind))
            late, late_times = late[packed & ((1 << bits) - 1)], (packed >> bits) + base
        else:
            place = np.argsort(late_times, kind="stable")
            late, late_times = late[place], late_times[place]
    order = np.empty(len(times), np.int64)
    merge_late(times, line[:ahead], late, late_times, order)
    return order


def by_key_and_time(
    times: np.ndarray, numbers: np.ndarray | None, keys: int, *, ordered: bool
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """(order, segment keys, segment bounds) of events in order of arrival; order None: as they are."""
    count = len(times)
    if numbers is None:
        return None if ordered else time_order(times), np.zeros(1, np.int64), np.array([0, count])
    if keys <= 8 * count:
        order, bounds = counting_order(numbers, keys)
        present = np.flatnonzero(np.diff(bounds))
        bounds = np.append(bounds[present], count)
    else:
        order = np.argsort(numbers, kind="stable")
        sorted_numbers = numbers[order]
        begin = np.flatnonzero(np.diff(sorted_numbers, prepend=-1))
        present, bounds = sorted_numbers[begin].astype(np.int64), np.append(begin, count)
    if not ordered:
        sort_segments(times, order, bounds)
    return order, present, bounds


@jit
def cut_segments(  # type: ignore[no-untyped-def]
    times, bounds, edges, gap, reach, marks, pointwise, low, high, segment, edge
):
    """Cut sorted events at fixed edges, gaps and marks; how many pieces there are.

    times: sorted within each segment bounds[s] .. bounds[s+1]-1. edges: ascending, enclose all times.
    gap: the smallest gap of a session, -1 for none. reach: how far each event extends the sessions of
    each dynamic gap. marks are flags, and may be empty. Fills low, high, segment, edge.
    """
    count = 0
    furthest = np.empty(reach.shape[0], reach.dtype)
    for s in range(bounds.shape[0] - 1):
        begin, stop = bounds[s], bounds[s + 1]
        j = np.searchsorted(edges, times[begin], side="right") - 1
        for i in range(begin, stop):
            t = times[i]
            apart = i == begin
            if t >= edges[j + 1]:
                apart = True
                j += 1
                if edges[j + 1] <= t:
                    j += np.searchsorted(edges[j:], t, side="right") - 1
            if not apart:
                apart = (gap >= 0 and t > times[i - 1] + gap) or (pointwise and t != times[i - 1])
                if marks.shape[0] > 0:
                    apart = apart or marks[i] > 0
                for d in range(reach.shape[0]):
                    apart = apart or t > furthest[d]
            if apart:
                if i > begin:
                    high[count - 1] = i
                low[count] = i
                segment[count] = s
                edge[count] = edges[j]
                count += 1
                for d in range(reach.shape[0]):
                    furthest[d] = reach[d, i]
            else:
                for d in range(reach.shape[0]):
                    furthest[d] = max(furthest[d], reach[d, i])
        high[count - 1] = stop
    return count


def cut_sorted(
    times: np.ndarray,
    bounds: np.ndarray,
    edges: np.ndarray,
    gap: Any,
    reach: np.ndarray,
    marks: np.ndarray,
    pointwise: bool,
) -> Pieces:
    """See `cut_segments`; here `marks` are positions, ascending, at which a slice must begin."""
    if len(edges) == 2 and gap < 0 and not len(reach) and not pointwise:
        low = different(np.concatenate([bounds[:-1], marks]), len(times))
        segment = np.searchsorted(bounds, low, side="right") - 1
        return Pieces(low, np.append(low[1:], len(times)), segment, np.full(len(low), edges[0]))
    flags = np.zeros(len(times) if len(marks) else 0, np.uint8)
    flags[marks] = 1
    low, high, segment = (np.empty(len(times), np.int64) for _ in range(3))
    edge = np.empty(len(times), times.dtype)
    least = times.dtype.type(gap)
    found = (low, high, segment, edge)
    count = cut_segments(times, bounds, edges, least, reach, flags, pointwise, *found)
    return Pieces(*(column[:count].copy() for column in found))


@jit
def give_to_events(low, high, value, order, out):  # type: ignore[no-untyped-def]
    """out[order[i]] = value[p] for each event i of piece p."""
    for p in range(low.shape[0]):
        for i in range(low[p], high[p]):
            out[order[i]] = value[p]
