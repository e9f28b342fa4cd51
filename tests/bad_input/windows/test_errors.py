"""Errors leave the operator as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest
from bad_input.windows.support import content, events, own, query

import windrow as wr
from tests.referee import answers, assert_same
from windrow.testing import replay

LARGE = 2**62


def overflowing():
    """An operator whose next advance fails: the sum of the first two events leaves 64 bits."""
    aggregates = {"ids": wr.collect("i"), "total": wr.sum("x")}
    asked = query(wr.tumbling(rows=2), aggregates=aggregates)
    table = events([10, 20, 30], x=[LARGE, LARGE, 0])
    operator = asked.operator()
    operator.process(table)
    return asked, table, operator


def test_a_failed_advance_can_be_tried_again():
    _, _, operator = overflowing()
    for _ in range(2):
        with pytest.raises(wr.DataError, match="the sum of window 'w'"):
            operator.advance(50)
    operator.remove_aggregate("total")
    assert content(operator.advance(50)) == [(10, 21, (0, 1))]
    assert content(operator.finish()) == [(30, 31, (2,))]


def test_a_failed_advance_takes_an_earlier_event_in_its_place():
    asked, table, operator = overflowing()
    with pytest.raises(wr.DataError):
        operator.advance(50)
    earlier = pa.table({"t": [5], "i": [9], "x": [-LARGE]})
    operator.process(earlier)
    assert operator.late().num_rows == 0
    assert_same(answers(asked, pa.concat_tables([table, earlier])), operator.finish())


def test_a_failed_finish_goes_on_with_the_next_batch():
    _, _, operator = overflowing()
    with pytest.raises(wr.DataError):
        operator.finish()
    operator.remove_aggregate("total")
    operator.process(pa.table({"t": [35], "i": [3], "x": [0]}))
    assert content(operator.finish()) == [(10, 21, (0, 1)), (30, 36, (2, 3))]


def refuse_seven(state, i):
    if i == 7:
        raise ValueError("seven")
    return 1, 1, state


def test_a_step_that_fails_in_a_later_chunk_takes_no_earlier_one():
    operator = query(own(refuse_seven)).operator()
    operator.process(pa.table({"t": [10, 20], "i": [1, 2]}))
    operator.process(pa.table({"t": [30, 40], "i": [7, 2]}))
    before = operator.snapshot()
    with pytest.raises(wr.UserFunctionError, match="seven"):
        operator.advance(50)
    assert operator.snapshot() == before


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_ctrl_c_in_a_step_leaves_the_operator_usable(mode):
    interrupt = [True]

    def step(state, i):
        if interrupt and repr(i) == "2":
            raise KeyboardInterrupt
        return 1, 1, state

    operator = query(own(step)).operator(mode=mode, lateness=100)
    operator.process(events([1, 2, 3, 4]))
    before = operator.metrics()
    with pytest.raises(KeyboardInterrupt):
        operator.advance(200)
    assert operator.metrics() == before
    interrupt.clear()
    rest = pa.concat_tables([operator.advance(200), operator.finish()])
    whole = replay(rest) if mode == "update" else rest
    assert content(whole) == [(1, 2, (0,)), (2, 3, (1,)), (3, 4, (2,)), (4, 5, (3,))]


@pytest.mark.parametrize("window", [wr.session(5), wr.tumbling(rows=2)], ids=str)
@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_ctrl_c_in_an_aggregate_leaves_the_operator_as_it_was(window):
    interrupt = [True]

    def lift(i):
        if interrupt and int({str(i): i}[str(i)]) == 3:
            raise KeyboardInterrupt
        return i

    total = wr.aggregate(lift=lift, combine=lambda a, b: a + b, identity=0, name="total")
    asked = query(window, aggregates={"total": total}, key="k")
    operator = asked.operator()
    first, second = events([1, 2], k=[1, 1]), pa.table({"t": [2, 3, 4], "i": [7, 3, 5], "k": [1, 2, 1]})
    operator.process(first)
    before = operator.snapshot()
    try:
        operator.process(second)
    except KeyboardInterrupt:
        assert operator.snapshot() == before
        interrupt.clear()
        operator.process(second)
    else:
        before = operator.snapshot()
        with pytest.raises(KeyboardInterrupt):
            operator.advance(10)
        assert operator.snapshot() == before
        interrupt.clear()
    assert_same(asked.run(pa.concat_tables([first, second])), operator.finish())


@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
@pytest.mark.parametrize("window", [wr.session(1), wr.tumbling(rows=2)], ids=str)
def test_a_batch_beyond_the_limit_is_not_taken_and_the_operator_goes_on(window, key):
    operator = query(window, key=key).operator(max_slices=3)
    operator.process(events([1, 10, 20], k=[1, 1, 1]))
    before = operator.snapshot(), operator.metrics()
    more = pa.table({"t": [21, 40], "i": [3, 4], "k": [1, 9]})
    with pytest.raises(wr.LimitError, match=r"nothing of this batch was taken|operator is as it was"):
        operator.process(more)
    assert (operator.snapshot(), operator.metrics()) == before
    rows = [operator.advance(15), operator.advance(20)]
    operator.process(more.slice(0, 1))
    rows.append(operator.finish())
    expected = query(window, key=key).run(events([1, 10, 20, 21], k=[1, 1, 1, 1]))
    assert_same(expected, pa.concat_tables(rows))


def test_released_events_beyond_the_limit_are_an_error_that_changes_nothing():
    looking_back = query(wr.slide_by_rows(1000, every_rows=1), aggregates={"n": wr.count()})
    operator = looking_back.operator(max_slices=4)
    operator.process(events([1, 2, 3, 4]))
    operator.advance(5)
    operator.process(events([6, 7]))
    before = operator.snapshot()
    for _ in range(2):
        with pytest.raises(wr.LimitError, match="max_slices=4"):
            operator.advance(8)
        assert operator.snapshot() == before
