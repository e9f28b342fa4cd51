"""Each store by itself, against a list: what it answers, what that costs, and what its card says."""

from __future__ import annotations

import math
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import PlainQueue

from windrow.stores import STORES
from windrow.stores.base import Store

INVERTIBLE_TOO = [store for store in STORES.values() if store.needs != "selection"]
SELECTING = [store for store in STORES.values() if store.needs != "inverse"]
# Combines per slide of a full queue of n partials, each with an answer: amortised, and at worst.
COSTS = {
    "lazy": (lambda n: n - 1, lambda n: n - 1),
    "subtract_on_evict": (lambda n: 1, lambda n: 1),
    "slick_deque_inverse": (lambda n: 1, lambda n: 1),
    "slick_deque": (lambda n: 2, lambda n: n),
    "two_stacks": (lambda n: 3, lambda n: n + 2),
    "two_stacks_lite": (lambda n: 3, lambda n: n + 2),
    "daba": (lambda n: 8, lambda n: 8),
    "daba_lite": (lambda n: 6, lambda n: 6),
    "flat_fat": (lambda n: 4 * math.log2(n), lambda n: 4 * math.log2(n)),
    "flat_fit": (lambda n: 3, lambda n: n),
}


def named(stores):
    return pytest.mark.parametrize("store", stores, ids=[store.name for store in stores])


def texts(store: Store, capacity: int) -> PlainQueue:
    """A queue whose partials are strings: no other combine tells more of the order."""
    return PlainQueue(store, capacity, "", lambda a, b: a + b, lambda a, b: a[len(b) :])


@named(INVERTIBLE_TOO)
@given(st.integers(1, 9), st.lists(st.sampled_from(["insert", "insert", "evict", "query"]), max_size=120))
def test_a_queue_answers_with_all_that_it_holds_in_order(store, capacity, steps):
    queue, model = texts(store, capacity), []
    for number, step in enumerate(steps):
        if step == "insert" and len(model) < capacity:
            queue.insert(chr(ord("a") + number % 26))
            model.append(chr(ord("a") + number % 26))
        elif step == "evict" and model:
            queue.evict()
            model.pop(0)
        else:
            assert queue.query() == "".join(model)
    assert queue.query() == "".join(model)


@named(INVERTIBLE_TOO)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_a_full_window_slides_on_for_many_rounds(store, size):
    queue, stream = texts(store, size), "".join(chr(ord("a") + i % 26) for i in range(150))
    for i, letter in enumerate(stream):
        if i >= size:
            queue.evict()
        queue.insert(letter)
        assert queue.query() == stream[max(0, i + 1 - size) : i + 1]


@named(SELECTING)
@given(st.integers(1, 9), st.lists(st.none() | st.integers(0, 3), max_size=80))
def test_the_largest_is_found_among_many_that_are_equal(store, capacity, steps):
    queue, model = PlainQueue(store, capacity, -1, max), []
    for value in steps:
        if model and (value is None or len(model) == capacity):
            queue.evict()
            model.pop(0)
        if value is not None:
            queue.insert(value)
            model.append(value)
        assert queue.query() == max(model, default=-1)


@named(SELECTING)
def test_of_equals_the_first_can_be_told_from_the_second(store):
    """Partials are (value, number), and combine prefers the earlier one."""
    queue = PlainQueue(store, 4, (-1, -1), lambda a, b: b if b[0] > a[0] else a)
    for number, value in enumerate([2, 2, 1, 2]):
        queue.insert((value, number))
    assert queue.query() == (2, 0)
    queue.evict()
    assert queue.query() == (2, 1)
    queue.evict()
    assert queue.query() == (2, 3)


@named([store for store in STORES.values() if store.name in COSTS])
@pytest.mark.parametrize("size", [16, 64])
@pytest.mark.parametrize("values", ["rising", "falling", "mixed"])
def test_a_slide_costs_no_more_combines_than_the_card_says(store, size, values):
    queue = PlainQueue(store, size, -(10**9), max, lambda a, b: a)
    rounds = 12 * size
    number = {"rising": lambda i: i, "falling": lambda i: -i, "mixed": lambda i: i * 7919 % 101}[values]
    for i in range(size):
        queue.insert(number(i))
    amortised, worst = COSTS[store.name]
    before = queue.combines
    for i in range(rounds):
        began = queue.combines
        queue.evict()
        queue.insert(number(size + i))
        queue.query()
        assert queue.combines - began <= worst(size)
    assert queue.combines - before <= amortised(size) * rounds + size


@named(list(STORES.values()))
def test_the_module_of_a_store_is_its_card(store):
    card = import_module(f"windrow.stores.{store.name}").__doc__
    assert card is not None
    for line in ("order", "needs", "time", "space", "paper"):
        assert f"\n    {line}" in card, f"the card of {store.name} does not say: {line}"


def test_stores_are_known_by_their_names():
    assert all(name == store.name for name, store in STORES.items())
