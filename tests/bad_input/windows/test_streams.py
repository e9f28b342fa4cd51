"""Streams of some thousand events, in many small batches, give what the oracle gives."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from specimens import SEQUENCES

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.stream import ReferenceOperator
from windrow.testing import replay


def stream(seed, *, size, keys=50, span=None, lateness=200):
    """Events of which every fifth comes late, within the lateness, with columns for all windows."""
    luck = np.random.default_rng(seed)
    true = np.sort(luck.integers(0, span or 4 * size, size))
    delay = np.where(luck.random(size) < 0.2, luck.integers(0, lateness, size), 0)
    time = true[np.argsort(true + delay, kind="stable")]
    levels = luck.integers(-4, 5, size).astype(object)
    levels[luck.random(size) < 0.03] = None
    marks = (luck.random(size) < 0.2).astype(object)
    marks[luck.random(size) < 0.02] = None
    return pa.table(
        {
            "time": time,
            "key0": luck.integers(0, keys, size),
            "id": np.arange(size),
            "x": luck.integers(-5, 50, size),
            "s": [f"s{v}" for v in luck.integers(0, 3000, size)],
            "gap": luck.integers(1, 300, size),
            "km": time // 40 + luck.integers(-3, 4, size),
            "mark": pa.array(marks.tolist(), pa.bool_()),
            "level": pa.array(levels.tolist(), pa.float64()),
            "v": luck.integers(-2, 3, size),
        }
    )


# The same kinds as `SEQUENCES`, with sizes that fit such a stream.
SIZED = SEQUENCES | {
    "session": wr.session(120),
    "landmark": wr.landmark(since=3000, every=700),
    "slide by rows": wr.slide_by_rows(900, every_rows=3),
    "latest": wr.latest(rows=5, every=250, offset=7),
    "count sliding": wr.sliding(rows=17, every_rows=5),
    "threshold of some length": wr.threshold(pc.field("level") > -3, at_least=300, at_least_rows=2),
    "on a column": wr.tumbling(7, on="km"),
    "sliding on a column": wr.sliding(23, every=5, on="km", offset=1),
}
COMPUTED = {
    "n": wr.count(),
    "sum": wr.sum("x"),
    "ids": wr.collect("id"),
    "first": wr.first("s"),
    "middle": wr.median("x"),
}


def fed(asked, table, *, mode, lateness, batch, seed):
    """All rows of a stream fed in small batches, restored now and then."""
    operator = asked.operator(mode=mode, lateness=lateness)
    luck = np.random.default_rng(seed)
    found, newest, watermark = [], 0, 0
    for step, at in enumerate(range(0, table.num_rows, batch)):
        part = table.slice(at, batch)
        operator.process(part)
        newest = max(newest, pc.max(part["time"]).as_py())
        watermark = max(watermark, newest - int(luck.integers(0, 30)))
        found.append(operator.advance(watermark))
        if step % 7 == 3:
            operator = asked.restore(operator.snapshot())
    assert operator.metrics().late == 0
    rows = pa.concat_tables([*found, operator.finish()])
    return replay(rows) if mode == "update" else rows


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize(
    "name",
    list(SIZED),
)
def test_thousands_of_events_in_small_batches_give_what_the_oracle_gives(name, mode):
    asked = wr.query(time="time", key="key0", windows={"w": SIZED[name]}, aggregates=COMPUTED)
    table = stream(1, size=3000)
    assert_same(answers(asked, table), fed(asked, table, mode=mode, lateness=200, batch=61, seed=2))


@pytest.mark.parametrize("mode", ["append", "update"])
def test_all_kinds_in_one_query_without_keys_give_what_the_oracle_gives(mode):
    periodic = {"tumbling": wr.tumbling(100), "sliding": wr.sliding(500, every=70), "longer": wr.session(400)}
    asked = wr.query(time="time", windows={**SIZED, **periodic}, aggregates={"ids": wr.collect("id")})
    table = stream(3, size=600)
    assert_same(answers(asked, table), fed(asked, table, mode=mode, lateness=200, batch=23, seed=4))


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", SIZED)
def test_events_beyond_the_lateness_are_late_as_the_reference_says(name, mode):
    asked = wr.query(
        time="time", key="key0", windows={"w": SIZED[name]}, aggregates={"ids": wr.collect("id")}
    )
    table = stream(5, size=300, keys=6, span=2300, lateness=150)
    operator = asked.operator(mode=mode, lateness=60)
    reference = ReferenceOperator(asked, mode=mode, lateness=60)
    newest, late = 0, 0
    for step, at in enumerate(range(0, table.num_rows, 11)):
        part = table.slice(at, 11)
        operator.process(part)
        reference.process(part)
        newest = max(newest, pc.max(part["time"]).as_py())
        found = operator.advance(newest)
        reference.advance(newest)
        assert_same(reference.answers, found, note=f"step {step}")
        mine = operator.late()["id"].to_pylist()
        assert mine == reference.late()["id"].to_pylist()
        late += len(mine)
    found = operator.finish()
    reference.finish()
    assert_same(reference.answers, found, note="finish")
    assert operator.metrics().late == late


def test_two_operators_in_two_threads_do_not_disturb_each_other():
    asked = wr.query(time="time", key="key0", windows=dict(SIZED), aggregates={"ids": wr.collect("id")})
    table = stream(7, size=900)
    found = {}

    def work(name):
        operator = asked.operator(mode="update", lateness=300)
        rows, states = [], []
        for at in range(0, 900, 150):
            operator.process(table.slice(at, 150))
            rows.append(operator.advance(pc.max(table["time"].slice(0, at + 1)).as_py()))
            states.append(operator.snapshot())
        found[name] = pa.concat_tables([*rows, operator.finish()]), states

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(2)
    assert found[0][0].equals(found[1][0])
    assert found[1][0].equals(found[2][0])
    assert found[0][1] == found[1][1] == found[2][1], "the same operations give the same bytes"
