"""Clocks: calls come when they are due, in order, once."""

from __future__ import annotations

import threading

import pytest
from patience import PATIENCE

from windrow import policies as wp
from windrow.errors import QueryError

SECOND = 1_000_000_000


def test_a_virtual_clock_makes_calls_in_order_and_at_their_instants():
    clock, seen = wp.VirtualClock(), []
    for deadline in (3, 1, 2):
        clock.call_at(deadline * SECOND, lambda d=deadline: seen.append((d, clock.now() // SECOND)))
    clock.advance("2 seconds")
    assert seen == [(1, 1), (2, 2)]
    clock.advance(5)
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert clock.now() == 7 * SECOND


def test_a_call_may_ask_for_another():
    clock, seen = wp.VirtualClock(), []

    def again():
        seen.append(clock.now() // SECOND)
        clock.call_at(clock.now() + SECOND, again)

    clock.call_at(SECOND, again)
    clock.advance(3.5)
    assert seen == [1, 2, 3]


def test_a_cancelled_call_is_not_made():
    clock, seen = wp.VirtualClock(), []
    clock.call_at(SECOND, lambda: seen.append(1)).cancel()
    clock.advance(2)
    assert seen == []


def test_a_clock_does_not_go_back():
    clock = wp.VirtualClock(start=5)
    with pytest.raises(QueryError, match="does not go back"):
        clock.advance_to(4)


def test_a_real_clock_calls_when_the_time_has_come():
    clock = wp.RealClock()
    done, seen = threading.Event(), []
    start = clock.now()
    clock.call_at(start + 30_000_000, lambda: (seen.append(("late", clock.now())), done.set()))
    clock.call_at(start + 10_000_000, lambda: seen.append(("early", clock.now())))
    clock.call_at(start + 5_000_000, lambda: seen.append(("never", clock.now()))).cancel()
    assert done.wait(PATIENCE)
    assert [name for name, _ in seen] == ["early", "late"]
    assert all(at >= start + due for (_, at), due in zip(seen, (10_000_000, 30_000_000), strict=True))


def test_a_clock_starts_at_a_number_of_nanoseconds():
    with pytest.raises(QueryError, match="a whole number of nanoseconds since 1970, not 'noon'"):
        wp.VirtualClock("noon")
