"""A small engine for tests of discretizers: it releases a stream in runs and checks what it is told.

    events     (key, time, values ..) in order of time and arrival
    cuts       after which event each run ends; ties may be torn apart

Every window must begin where the discretizer said that one may: at an anchor, in the tail, or in the
run itself. Times of earlier events are given out for the tail only.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windrow.engine.sequence import Run, discretizer_for
from windrow.measure import Measure


def schema_of(columns: dict[str, pa.DataType], measure: Measure) -> pa.Schema:
    return pa.schema([pa.field("t", measure.type), *(pa.field(n, t) for n, t in columns.items())])


def twin_of(discretizer):
    """The same, with a state of its own."""
    twin = copy.copy(discretizer)
    state = {
        name: copy.deepcopy(value) for name, value in vars(twin).items() if name in ("state", "open", "base")
    }
    vars(twin).update(state)
    return twin


class Engine:
    """One discretizer, fed event by event or all at once."""

    def __init__(self, window, measure, schema, keys, discretizer=None):
        self.measure = measure
        self.schema = schema
        self.discretizer = discretizer or discretizer_for(window, measure, schema, name="w")
        self.seen = np.zeros(keys, np.int64)
        self.times = [[] for _ in range(keys)]
        self.discretizer.grow(keys)
        self.found = []

    def copy(self):
        twin = Engine(None, self.measure, self.schema, 0, twin_of(self.discretizer))
        twin.seen, twin.times = self.seen.copy(), [list(t) for t in self.times]
        twin.found = list(self.found)
        return twin

    def tail_times(self, tail):
        def times(keys, ranks):
            assert tail is not None, "there is no tail"
            assert (ranks >= tail[keys]).all(), "a time from before the tail"
            assert (ranks < self.seen[keys]).all()
            pairs = zip(keys.tolist(), ranks.tolist(), strict=True)
            return np.array([self.times[k][r] for k, r in pairs], self.measure.dtype)

        return times

    def run_of(self, events):
        rows = sorted(range(len(events)), key=lambda i: events[i][0])
        keys = np.array([events[i][0] for i in rows], np.int64)
        columns = [[events[i][j + 1] for i in rows] for j in range(len(self.schema))]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        distinct, first = np.unique(keys, return_index=True)
        bounds = np.append(first, len(keys)).astype(np.int64)
        times = np.array(columns[0], self.measure.dtype)
        tail = self.discretizer.tail(self.seen)
        inputs = self.discretizer.inputs(batch, times)
        return Run(inputs, times, distinct, bounds, self.seen[distinct], self.tail_times(tail))

    def release(self, events, frontier):
        """Events in order of time and arrival: (key, time, values ..)."""
        run = self.run_of(events)
        may_begin = self.beginnings()
        known = self.seen.copy()
        windows = self.discretizer.release(run)
        self.accept(windows, may_begin, known, frontier=None)
        for key, time, *_ in events:
            self.seen[key] += 1
            self.times[key].append(time)
        self.accept(windows, None, None, frontier=None)
        self.expire(frontier)

    def expire(self, frontier):
        may_begin = self.beginnings()
        windows = self.discretizer.expire(frontier, self.seen)
        self.accept(windows, may_begin, self.seen, frontier)
        self.collect(windows)

    def accept(self, windows, may_begin, known, frontier):
        if may_begin is None:
            self.collect(windows)
            return
        anchors, tail = may_begin
        for key, begin in zip(windows.key.tolist(), windows.begin.tolist(), strict=True):
            inside = tail is not None and begin >= tail[key]
            assert (key, begin) in anchors or inside or begin >= known[key], "begins in the middle of a slice"
        if frontier is not None:
            assert (windows.finish <= frontier).all()

    def beginnings(self):
        keys, ranks = self.anchors()
        return set(zip(keys.tolist(), ranks.tolist(), strict=True)), self.discretizer.tail(self.seen)

    def collect(self, windows):
        assert (windows.end > windows.begin).all()
        for i in range(len(windows)):
            key, begin = int(windows.key[i]), int(windows.begin[i])
            start = self.times[key][begin] if windows.start is None else windows.start[i].item()
            self.found.append((key, begin, int(windows.end[i]), start, windows.finish[i].item()))

    def finish(self):
        last = np.array([t[-1] if t else 0 for t in self.times], self.measure.dtype)
        self.expire(np.inf if self.measure.floating else 2**63 - 1)
        self.collect(self.discretizer.close(self.seen, last, np.arange(len(self.seen))))
        keys, _ = self.anchors()
        assert len(keys) == 0
        return sorted(self.found)

    def anchors(self):
        keys = np.arange(len(self.seen))
        return self.discretizer.anchors_of(keys, np.zeros(len(keys), np.int64))


def discretized(window, measure, schema, events, cuts=()):
    """All windows of a stream (key, begin, end, start, finish), released in runs that end at `cuts`."""
    keys = max((e[0] for e in events), default=-1) + 1
    engine = Engine(window, measure, schema, keys)
    edges = [0, *sorted(set(cuts)), len(events)]
    for low, high in pairwise(edges):
        if low < high:
            engine.release(events[low:high], events[high - 1][1])
    return engine.finish()
