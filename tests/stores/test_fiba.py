"""FiBA against a sorted list, with a combine for which order matters: 2x2 matrices modulo a prime."""

from __future__ import annotations

import bisect
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.compiling.compiler import bound
from windrow.stores import fiba, operations
from windrow.stores.fiba import layout
from windrow.stores.fiba.layout import (
    CHILDREN,
    END,
    FIRST,
    HEIGHT,
    LEFT,
    LEVEL,
    MAXIMUM,
    MINIMUM,
    RIGHT,
    TIMES,
)

PRIME = 10_007
ONE = (1, 0, 0, 1)


def multiply(a, b):
    return (
        (a[0] * b[0] + a[1] * b[2]) % PRIME,
        (a[0] * b[1] + a[1] * b[3]) % PRIME,
        (a[2] * b[0] + a[3] * b[2]) % PRIME,
        (a[2] * b[1] + a[3] * b[3]) % PRIME,
    )


def load(cells, i):
    return tuple(int(column[i]) for column in cells)


def put(cells, i, partial):
    for column, number in zip(cells, partial, strict=True):
        column[i] = number


GIVEN = {operations.combine: multiply, operations.load: load, operations.put: put}
NAMES = ("insert", "place", "evict", "evict_until", "query")
TREE = SimpleNamespace(**{name: bound(getattr(fiba, name), GIVEN) for name in NAMES})


def product(partials):
    total = ONE
    for partial in partials:
        total = multiply(total, partial)
    return total


def matrix(seed):
    """A matrix of its own for each seed."""
    return (1 + seed % 91, 1 + seed % 89, seed % 83, 1 + seed % 97)


class Pair:
    """The tree and the sorted list that it must agree with."""

    def __init__(self, capacity=2000):
        self.cells = tuple(np.full(layout.cells(capacity), -1, np.int64) for _ in ONE)
        self.notes = np.zeros(layout.notes(capacity), np.int64)
        self.state = fiba.create(capacity, ONE)
        self.times = []
        self.partials = {}
        self.seeds = itertools.count(1)

    def _note(self, time):
        partial = matrix(next(self.seeds) * 7919)
        if time in self.partials:
            self.partials[time] = multiply(self.partials[time], partial)
        else:
            bisect.insort(self.times, time)
            self.partials[time] = partial
        return partial

    def place(self, time):
        self.state = TREE.place(self.state, self.cells, self.notes, time, self._note(time))

    def insert(self):
        self.state = TREE.insert(self.state, self.cells, self.notes, self._note(int(self.state[0])))

    def place_all(self, times):
        for time in times:
            self.place(time)

    def evict(self):
        if self.times:
            self.state = TREE.evict(self.state, self.cells, self.notes)
            del self.partials[self.times.pop(0)]

    def evict_until(self, time):
        self.state = TREE.evict_until(self.state, self.cells, self.notes, time)
        gone = bisect.bisect_left(self.times, time)
        for old in self.times[:gone]:
            del self.partials[old]
        del self.times[:gone]

    def grow(self, capacity):
        self.cells, self.notes = fiba.grow(self.cells, self.notes, capacity)

    def check(self):
        assert TREE.query(self.state, self.cells, self.notes) == self.expected(self.times)
        check_tree(self)

    def expected(self, times):
        return product(self.partials[t] for t in times)


def check_tree(pair):
    """Order, arity, fingers and free nodes; and that each stored total is the product of what it covers."""
    notes, cells = pair.notes, pair.cells
    height = int(notes[HEIGHT])
    seen = []

    def part(node, name):
        return int(notes[layout.at(node) + name])

    def walk(node, level, low, high):
        """The entries below a node, all with `low <= time < high`."""
        seen.append(node)
        on_left, on_right = node == notes[LEFT + level], node == notes[RIGHT + level]
        first, end = part(node, FIRST), part(node, END)
        assert 0 <= first <= end <= MAXIMUM
        assert part(node, LEVEL) == level
        if level < height:
            assert end - first >= (1 if on_left else MINIMUM)
        elif level > 0:
            assert end - first >= 2
        times = [part(node, TIMES + i) for i in range(first, end)]
        if level == 0:
            assert times == sorted(set(times))
            assert all(low <= t < high for t in times)
            assert [load(cells, layout.cell(node) + i) for i in range(first, end)] == [
                pair.partials[t] for t in times
            ]
            return times
        if on_left:
            times[0] = low
        bounds = [*times, high]
        assert bounds == sorted(set(bounds))
        assert low <= times[0]
        entries = []
        for i, slot in enumerate(range(first, end)):
            child = part(node, CHILDREN + slot)
            below = walk(child, level - 1, bounds[i], bounds[i + 1])
            assert (child == notes[LEFT + level - 1]) == (on_left and slot == first)
            assert (child == notes[RIGHT + level - 1]) == (on_right and slot == end - 1)
            if child not in (notes[LEFT + level - 1], notes[RIGHT + level - 1]):
                assert load(cells, layout.cell(node) + slot) == pair.expected(below)
            entries += below
        sizes[level, node] = (entries, part(node, CHILDREN + first), part(node, CHILDREN + end - 1))
        return entries

    sizes = {}
    root = int(notes[RIGHT + height])
    assert notes[LEFT + height] == root
    assert walk(root, height, -(10**9), 10**9) == pair.times
    check_totals(pair, height, sizes)
    check_free_nodes(notes, seen)


