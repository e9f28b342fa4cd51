"""A queue of values, one at a time, in compiled code."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from store_queue import Queue

import windrow as wr
from windrow.errors import DataError, LimitError, QueryError

PRIME = 10007


def product(a, b):
    """Matrices of two rows and columns: the order of factors matters, their grouping does not."""
    return (
        (a[0] * b[0] + a[1] * b[2]) % PRIME,
        (a[0] * b[1] + a[1] * b[3]) % PRIME,
        (a[2] * b[0] + a[3] * b[2]) % PRIME,
        (a[2] * b[1] + a[3] * b[3]) % PRIME,
    )


def matrix(x):
    return x, 1, 1, 0


def digest(a):
    return a[0] + PRIME * (a[1] + PRIME * a[2])


CONTINUANT = wr.aggregate(
    lift=matrix, combine=product, lower=digest, identity=(1, 0, 0, 1), commutative=False, name="continuant"
)


@pytest.mark.parametrize("store", ["daba_lite", "flat_fat"])
def test_matrices_are_multiplied_in_the_order_in_which_they_came(store):
    queue = Queue(CONTINUANT, [pa.int64()], store=store, capacity=5)

    @examples(20)
    @given(st.lists(st.integers(0, 99) | st.none(), max_size=40))
    def check(steps):
        while len(queue):
            queue.evict()
        model = []
        for value in steps:
            if value is not None and len(model) < 5:
                queue.insert(value)
                model.append(value)
            elif model:
                queue.evict()
                model.pop(0)
            wanted = (1, 0, 0, 1)
            for held in model:
                wanted = product(wanted, matrix(held))
            assert queue.query() == (float(digest(wanted)) if model else None)

    check()


def test_an_empty_queue_has_nothing_to_evict():
    queue = Queue(wr.sum("x"), [pa.int64()], store="subtract_on_evict", capacity=1)
    with pytest.raises(QueryError, match="the queue is empty: there is nothing to evict"):
        queue.evict()
    assert queue.query() is None
    assert len(queue) == 0


def test_a_full_queue_takes_nothing_more():
    queue = Queue(wr.sum("x"), [pa.int64()], store="subtract_on_evict", capacity=1)
    queue.insert(4)
    with pytest.raises(LimitError, match="the queue is full: it has room for 1, evict first"):
        queue.insert(5)
    assert queue.query() == 4


def test_nulls_have_a_place_and_no_value():
    queue = Queue(wr.sum("x"), [pa.int64()], store="subtract_on_evict", capacity=3)
    queue.insert(None)
    assert (queue.query(), len(queue)) == (None, 1)
    queue.insert(7)
    queue.evict()
    assert (queue.query(), len(queue)) == (7, 1)


def test_strings_that_come_between_others_change_no_answer():
    queue = Queue(wr.collect("x"), [pa.string()], store="two_stacks_lite", capacity=3)
    for text in ("m", "z", "a"):
        queue.insert(text)
    assert queue.query() == ["m", "z", "a"]
    queue.evict()
    queue.insert("b")
    assert queue.query() == ["z", "a", "b"]


def test_counts_need_no_store():
    queue = Queue(wr.count(), [], store="daba", capacity=2)
    queue.insert()
    assert queue.query() == 1


def test_values_of_another_type_or_number_are_refused():
    queue = Queue(wr.sum("x"), [pa.int64()], store="subtract_on_evict", capacity=3)
    with pytest.raises(DataError, match="column 'x', row 0, value 'seven': is not of type int64"):
        queue.insert("seven")
    with pytest.raises(QueryError, match="insert takes 1 values, and got 2"):
        queue.insert(1, 2)
    with pytest.raises(QueryError, match="reads 1 columns, and types has 0"):
        Queue(wr.sum("x"), [], store="lazy", capacity=3)
    for capacity in (0, -1, True, 2.0):
        with pytest.raises(QueryError, match="capacity must be"):
            Queue(wr.sum("x"), [pa.int64()], store="lazy", capacity=capacity)


def test_a_sum_that_overflows_is_an_error_and_the_queue_goes_on():
    queue = Queue(wr.sum("x"), [pa.int64()], store="subtract_on_evict", capacity=2)
    queue.insert(2**62)
    queue.insert(2**62)
    with pytest.raises(DataError, match="the sum of the 2 values in the queue overflows int64"):
        queue.query()
    queue.evict()
    assert queue.query() == 2**62
