"""Any interleaving of events, watermarks, windows and aggregates that come and go, restarts and calls that fail.

A state machine drives the embedded operator and the reference operator side by side, with windows of all kinds in one
query. After each step both have said the same; a call that failed has left no trace, which their snapshots show.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from profiles import examples

import windrow as wr
from tests.referee.stream import ReferenceOperator
from windrow.engine.operator import Operator
from windrow.errors import UserFunctionError
from windrow.testing.compare import assert_same, rows_of

FAILING = 13


def unlucky(v):
    """A function of the user's own that fails on one value."""
    if v == FAILING:
        raise ValueError("thirteen")
    return v


def plus(a, b):
    """Integers as they are."""
    return a + b


OWN = wr.aggregate(columns="v", lift=unlucky, combine=plus, identity=0)
# Of each kind a window that may come later, and all that a query may begin with.
LATER = {
    "time": st.builds(wr.tumbling, st.integers(1, 9)),
    "sliding": st.integers(1, 5).flatmap(
        lambda e: st.builds(wr.sliding, st.integers(e, 12), every=st.just(e))
    ),
    "session": st.builds(wr.session, st.integers(1, 12)),
    "snapshot": st.builds(wr.snapshot),
    "rows": st.integers(1, 4).map(lambda rows: wr.tumbling(rows=rows)),
    "marks": st.just(wr.punctuated("mark")),
    "back": st.builds(wr.slide_by_rows, st.integers(1, 9), every_rows=st.integers(1, 3)),
    "latest": st.builds(wr.latest, rows=st.integers(1, 3), every=st.integers(1, 6)),
    "moves": st.integers(1, 40).map(lambda by: wr.delta("v", by=by)),
    "advancing": st.integers(1, 9).map(lambda every: wr.tumbling(every, on="v")),
}
KINDS = LATER | {
    "gaps of a column": st.just(wr.session("gap")),
    "landmark": st.integers(2, 9).map(lambda every: wr.landmark(since=0, every=every)),
}
EVENT = st.tuples(
    st.integers(-25, 5), st.integers(0, 2), st.integers(0, FAILING - 1), st.integers(1, 9), st.booleans()
)
WINDOW = st.sampled_from(sorted(KINDS)).flatmap(KINDS.__getitem__)


