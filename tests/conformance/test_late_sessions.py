"""What README, docs/windows.md and docs/spark.md say of late events and sessions."""

from __future__ import annotations

import pyarrow as pa

import windrow as wr


def test_an_event_whose_own_session_would_be_final_is_late_though_it_touches_a_live_one() -> None:
    q = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()})
    op = q.operator()
    op.process(pa.table({"t": [10, 14]}))
    op.advance(16)  # the session [10, 19) is live: an event at 10 would be in it
    op.process(pa.table({"t": [10]}))
    assert op.late()["t"].to_pylist() == [10]
    assert op.finish().to_pylist() == [{"window": "s", "start": 10, "end": 19, "n": 2}]


def test_an_event_whose_own_session_is_not_final_joins_the_live_one() -> None:
    q = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()})
    op = q.operator()
    op.process(pa.table({"t": [10, 14]}))
    op.advance(16)
    op.process(pa.table({"t": [11]}))  # alone it would be [11, 16), which an event at 16 would still join
    assert op.late().num_rows == 0
    assert op.finish()["n"].to_pylist() == [3]
