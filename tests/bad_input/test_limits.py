"""More than the limit, and calls that are taken whole or not at all."""

from __future__ import annotations

import polars
import pyarrow as pa
import pytest
from bad_input.support import counts, query, stream, times

import windrow as wr


def test_more_slices_than_the_limit_are_refused_and_nothing_is_taken():
    operator = query().operator(max_slices=3)
    operator.process(times([1]))
    with pytest.raises(wr.LimitError, match="5 live slices, more than the limit of max_slices=3"):
        operator.process(times([2, 12, 22, 32, 42]))
    assert operator.metrics().events == 1
    operator.process(times([3]))
    assert counts(operator.finish()) == {(0, 10): 2}


def test_more_keys_than_the_limit_are_refused_and_nothing_is_taken():
    operator = query(key="k").operator(max_slices=4)
    operator.process(pa.table({"ts": [1, 2], "k": [1, 2]}))
    before = operator.metrics()
    with pytest.raises(wr.LimitError, match="1 slices of 50 keys are 50 live slices"):
        operator.process(pa.table({"ts": [1] * 50, "k": list(range(50))}))
    assert operator.metrics() == before
    operator.process(pa.table({"ts": [3], "k": [1]}))
    assert [(r["k"], r["n"]) for r in operator.finish().to_pylist()] == [(1, 2), (2, 1)]


@pytest.mark.parametrize("kind", ["bad", "late"])
def test_rows_set_aside_belong_to_the_batch_that_was_refused(kind):
    operator = query().operator(max_slices=2, on_bad="divert")
    operator.process(times([25]))
    operator.advance(20)
    with pytest.raises(wr.LimitError):
        operator.process(times([None if kind == "bad" else 1, 31, 41, 51]))
    assert (operator.metrics().bad, operator.metrics().late) == (0, 0)
    assert (operator.bad().num_rows, operator.late().num_rows) == (0, 0)


def test_a_frame_of_several_chunks_is_taken_whole_or_not_at_all():
    frame = polars.concat(
        [polars.DataFrame({"ts": [1, 2]}), polars.DataFrame({"ts": [3, None]})], rechunk=False
    )
    assert frame.n_chunks() == 2
    operator = stream()
    with pytest.raises(wr.DataError, match="column 'ts', row 3, value None"):
        operator.process(frame)
    assert operator.metrics().events == 0


def test_an_iterator_that_raises_keeps_what_came_before():
    def batches():
        yield times([1])
        yield times([2, 12])
        raise RuntimeError("the source broke")

    operator = stream()
    with pytest.raises(RuntimeError, match="the source broke"):
        operator.process(batches())
    operator.process(times([3]))
    assert counts(operator.finish()) == {(0, 10): 3, (10, 20): 1}
