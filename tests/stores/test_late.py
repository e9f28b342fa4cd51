"""Late events in SBA and PBA, on one thread and on two, against a list of slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import int64

import windrow as wr
from windrow.engine.stored import compiled, operations_of
from windrow.rolling.loops import slide_by_one
from windrow.rolling.parallel import beside
from windrow.stores.late import reach, revise, widen
from windrow.stores.pba import PBA
from windrow.stores.sba import SBA

GIVEN = operations_of(wr.sum("x").bind((int64(),)))
STEPS = st.lists(st.tuples(st.integers(1, 9), st.lists(st.integers(0, 99), max_size=3)), max_size=12)


class Slices:
    """A window over slices of one event each, and then of more, as they come late."""

    def __init__(self, store, size):
        self.size, self.held = size, 0
        self.cells = GIVEN.cells(store.cells(size))
        self.state = store.create(size, GIVEN.identity)
        self.run = compiled(slide_by_one, store, GIVEN)
        self.second = beside(store, GIVEN, size, careful=False)
        self.revise, self.widen = (compiled(loop, store, GIVEN) for loop in (revise, widen))

    def slide(self, values):
        out = GIVEN.cells(len(values))
        run = self.run if self.second is None else self._beside
        arguments = (np.array(values),), len(values), self.size, self.held, self.state, self.cells
        self.state, self.held, made = run(*arguments, np.zeros(0, np.int64), out)
        return out[0][:made].tolist()

    def _beside(self, *arguments):
        return self.second.slide_beside(self.run, *arguments)

    def late(self, ago, value):
        partial = np.int64(value), np.int64(value >> 63)
        if self.second is None:
            self.widen(self.cells, *reach(self.state, ago), partial)
            self.state = self.revise(self.state, ago, partial)
        else:
            self.state = self.second.revise(self.state, self.cells, ago, partial)


@pytest.mark.parametrize("store", [SBA, PBA], ids=["sba", "pba"])
@settings(max_examples=40)
@given(size=st.integers(1, 14), steps=STEPS)
def test_a_late_event_is_in_all_windows_that_hold_its_slice_from_then_on(store, size, steps):
    slices, model = Slices(store, size), []
    for rows, agos in steps:
        values = [len(model) + i + 1 for i in range(rows)]
        found = slices.slide(values)
        begin = len(model)
        model += values
        ends = range(max(begin + 1, size), len(model) + 1)
        assert found == [sum(model[end - size : end]) for end in ends]
        for ago in agos:
            ago %= min(size, len(model))
            model[-1 - ago] += 1000
            slices.late(ago, 1000)
