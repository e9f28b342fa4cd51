"""Specs: what they refuse, and the tables of the paper as data."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from policies.orders import order_of

from windrow.errors import QueryError
from windrow.policies.spec import (
    Count,
    count,
    delta,
    partition_age,
    partition_count,
    punct,
    sliding,
    spoken,
    time,
    tumbling,
    tuple_count,
)

POLICIES = {"count": count(3), "delta": delta("d", 2), "time": time(1)}
TABLE_II = {
    ("count", "count"): "evict -> insert -> trigger",
    ("count", "delta"): "trigger -> evict -> insert",
    ("count", "time"): "evict -> insert | trigger",
    ("delta", "count"): "evict -> insert -> trigger",
    ("delta", "delta"): "trigger -> evict -> insert",
    ("delta", "time"): "evict -> insert | trigger",
    ("time", "count"): "insert -> trigger | evict",
    ("time", "delta"): "trigger -> insert | evict",
    ("time", "time"): "insert | evict | trigger",
}


@pytest.mark.parametrize(("policies", "order"), TABLE_II.items())
def test_the_order_of_a_sliding_window_is_that_of_table_two(policies, order):
    assert str(order_of(sliding(*(POLICIES[name] for name in policies)))) == order


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        (count(3), "insert -> flush"),
        (delta("d", 2), "flush -> insert"),
        (time(1), "insert | flush"),
        (punct(), "insert | flush"),
    ],
)
def test_the_order_of_a_tumbling_window_is_that_of_table_one(policy, order):
    assert str(order_of(tumbling(policy))) == order


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sliding(punct(), count(1)), "punct"),
        (lambda: sliding(count(1), punct()), "punct"),
        (lambda: count(-1), "0 or more"),
        (lambda: count(True), "whole number"),
        (lambda: count(2.5), "whole number"),
        (lambda: count(2**63), "beyond all memory"),
        (lambda: tumbling(count(0)), "always be full"),
        (lambda: sliding(count(1), count(0)), "never come"),
        (lambda: delta("d", -1), "must not be negative"),
        (lambda: delta("d", float("nan")), "finite"),
        (lambda: delta("", 1), "name of a column"),
        (lambda: time(0), "longer than nothing"),
        (lambda: time("-3 seconds"), "longer than nothing"),
        (lambda: time(float("inf")), "finite"),
        (lambda: time("1 fortnight"), "unknown unit"),
        (lambda: time(1e12), "too long"),
        (lambda: partition_count(0), "1 or more"),
        (lambda: tuple_count(-5), "1 or more"),
        (lambda: partition_age(timedelta(0)), "longer than nothing"),
        (lambda: tumbling(count(1), partition_eviction=partition_count(2)), "not partitioned"),
        (lambda: tumbling(count(1), partitioned=True, partition_eviction=count(2)), "no partition eviction"),
        (lambda: tumbling(count(1), partitioned=True, selection="oldest"), "needs partition_count"),
        (
            lambda: tumbling(
                count(1), partitioned=True, partition_eviction=partition_count(2), selection="any"
            ),
            "selects no partition",
        ),
        (lambda: tumbling(3), "eviction policy"),
        (lambda: sliding(count(1), None), "a trigger policy"),
        (lambda: tumbling(count(1), partitioned="yes"), "True or False"),
    ],
)
def test_what_cannot_be_meant_is_refused(make, words):
    with pytest.raises(QueryError, match=words):
        make()


def test_a_one_sided_join_may_have_a_window_of_no_rows():
    assert sliding(count(0), count(1)).eviction == Count(0)


def test_numbers_of_numpy_are_numbers():
    assert count(np.int32(3)) == Count(3)


def test_specs_are_values():
    one = sliding(time("1 minute"), delta("d", 5.0), partitioned=True, partition_eviction=tuple_count(9))
    two = sliding(time(60), delta("d", 5), partitioned=True, partition_eviction=tuple_count(9))
    assert one == two
    assert hash(one) == hash(two)


def test_lengths_of_time_are_spoken_in_their_largest_unit():
    assert [spoken(n) for n in (1, 1_500_000, 86_400 * 10**9, 7 * 86_400 * 10**9)] == [
        "1 nanosecond",
        "1500 microseconds",
        "1 day",
        "7 days",
    ]
