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
