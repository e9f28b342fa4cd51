"""What never ends stays small."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input.windows.support import own, query, stay

import windrow as wr

ENDLESS = {
    "session": wr.session(10),
    "session with a column": wr.session("g"),
    "threshold": wr.threshold(pc.field("i") > -1),
    "marks that never come": wr.punctuated(where=pc.field("i") > 5),
    "an end that never comes": wr.punctuated(start=pc.field("i") > 0, end=pc.field("i") > 5),
    "a value that never moves": wr.delta("i", by=5),
    "a reading that never advances": wr.tumbling(10**6, on="i"),
    "rows": wr.tumbling(rows=10**9),
    "landmark": wr.landmark(since=0, every=10),
    "band": wr.band(0, length=10**12),
    "a step that never ends": own(lambda s, i: (1, 1 - s, 0)),
    "no window at all": own(stay),
}


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_window_that_never_ends_keeps_as_little_after_a_long_time_as_before(name, mode):
    windows = {"endless": ENDLESS[name], "short": wr.tumbling(10), "session": wr.session(2)}
    aggregates = {"n": wr.count(), "sum": wr.sum("i"), "max": wr.max("i")}
    operator = query(windows, aggregates=aggregates, key="k").operator(mode=mode, lateness=20)
    sizes = []
    for step in range(150):
        ticks = range(50 * step, 50 * step + 50)
        operator.process(pa.table({"t": ticks, "k": [t % 3 for t in ticks], "i": [1] * 50, "g": [100] * 50}))
        operator.advance(50 * step + 50)
        metrics = operator.metrics()
        sizes.append((metrics.live_slices, metrics.bytes, metrics.pending))
    early, late = np.max(sizes[:75], axis=0), np.max(sizes[75:], axis=0)
    assert (late <= early * 1.1).all(), f"{early} slices, bytes and pending events became {late}"
    assert early[0] < 2_500


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("window", [wr.session(10), wr.session("g"), wr.snapshot()], ids=str)
def test_keys_that_come_and_go_are_forgotten(window, mode):
    operator = query(window, aggregates={"n": wr.count()}, key="k").operator(mode=mode, lateness=10)
    sizes = []
    for day in range(120):
        ticks = range(100 * day, 100 * day + 50)
        operator.process(
            pa.table({"t": ticks, "k": [f"{day} {t}" for t in ticks], "i": [1] * 50, "g": [5] * 50})
        )
        operator.advance(100 * day + 100)
        sizes.append((operator.metrics().keys, operator.metrics().bytes))
    early, late = np.max(sizes[:60], axis=0), np.max(sizes[60:], axis=0)
    assert (late <= early * 1.1).all(), f"{early} keys and bytes became {late}"


def test_many_keys_with_few_events_are_kept_and_restored():
    asked = query(wr.tumbling(rows=3), aggregates={"n": wr.count()}, key="k")
    count = 20_000
    operator = asked.operator()
    operator.process(pa.table({"t": range(count), "k": range(count)}))
    operator.advance(count)
    operator.process(pa.table({"t": range(count, count + 10), "k": range(10)}))
    assert asked.restore(operator.snapshot()).finish().num_rows == count
