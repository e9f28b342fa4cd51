"""Events out of order: the slices that they are cut into, and how those of each slice are put side by side."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.referee import answers, assert_same
from windrow.engine.aligned.cutting import MANY_IN_A_SLICE, Cells, cut, cut_by_slices
from windrow.testing import replay

edge_lists = st.one_of(
    st.builds(
        lambda base, step, count: np.arange(count + 1) * step + base,
        st.integers(-(2**62), 2**62) | st.integers(-50, 50),
        st.integers(1, 40) | st.just(2**33),
        st.integers(1, 12),
    ),
    st.sets(st.integers(-300, 300), min_size=2, max_size=12).map(lambda found: np.array(sorted(found))),
)


@given(edge_lists, st.data())
def test_scattered_events_lie_in_their_slices_and_side_by_side(edges, data):
    slices = data.draw(st.lists(st.integers(0, len(edges) - 2), min_size=1, max_size=40))
    shares = data.draw(
        st.lists(st.floats(0, 1, exclude_max=True), min_size=len(slices), max_size=len(slices))
    )
    length = np.diff(edges)[slices]
    times = edges[slices] + np.minimum((np.array(shares) * length).astype(np.int64), length - 1)
    dense = data.draw(st.booleans())
    times = np.tile(times, MANY_IN_A_SLICE * len(edges)) if dense else times
    found = cut(times, edges, ordered=False)
    expected = np.searchsorted(edges, times, side="right") - 1
    hit, sizes = np.unique(expected, return_counts=True)
    assert (found.slices == hit).all()
    assert (found.sizes == sizes).all()
    base = np.where(hit % 3 == 0, -1, 10 * hit)
    cells = found.place(base, None, len(times))
    assert isinstance(cells, Cells)
    assert (cells.cell == np.where(expected % 3 == 0, -1, 10 * expected)).all()
    assert found.can_be_gathered or not dense
    if not found.can_be_gathered:
        return
    runs, (rows,) = found.gathered(base, np.arange(len(times)))
    assert (rows == np.argsort(expected, kind="stable")).all()
    which, where = runs.located()
    assert (where == cells.cell[rows[which]]).all()
    assert len(which) == np.count_nonzero(cells.cell >= 0)


@given(edge_lists, st.data())
def test_events_in_slices_that_are_there_are_runs(edges, data):
    there = np.array(data.draw(st.lists(st.booleans(), min_size=len(edges) - 1, max_size=len(edges) - 1)))
    slices = np.array(data.draw(st.lists(st.integers(0, len(edges) - 2), min_size=1, max_size=20)))
    ordered = data.draw(st.booleans())
    slices = np.sort(slices) if ordered else slices
    if not there.any():
        return
    starts, ends = edges[:-1][there], edges[1:][there]
    found = cut_by_slices(edges[slices], starts, ends, ordered=ordered)
    if not there[slices].all():
        assert found is None
        return
    assert found is not None
    rows, where = found.place(10 * found.slices, None, len(slices)).located()
    assert (rows == np.arange(len(slices))).all()
    assert (starts[where // 10] == edges[slices]).all()


WINDOWS = {
    "equal slices": {"w": wr.tumbling(40)},
    "unequal slices": {"w": wr.tumbling(40), "s": wr.sliding(55, every=35)},
    "gaps": {"b": wr.band(100, length=300), "h": wr.sliding(20, every=50)},
}
AGGREGATES = {
    "n": wr.count(),
    "total": wr.sum("x"),
    "first": wr.first("x"),
    "letters": wr.concat("s"),
    "middle": wr.quantile("x", 0.5),
}


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", WINDOWS)
def test_many_events_out_of_order_agree_with_the_oracle(name, mode, nulls):
    random = np.random.default_rng(5)
    times = np.clip(np.arange(6_000) // 10 - random.integers(0, 60, 6_000), 0, None)
    mask = random.random(6_000) < 0.1 if nulls else None
    x = pa.array(random.integers(0, 50, 6_000), mask=mask)
    table = pa.table({"t": times, "x": x, "s": random.choice(["a", "b"], 6_000)})
    query = wr.query(time="t", windows=WINDOWS[name], aggregates=AGGREGATES)
    operator = query.operator(mode=mode, lateness=100)
    found = []
    for begin in (0, 3_000):
        operator.process(table.slice(begin, 3_000))
        found.append(operator.advance(int(times[: begin + 3_000].max())))
    rows = pa.concat_tables([*found, operator.finish()])
    assert operator.metrics().late == operator.metrics().partly_late == 0
    assert_same(answers(query, table), replay(rows) if mode == "update" else rows)
