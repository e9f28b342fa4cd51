"""Early rows under any interleaving: a changelog that says after each look what the end would say, and in the end what append says.

The machine is that of `test_interleavings`; the reference operator gives out each window once, when it is final.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import pyarrow.compute as pc
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from profiles import examples

import windrow as wr
from tests.conformance.test_interleavings import EVENT, LATER, OWN, WINDOW, Interleaving
from tests.referee.stream import ReferenceOperator
from windrow.engine.operator import Operator
from windrow.testing.compare import rows_of
from windrow.triggers import When


def is_odd(n):
    """A condition that may hold no longer when an event comes."""
    return n % 2 == 1


EMIT = st.one_of(
    st.just(wr.each_batch()),
    st.integers(1, 9).map(wr.every_rows),
    st.integers(1, 15).map(wr.every),
    st.just(wr.when(pc.field("total") > 12)),
    st.just(wr.when(is_odd)),
)
COMPARED = ("n", "total", "own")


def rows_in(table):
    """Rows as (identity, values), and what they do."""
    for row in table.to_pylist():
        identity = tuple(row.get(name) for name in ("k", "window", "start", "end"))
        yield identity, tuple(row[name] for name in COMPARED), row


class EarlyInterleaving(Interleaving):
    """The operator gives out early rows; the reference those of append mode."""

    @initialize(
        windows=st.lists(WINDOW, min_size=1, max_size=4),
        emit=EMIT,
        lateness=st.sampled_from([0, 3, 8, 20]),
        keyed=st.booleans(),
    )
    def begin(self, windows, emit, lateness, keyed):
        aggregates = {"n": wr.count(), "total": wr.sum("v"), "own": OWN}
        named = {f"window {i}": window for i, window in enumerate(windows)}
        query = wr.query(time="t", key="k" if keyed else None, windows=named, aggregates=aggregates)
        self.emit = emit
        self.operator = query.operator(mode="update", lateness=lateness, emit=emit)
        self.reference = ReferenceOperator(query, lateness=lateness)
        self.told: dict = {}
        self.final: Counter = Counter()
        self.fresh_windows: set[str] = set()

    def take(self, rows, expected) -> None:
        """Replay rows; the final ones are those of append mode, and after a look the others are those of an end."""
        final: Counter = Counter()
        deleted: dict = {}
        for identity, values, row in rows_in(rows):
            there = self.told.get(identity, [])
            if row["op"] == "delete":
                assert there
                assert not row["final"]
                deleted[identity] = row["revision"]
                del self.told[identity]
                continue
            if row["op"] == "update":
                assert len(there) == 1
                assert row["revision"] > there[0][1]
                self.told[identity] = [(values, row["revision"], row["final"])]
            else:
                assert row["op"] == "insert"
                assert row["revision"] > deleted.get(identity, -1)
                self.told.setdefault(identity, []).append((values, row["revision"], row["final"]))
            if row["final"]:
                final[identity, values] += 1
        now = Counter((identity, values) for identity, values, _ in rows_in(expected))
        assert final == now
        self.final += now
        looked = self.operator.looked_events == self.operator.counters.events
        if looked and not self.fresh_windows and not isinstance(self.emit, When):
            self.check_look()

    def check_look(self) -> None:
        """What was told so far is what the end would say, but for an open window with the identity of a final one."""
        ended = rows_in(deepcopy(self.reference).finish())
        expected = self.final + Counter((identity, values) for identity, values, _ in ended)
        told = Counter((identity, row[0]) for identity, rows in self.told.items() for row in rows)
        assert not told - expected
        shared = Counter(identity for identity, _ in expected.elements())
        assert all(shared[identity] > 1 for identity, _ in expected - told)

    @rule(events=st.lists(st.nothing(), max_size=0))
    def process_and_fail(self, events):
        """Failures are those of the other machine."""

    @rule(events=st.lists(EVENT, min_size=1, max_size=6))
    def process(self, events):
        table = self.table(events)
        rows = self.operator.process(table)
        self.reference.process(table)
        self.now = max(self.now, *table["t"].to_pylist())
        self.seen = True
        if self.operator.looked_events == self.operator.counters.events:
            self.fresh_windows.clear()
        assert rows_of(self.operator.late()) == rows_of(self.reference.late())
        self.take(rows, rows.slice(0, 0))

    @rule(step=st.integers(-6, 4))
    def advance(self, step):
        self.watermark = max(self.watermark, self.now + step)
        rows, expected = (each.advance(self.watermark) for each in (self.operator, self.reference))
        if self.seen:
            self.take(rows, expected)

    @precondition(lambda self: self.seen and len(self.operator.query.windows) < 6)
    @rule(window=st.sampled_from(sorted(LATER)).flatmap(LATER.__getitem__))
    def add_window(self, window):
        super().add_window(window)
        self.fresh_windows.add(f"added {self.added}")

    @precondition(lambda self: self.seen and len(self.operator.query.windows) > 1)
    @rule(data=st.data())
    def remove_window(self, data):
        super().remove_window(data)
        self.forget_removed()

    def forget_removed(self) -> None:
        names = self.operator.query.windows
        self.told = {identity: rows for identity, rows in self.told.items() if identity[1] in names}
        self.final = Counter({row: n for row, n in self.final.items() if row[0][1] in names})

    @precondition(lambda self: self.seen)
    @rule()
    def restart(self):
        self.operator = Operator.restored(self.operator.query, self.operator.snapshot(), emit=self.emit)

    @precondition(lambda self: False)
    @rule()
    def restart_with_another_query(self):
        """Changes of the query are those of the other machine."""

    def teardown(self) -> None:
        if self.seen:
            self.take(self.operator.finish(), self.reference.finish())
            self.check_look()


TestEarly = EarlyInterleaving.TestCase
TestEarly.settings = settings(examples(40), stateful_step_count=20)