def check_totals(pair, height, inner):
    notes, cells = pair.notes, pair.cells

    def entries(level, node):
        if level > 0:
            return inner[level, node][0]
        base = layout.at(node)
        return [int(t) for t in notes[base + TIMES + notes[base + FIRST] : base + TIMES + notes[base + END]]]

    right_entries = len(entries(height - 1, notes[RIGHT + height - 1])) if height else 0
    for level in range(height, 0, -1):
        # What the left total of a level covers: all between its first child and the right spine.
        first = len(entries(level - 1, notes[LEFT + level - 1]))
        covered = pair.times[first : len(pair.times) - right_entries]
        assert load(cells, layout.LEFT_TOTALS + level) == pair.expected(covered)
    for level in range(height - 1, 0, -1):
        last = len(entries(level - 1, notes[RIGHT + level - 1]))
        covered = pair.times[len(pair.times) - right_entries : len(pair.times) - last]
        assert load(cells, layout.RIGHT_TOTALS + level) == pair.expected(covered)
    _, head, middle, last, identity = pair.state
    assert identity == ONE
    at_end = len(entries(0, notes[RIGHT]))
    assert last == pair.expected(pair.times[len(pair.times) - at_end :])
    if height == 0:
        assert head == middle == ONE
        return
    base = layout.at(notes[LEFT])
    for i, slot in enumerate(range(notes[base + FIRST], notes[base + END])):
        assert load(cells, layout.FRONT + slot) == pair.expected(
            pair.times[i : len(pair.times) - right_entries]
        )
    assert head == pair.expected(pair.times[: len(pair.times) - right_entries])
    assert middle == pair.expected(pair.times[len(pair.times) - right_entries : len(pair.times) - at_end])


def check_free_nodes(notes, live):
    """Every node that was ever used is in the tree or free, and only once."""
    free = []

    def collect(node):
        free.append(int(node))
        base = layout.at(node)
        if notes[base + LEVEL] > 0:
            for i in range(notes[base + FIRST], notes[base + END]):
                collect(notes[base + CHILDREN + i])

    for head, count in ((layout.FREE, layout.FREE_COUNT), (layout.CLOSED, layout.CLOSED_COUNT)):
        node = notes[head]
        for _ in range(notes[count]):
            collect(node)
            node = notes[layout.at(node) + layout.NEXT]
    assert sorted([*live, *free]) == list(range(notes[layout.USED] + 1))


TIME = st.integers(-400, 400)
STEPS = st.one_of(
    st.tuples(st.just("place"), TIME),
    st.tuples(st.just("insert")),
    st.tuples(st.just("evict")),
    st.tuples(st.just("evict_until"), TIME),
    st.tuples(st.just("place_all"), st.lists(TIME, max_size=60).map(sorted)),
    st.tuples(
        st.just("place_all"),
        st.builds(range, TIME, st.integers(-400, 1200), st.integers(1, 5)).map(list),
    ),
)


@given(st.lists(STEPS, max_size=25))
def test_any_steps_leave_a_sound_tree_that_agrees_with_a_sorted_list(steps):
    pair = Pair()
    for name, *arguments in steps:
        getattr(pair, name)(*arguments)
        pair.check()


WORST = {
    "in order": list(range(600)),
    "strictly backwards": list(range(600, 0, -1)),
    "all equal": [7] * 600,
    "alternating ends": [i if i % 2 else -i for i in range(600)],
    "always in the middle": [i // 2 if i % 2 else 1000 - i // 2 for i in range(600)],
    "one entry": [3],
}


@pytest.mark.parametrize("times", WORST.values(), ids=WORST)
def test_worst_orders_of_arrival_leave_a_sound_tree(times):
    pair = Pair()
    for i, time in enumerate(times):
        pair.place(time)
        if i % 20 == 0:
            pair.check()
    pair.check()
    while pair.times:
        pair.evict()
        if len(pair.times) % 20 == 0:
            pair.check()
    pair.check()


@pytest.mark.parametrize("kept", [0, 1, 2, 300, 599, 600])
def test_evicting_many_at_once_keeps_exactly_what_is_not_before_the_time(kept):
    pair = Pair()
    pair.place_all(list(range(600)))
    pair.evict_until(600 - kept)
    assert len(pair.times) == kept
    pair.check()
    pair.place_all(list(range(300, 900)))
    pair.check()


def test_an_entry_of_a_time_that_exists_is_combined_after_it():
    pair = Pair()
    pair.place_all([1, 1, 2])
    pair.place(1)
    assert pair.times == [1, 2]
    pair.check()


def test_a_tree_without_room_takes_what_fits_and_the_rest_after_it_has_grown():
    pair = Pair(capacity=100)
    capacity = 100
    for time in range(1000):
        if not fiba.has_room(pair.notes, pair.notes[HEIGHT] + 2):
            capacity *= 2
            pair.grow(capacity)
        pair.place(time)
    assert capacity > 100
    pair.check()


def test_nodes_of_a_full_window_are_used_again():
    pair = Pair(capacity=200)
    for _ in range(2000):
        if len(pair.times) == 200:
            pair.evict()
        pair.insert()
    assert pair.notes[layout.USED] < layout.nodes(200)
    pair.check()


def test_subtrees_evicted_at_once_are_used_again():
    pair = Pair(capacity=600)
    for begin in range(0, 6000, 500):
        pair.evict_until(begin)
        pair.place_all(list(range(begin, begin + 500)))
    assert pair.notes[layout.USED] < layout.nodes(600)
    pair.check()
