"""The events of many keys in order of key, time and arrival; cheap where they nearly are."""

from __future__ import annotations

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.arrays import follow_one_another

# Segments of no more rows are sorted by insertion.
FEW_ROWS = 32


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


@jit
def few_by_key(numbers):  # type: ignore[no-untyped-def]
    """As `counting_order`, of few rows: the order, the keys that there are, and where the rows of each begin."""
    order = np.argsort(numbers, kind="mergesort")
    keys = np.empty(numbers.shape[0], np.int64)
    bounds = np.empty(numbers.shape[0] + 1, np.int64)
    count = 0
    for i in range(order.shape[0]):
        if i == 0 or numbers[order[i]] != numbers[order[i - 1]]:
            keys[count], bounds[count] = numbers[order[i]], i
            count += 1
    bounds[count] = order.shape[0]
    return order, keys[:count].copy(), bounds[: count + 1].copy()


def by_key_and_time(
    times: np.ndarray, numbers: np.ndarray | None, keys: int, *, ordered: bool
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """(order, segment keys, segment bounds) of events in order of arrival; order None: as they are."""
    count = len(times)
    if numbers is None:
        return None if ordered else time_order(times), np.zeros(1, np.int64), np.array([0, count])
    if count == 1:
        return None, numbers, np.array([0, 1])
    if keys <= 8 * count:
        order, bounds = counting_order(numbers, keys)
        present = np.flatnonzero(bounds[1:] != bounds[:-1])
        bounds = np.append(bounds[present], count)
    else:
        order, present, bounds = few_by_key(numbers)
    if not ordered:
        sort_segments(times, order, bounds)
    return None if len(present) == 1 and follow_one_another(order) else order, present, bounds