class Interleaving(RuleBasedStateMachine):
    """Two operators that take the same steps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.watermark = self.added = 0
        self.seen = False

    @initialize(
        windows=st.lists(WINDOW, min_size=1, max_size=4),
        mode=st.sampled_from(["append", "update"]),
        lateness=st.sampled_from([0, 3, 8, 20]),
        keyed=st.booleans(),
    )
    def begin(self, windows, mode, lateness, keyed):
        query = wr.query(
            time="t",
            key=["k"] if keyed else [],
            windows={f"window {i}": w for i, w in enumerate(windows)},
            aggregates={"n": wr.count(), "total": wr.sum("v"), "own": OWN},
        )
        self.operator = query.operator(mode=mode, lateness=lateness)
        self.reference = ReferenceOperator(query, mode=mode, lateness=lateness)

    def table(self, events) -> pa.Table:
        """Events at or before the newest time, and a little after it."""
        time, key, value, gap, mark = zip(*events, strict=True)
        times = [max(0, self.now + t) for t in time]
        columns = {"t": times, "k": key, "v": value, "gap": gap, "mark": mark}
        types = {"t": pa.int64(), "k": pa.int64(), "v": pa.int64(), "gap": pa.int64(), "mark": pa.bool_()}
        return pa.table({name: pa.array(list(column), types[name]) for name, column in columns.items()})

    @rule(events=st.lists(EVENT, min_size=1, max_size=6))
    def process(self, events):
        table = self.table(events)
        self.operator.process(table)
        self.reference.process(table)
        self.now = max(self.now, *table["t"].to_pylist())
        self.seen = True
        assert rows_of(self.operator.late()) == rows_of(self.reference.late())

    @rule(events=st.lists(EVENT, max_size=3))
    def process_and_fail(self, events):
        # Not late for any window, and behind where those that were added are complete: an event of no window is not folded.
        ahead = max(0, self.watermark - self.now) + 30
        table = self.table([*events, (ahead, 0, FAILING, 1, False)])
        before = self.operator.snapshot() if self.seen else None
        waits = any(w.layout == "ordered" for w in self.operator.query.windows.values())
        if waits or not self.seen:
            return  # a function may be called when events leave the place where they wait, and not now
        with pytest.raises(UserFunctionError):
            self.operator.process(table)
        assert self.operator.snapshot() == before

    @rule(step=st.integers(-6, 4))
    def advance(self, step):
        self.watermark = max(self.watermark, self.now + step)
        emitted, expected = (each.advance(self.watermark) for each in (self.operator, self.reference))
        if self.seen:
            assert_same(expected, emitted, note=f"advance to {self.watermark}")

    @precondition(lambda self: self.seen and len(self.operator.query.windows) < 6)
    @rule(window=st.sampled_from(sorted(LATER)).flatmap(LATER.__getitem__))
    def add_window(self, window):
        self.added += 1
        start = self.operator.add_window(f"added {self.added}", window)
        self.reference.add_window(f"added {self.added}", window, complete_from=start)

    @precondition(lambda self: self.seen and len(self.operator.query.windows) > 1)
    @rule(data=st.data())
    def remove_window(self, data):
        name = data.draw(st.sampled_from(sorted(self.operator.query.windows)))
        for each in (self.operator, self.reference):
            each.remove_window(name)

    @precondition(lambda self: self.seen and "high" not in self.operator.query.aggregates)
    @rule()
    def add_aggregate(self):
        start = self.operator.add_aggregate("high", wr.max("v"))
        self.reference.add_aggregate("high", wr.max("v"), complete_from=start)

    @precondition(lambda self: self.seen and "high" in self.operator.query.aggregates)
    @rule()
    def remove_aggregate(self):
        for each in (self.operator, self.reference):
            each.remove_aggregate("high")

    @precondition(lambda self: self.seen)
    @rule()
    def restart(self):
        self.operator = Operator.restored(self.operator.query, self.operator.snapshot())

    @precondition(lambda self: self.seen)
    @rule(
        window=st.sampled_from(sorted(LATER)).flatmap(LATER.__getitem__),
        lateness=st.sampled_from([0, 3, 8, 20]),
        data=st.data(),
    )
    def restart_with_another_query(self, window, lateness, data):
        """A window comes, any number of them go, an aggregate comes or goes, and the lateness is another one."""
        old = self.operator.query
        self.added += 1
        came = f"added {self.added}"
        kept = data.draw(st.permutations(sorted(old.windows)))[: data.draw(st.integers(0, 4))]
        windows = dict(data.draw(st.permutations([(came, window), *((n, old.windows[n]) for n in kept)])))
        aggregates = {**old.aggregates, "high": wr.max("v")}
        if "high" in old.aggregates:
            del aggregates["high"]
        names = data.draw(st.permutations(sorted(aggregates)))
        query = wr.query(
            time="t", key=old.key, windows=windows, aggregates={name: aggregates[name] for name in names}
        )
        self.operator = query.restore(self.operator.snapshot(), lateness=lateness)
        since = self.operator.complete_from()
        self.reference.change_lateness(lateness)
        self.reference.add_window(came, window, complete_from=since.get(f"window {came}"))
        for name in old.windows.keys() - windows.keys():
            self.reference.remove_window(name)
        if "high" in aggregates:
            self.reference.add_aggregate("high", wr.max("v"), complete_from=since.get("aggregate high"))
        else:
            self.reference.remove_aggregate("high")
        self.reference.query = query

    def teardown(self) -> None:
        if self.seen:
            assert_same(self.reference.finish(), self.operator.finish(), note="finish")


TestInterleavings = Interleaving.TestCase
TestInterleavings.settings = examples(80)
