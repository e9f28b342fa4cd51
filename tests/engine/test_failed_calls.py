"""A call that fails leaves every engine of an operator as it was, and costs what it brought."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow as wr

LIMIT = 100


def positive(x):
    if x < 0:
        raise ValueError("less than nothing")
    return x


def few(a, b):
    if a + b > LIMIT:
        raise ValueError("too many")
    return a + b


def batch(times, values, keys=None, texts=None):
    count = len(times)
    columns = {"ts": times, "k": keys or ["a"] * count, "v": values, "s": texts or ["m"] * count}
    return pa.table(columns)


def running(mode, *, combine=lambda a, b: a + b):
    """An operator with a window of time, a session and a count window, in an engine each."""
    own = wr.aggregate(lift=positive, combine=combine, columns=["v"], identity=0, name="mine")
    aggregates = {
        "mine": own,
        "n": wr.count(),
        "total": wr.sum("v"),
        "low": wr.min("s"),
        "mid": wr.median("v"),
    }
    query = wr.query(time="ts", key="k", windows={"w": wr.tumbling(10)}, aggregates=aggregates)
    operator = query.operator(mode=mode, lateness=5)
    operator.process(batch([1, 2], [1, 2]))
    operator.add_window("s", wr.session(3))
    operator.add_window("c", wr.tumbling(rows=2))
    operator.process(batch([8, 12, 13, 14], [3, 4, 5, 6], keys=["a", "b", "a", "b"]))
    operator.advance(9)
    operator.process(batch([11, 16, 9], [7, 8, 9]))
    assert len(operator.engines) == 3
    return operator


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_batch_on_which_a_lift_fails_leaves_three_engines_as_they_were(mode):
    operator = running(mode)
    before, metrics = operator.snapshot(), operator.metrics()
    with pytest.raises(wr.UserFunctionError, match="less than nothing"):
        operator.process(batch([12, 17, 25, 31], [1, 1, 1, -1], ["a", "new", "b", "c"], ["z", "b", "m", "a"]))
    assert operator.snapshot() == before
    assert operator.metrics().late == metrics.late
    operator.process(batch([12, 17], [1, 1], ["a", "new"], ["z", "b"]))
    again = operator.query.restore(before)
    again.process(batch([12, 17], [1, 1], ["a", "new"], ["z", "b"]))
    assert operator.finish().sort_by("end").equals(again.finish().sort_by("end"))


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_batch_on_which_a_combine_fails_leaves_three_engines_as_they_were(mode):
    operator = running(mode, combine=few)
    before = operator.snapshot()
    with pytest.raises(wr.UserFunctionError, match="too many"):
        operator.process(batch([12, 13, 21, 22], [20, 80, 90, 5], ["b", "b", "new", "a"]))
    assert operator.snapshot() == before


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_watermark_at_which_a_combine_fails_leaves_three_engines_as_they_were(mode):
    operator = running(mode, combine=few)
    # Slices hold few enough, and the two events of a count window do not.
    operator.process(batch([19, 40, 50], [60, 60, 60], ["c", "c", "c"], ["z", "y", "x"]))
    before = operator.snapshot()
    for _ in range(2):
        with pytest.raises(wr.UserFunctionError, match="too many"):
            operator.advance(70)
        assert operator.snapshot() == before
    operator.process(batch([46], [1]))
    operator.remove_window("c")
    assert operator.advance(70).num_rows > 0


def squares(**options):
    """An operator of which windows of time are due, one with a result that overflows."""
    query = wr.query(
        time="ts",
        windows={"w": wr.tumbling(10)},
        aggregates={"total": wr.sum("v")},
        select={"square": wr.expr("total * total")},
        ordered=options.pop("ordered", False),
    )
    return query, query.operator(**options)


@pytest.mark.parametrize("close", [lambda op: op.advance(30), lambda op: op.finish()])
def test_where_a_column_of_the_result_cannot_be_computed_no_window_is_lost(close):
    query, operator = squares()
    operator.process(batch([1, 12], [3, 2**40]))
    before = operator.snapshot()
    for _ in range(2):
        with pytest.raises(wr.DataError, match=r"overflows .*\(in window w, from 10 on\)"):
            close(operator)
        assert operator.snapshot() == before
    without = wr.query(time="ts", windows=query.windows, aggregates=query.aggregates)
    operator.change(without)
    assert operator.finish()["total"].to_pylist() == [3, 2**40]


@pytest.mark.parametrize("options", [{"ordered": True}, {"watermark": wr.watermark()}])
def test_where_it_cannot_while_events_come_in_these_are_in_and_windows_wait(options):
    query, operator = squares(**options)
    operator.process(batch([1], [3]))
    with pytest.raises(wr.DataError, match="overflows"):
        operator.process([{"ts": t, "k": "a", "v": v} for t, v in ((11, 2**40), (25, 1))])
    assert operator.metrics().events == 3
    operator.change(
        wr.query(time="ts", windows=query.windows, aggregates=query.aggregates, ordered=query.ordered)
    )
    assert operator.finish()["total"].to_pylist() == [3, 2**40, 1]


def test_columns_of_the_result_are_computed_once_of_rows_that_wait():
    _, operator = squares(ordered=True)
    rows = operator.process(iter(batch([t], [t]).to_batches()[0] for t in (1, 12, 25)))
    assert rows.select(["total", "square"]).to_pylist() == [
        {"total": 1, "square": 1},
        {"total": 12, "square": 144},
    ]
    operator.add_aggregate("n", wr.count())
    with pytest.raises(wr.QueryError, match="'total' cannot be removed: column 'square' of the result"):
        operator.remove_aggregate("total")
    assert operator.finish()["square"].to_pylist() == [625]
