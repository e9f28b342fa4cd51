"""SBA and PBA step by step, with a combine for which order matters, and with every combine counted."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.compiling.compiler import bound
from windrow.stores import operations
from windrow.stores.chunks import chunk_of_rows
from windrow.stores.pba import PBA, owed, relieved, until_asked
from windrow.stores.sba import SBA, accumulate_left

BOTH = pytest.mark.parametrize("store", [SBA, PBA], ids=["sba", "pba"])


class Text:
    """A store over words: combining is writing one behind the other, so that any mistake can be read."""

    def __init__(self, store, capacity, *, is_helped=False):
        self.combines = 0
        self._is_helped = is_helped

        def combine(a, b):
            self.combines += 1
            return a + b

        def load(cells, i):
            return cells[i]

        def put(cells, i, partial):
            cells[i] = partial

        given_ = {operations.combine: combine, operations.load: load, operations.put: put}
        self._insert, self._evict, self._query = (
            bound(f, given_) for f in (store.insert, store.evict, store.query)
        )
        self._accumulate = bound(accumulate_left, given_)
        self.cells = [None] * store.cells(capacity)
        self.state = store.create(capacity, "")
        self.notes = [0] * store.notes(capacity)
        self.handed, self.collected = [], []

    def insert(self, word):
        self.state = self._insert(self.state, self.cells, self.notes, word)
        chunk = owed(self.state)
        if self._is_helped and chunk is not None and len(self.handed) == len(self.collected):
            before = self.combines  # what a helper combines is not counted
            self._accumulate(self.cells, *chunk)
            self.combines = before
            self.handed.append(chunk[2])

    def evict(self):
        if len(self.handed) > len(self.collected) and until_asked(self.state) == 0:
            self.state = relieved(self.state)
            self.collected.append(self.state[5])
        self.state = self._evict(self.state, self.cells, self.notes)

    def query(self):
        return self._query(self.state, self.cells, self.notes)


def letter(i):
    return chr(ord("a") + i % 26)


def check_any_order(words, capacity, steps):
    """Each step inserts a letter where there is room, or evicts one; what is asked is what a queue holds."""
    queue = deque()
    for i, grows in enumerate(steps):
        if grows and len(queue) < capacity:
            queue.append(letter(i))
            words.insert(letter(i))
        elif queue:
            queue.popleft()
            words.evict()
        assert words.query() == "".join(queue)


@BOTH
@given(capacity=st.integers(1, 20), steps=st.lists(st.booleans(), max_size=120))
def test_any_order_of_inserts_and_evicts_gives_what_the_queue_holds(store, capacity, steps):
    check_any_order(Text(store, capacity), capacity, steps)


@BOTH
@given(size=st.integers(1, 40))
def test_windows_that_slide_have_their_letters_in_order(store, size):
    words = Text(store, size)
    stream = [letter(i) for i in range(5 * size)]
    for i, word in enumerate(stream):
        if i >= size:
            words.evict()
        words.insert(word)
        assert words.query() == "".join(stream[max(0, i + 1 - size) : i + 1])


@given(size=st.integers(1, 60))
def test_sba_combines_three_times_per_slide_and_more_only_at_a_boundary(size):
    words, chunk = Text(SBA, size), chunk_of_rows(size)
    for i in range(6 * size):
        if i >= size:
            words.evict()
        words.combines = 0
        words.insert(letter(i))
        at_boundary = (i + 1) % chunk == 0
        words.query()
        assert words.combines <= 3 + at_boundary * (chunk - 1)


@given(capacity=st.integers(1, 20), steps=st.lists(st.booleans(), max_size=120))
def test_any_order_of_inserts_and_evicts_does_where_chunks_are_handed_over(capacity, steps):
    check_any_order(Text(PBA, capacity, is_helped=True), capacity, steps)


@given(size=st.integers(1, 60))
def test_pba_never_combines_more_than_three_times_per_slide_when_chunks_are_handed_over(size):
    words = Text(PBA, size, is_helped=True)
    for i in range(6 * size):
        before = words.combines
        if i >= size:
            words.evict()
        words.insert(letter(i))
        words.query()
        if i >= size:
            assert words.combines - before <= 3


@given(size=st.integers(3, 60))
def test_a_chunk_is_not_collected_before_nearly_a_chunk_has_passed(size):
    words, chunk = Text(PBA, size, is_helped=True), chunk_of_rows(size)
    for i in range(6 * size):
        if i >= size:
            words.evict()
        words.insert(letter(i))
    assert len(words.handed) >= 2
    for handed, collected in zip(words.handed, words.collected, strict=False):
        assert collected - handed >= chunk - 4
