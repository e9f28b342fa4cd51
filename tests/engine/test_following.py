"""A watermark that follows the events: the slowest partition that is not idle decides, and the clock where all are silent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.referee.stream import ReferenceOperator
from windrow.errors import QueryError, StateError
from windrow.policies import VirtualClock
from windrow.testing.compare import assert_same, rows_of

SECOND = 1_000_000_000
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOWS = {"ten": wr.tumbling("10 seconds"), "gap": wr.session("4 seconds"), "two": wr.tumbling(rows=2)}
QUERY = wr.query(time="t", windows=WINDOWS, aggregates={"n": wr.count(), "total": wr.sum("x")})


def events(*rows):
    """Events, each a partition and a number of seconds."""
    moments = [START + timedelta(seconds=seconds) for _, seconds in rows]
    columns = {
        "t": pa.array(moments, pa.timestamp("us", "UTC")),
        "p": pa.array([p for p, _ in rows], pa.int64()),
    }
    return pa.table(columns | {"x": pa.array([1] * len(rows), pa.int64())})


class Model:
    """The watermark by definition, in seconds since the start."""

    def __init__(self, delay, idle, per):
        self.delay, self.idle, self.per = delay, idle, per
        self.newest, self.heard, self.clock, self.best = {}, {}, 0, None

    def note(self, rows):
        for partition, seconds in rows:
            name = partition if self.per else None
            self.newest[name] = max(self.newest.get(name, seconds), seconds)
            self.heard[name] = self.clock

    def restart(self):
        """A restart is no silence."""

    def watermark(self):
        if not self.newest:
            return None
        active = [p for p in self.newest if self.idle is None or self.clock - self.heard[p] < self.idle]
        if active:
            mark = min(self.newest[p] for p in active)
        else:
            mark = max(self.newest.values()) + self.clock - max(self.heard.values())
        mark -= self.delay
        self.best = mark if self.best is None else max(mark, self.best)
        return self.best


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), min_size=1, max_size=5)
STEPS = st.lists(st.one_of(ROWS, st.integers(1, 40), st.just("restart")), max_size=14)


@given(
    steps=STEPS,
    delay=st.integers(0, 8),
    idle=st.one_of(st.none(), st.integers(1, 30)),
    per=st.booleans(),
    emit=st.sampled_from([None, wr.each_batch()]),
)
def test_windows_come_out_by_the_watermark_that_follows(steps, delay, idle, per, emit):
    clock = VirtualClock()
    spec = wr.watermark(
        delay=f"{delay} seconds", idle=None if idle is None else f"{idle} seconds", per="p" if per else ()
    )
    early = {} if emit is None else {"mode": "update", "emit": emit}
    operator = QUERY.operator(watermark=spec, clock=clock.now, **early)
    reference, model = ReferenceOperator(QUERY), Model(delay, idle, per)
    seen = False
    for step in steps:
        if step == "restart":
            state = operator.snapshot()
            down = VirtualClock(clock.now() + 1000 * SECOND)  # however long it was down
            operator, clock = QUERY.restore(state, clock=down.now), down
            continue
        if isinstance(step, int):
            clock.advance(f"{step} seconds")
            model.clock += step
            rows = operator.tick()
        else:
            rows = operator.process(events(*step))
            reference.process(events(*step))
            model.note(step)
            seen = True
        mark = model.watermark()
        if not seen:
            assert rows.num_rows == 0
            continue
        expected = reference.advance(START + timedelta(seconds=mark))
        if emit is not None:
            rows = rows.filter(rows["final"]).drop_columns(["op", "revision", "final"])
        assert_same(expected, rows, note=f"watermark {mark}")
        assert rows_of(operator.late()) == rows_of(reference.late())


def test_a_silent_partition_is_waited_for_until_it_is_idle_and_speaks_again():
    clock = VirtualClock()
    spec = wr.watermark(idle="30 seconds", per="p")
    op = QUERY.operator(watermark=spec, clock=clock.now)
    op.process(events((0, 1), (1, 2), (2, 3)))
    op.process(events((0, 25), (1, 26)))
    assert op.metrics().watermark == START + timedelta(seconds=3)
    clock.advance("29 seconds")
    op.process(events((0, 26), (1, 27)))
    assert op.tick().num_rows == 0
    clock.advance("1 second")
    assert {row["window"] for row in op.tick().to_pylist()} >= {"ten", "gap"}
    assert op.metrics().watermark == START + timedelta(seconds=26)
    op.process(events((2, 24), (2, 40)))
    assert op.metrics().partly_late == 1
    assert op.metrics().watermark == START + timedelta(seconds=26)
    clock.advance("40 seconds")
    assert op.tick().num_rows > 0
    assert op.metrics().watermark == START + timedelta(seconds=80)


def test_processing_time_is_stamped_as_events_come_in():
    clock = VirtualClock(1_000 * SECOND)
    windows = {"w": wr.tumbling("10 seconds"), "s": wr.session("5 seconds")}
    q = wr.query(time=wr.now(), windows=windows, aggregates={"n": wr.count(), "at": wr.last("now")})
    op = q.operator(clock=clock.now)
    rows = [op.process(pa.table({"x": [1, 2]}))]
    clock.advance("3 seconds")
    rows.append(op.process(pa.table({"x": [3]})))
    op = q.restore(op.snapshot(), clock=clock.now)
    clock.advance("7 seconds")
    rows.append(op.tick())
    rows.append(op.process(pa.table({"x": [4]})))
    clock.advance("10 seconds")
    rows.append(op.tick())
    assert [[(r["window"], r["n"]) for r in table.to_pylist()] for table in rows] == [
        [],
        [],
        [("w", 3), ("s", 3)],
        [],
        [("w", 1), ("s", 1)],
    ]


def test_a_clock_that_goes_back_stands_still():
    times = iter([50, 40, 30, 20, 10, 9, 8, 7])
    q = wr.query(time=wr.now(), windows={"w": wr.tumbling("10 seconds")}, aggregates={"n": wr.count()})
    op = q.operator(clock=lambda: next(times) * SECOND)
    for _ in range(2):
        assert op.process(pa.table({"x": [1]})).num_rows == 0
    assert op.metrics().late == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: wr.watermark(delay=-1),
        lambda: wr.watermark(idle=5),
        lambda: wr.watermark(idle="0 seconds"),
        lambda: wr.watermark(per=[1]),
        lambda: QUERY.operator(watermark="10 seconds"),
        lambda: QUERY.operator(clock=5),
        lambda: QUERY.operator(watermark=wr.watermark()).advance(START),
        lambda: QUERY.operator().tick(),
        lambda: QUERY.operator(watermark=wr.watermark(per="partition")).process(events((0, 1))),
        lambda: QUERY.operator(watermark=wr.watermark(delay=5)).process(events((0, 1))),
        lambda: wr.query(time=wr.now(), windows=WINDOWS, aggregates={"n": wr.count()}).run(events((0, 1))),
        lambda: (
            wr.query(time=wr.now(), windows=WINDOWS, aggregates={"n": wr.count()})
            .operator()
            .process(pa.table({"now": [1]}))
        ),
        lambda: wr.query(time="t", windows=WINDOWS, aggregates={"n": wr.count()}, ordered=True).operator(
            watermark=wr.watermark()
        ),
        lambda: (
            wr.query(time="x", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
            .operator(watermark=wr.watermark(idle="5 seconds"))
            .process(events((0, 1)))
        ),
    ],
)
def test_watermarks_that_cannot_be_kept_are_refused(make):
    with pytest.raises(QueryError):
        make()


def test_a_snapshot_of_other_partitions_is_refused():
    op = QUERY.operator(watermark=wr.watermark(per="p"))
    op.process(events((0, 1), (1, 1)))
    op.following._newest = op.following._newest[:1]
    with pytest.raises(StateError, match="how far each of its partitions has come"):
        QUERY.restore(op.snapshot())


def test_a_batch_that_does_not_name_its_partitions_as_before_is_refused_whole():
    op = QUERY.operator(watermark=wr.watermark(per="p"), clock=VirtualClock().now)
    op.process(events((0, 1)))
    before = op.snapshot()
    good = events((0, 2))
    for bad, said in (
        (good.drop_columns("p"), "'p'"),
        (
            good.set_column(1, "p", pa.array(["0"])),
            "column 'p' was int64 in the first batch and is string in this one",
        ),
    ):
        with pytest.raises(QueryError, match=said):
            op.process(bad)
        assert op.snapshot() == before
    assert op.process(good).num_rows == 0


def test_a_watermark_that_does_not_fit_is_refused_again_and_again():
    op = QUERY.operator(watermark=wr.watermark(per="partition"))
    for _ in range(2):
        with pytest.raises(QueryError, match="partition"):
            op.process(events((0, 1)))


def test_behind_a_restart_a_clock_that_is_behind_stands_still():
    clock = VirtualClock(100 * SECOND)
    q = wr.query(time=wr.now(), windows={"w": wr.tumbling("10 seconds")}, aggregates={"n": wr.count()})
    op = q.operator(clock=clock.now)
    op.process(pa.table({"x": [1]}))
    clock.advance("15 seconds")
    assert op.tick().num_rows == 1
    op = q.restore(op.snapshot(), clock=VirtualClock(60 * SECOND).now)
    op.process(pa.table({"x": [1, 2, 3]}))
    assert (op.metrics().late, op.metrics().events) == (0, 4)
    assert op.finish()["n"].to_pylist() == [3]
