"""Windows of the user's own that end by the watermark: a session in plain Python, beside the one that is built in."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.referee.stream import ReferenceOperator
from windrow.errors import QueryError, UserFunctionError
from windrow.testing.compare import assert_same

GAP = 4


def visit(state, t):
    """One window after the other, as long as events come."""
    return (1, t), int(state[0] == 0), 0


def over(state):
    """Behind the gap after the last event."""
    return state[1] + GAP + 1


def pairs(state, v):
    """Every other event begins a window, and a seven ends the oldest one."""
    opened = state[0]
    ends = int(v == 7 and opened > 0)
    begins = int(v % 2 == 0)
    return (opened + begins - ends, v), begins, ends


def soon(state):
    """At a time that has nothing to do with the last event."""
    return state[1] * 5


VISIT = wr.deterministic(visit, state=(0, 0), at_watermark=over)
PAIRS = wr.deterministic(pairs, state=(0, 0), at_watermark=soon)
STREAM = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8), st.integers(0, 1)), min_size=1, max_size=5),
        st.one_of(st.none(), st.integers(0, 45)),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def table(rows):
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(list(c), pa.int64()) for name, c in zip("tvk", columns, strict=True)})


@given(stream=STREAM, mode=st.sampled_from(["append", "update"]), lateness=st.sampled_from([0, 6]))
def test_windows_end_by_the_watermark_or_with_an_event_behind_it(stream, mode, lateness):
    q = wr.query(
        time="t",
        key="k",
        windows={"visit": VISIT, "pairs": PAIRS, "rows": wr.tumbling(rows=2)},
        aggregates={"n": wr.count(), "v": wr.sum("v")},
    )
    operator = q.operator(mode=mode, lateness=lateness)
    reference = ReferenceOperator(q, mode=mode, lateness=lateness)
    mark = 0
    for rows, watermark, restarts in stream:
        operator.process(table(rows))
        reference.process(table(rows))
        if watermark is not None:
            mark = max(mark, watermark)
            assert_same(reference.advance(mark), operator.advance(mark), note=f"advance to {mark}")
        if restarts:
            operator = q.restore(operator.snapshot())
    assert_same(reference.finish(), operator.finish())


@given(stream=STREAM)
def test_a_session_of_the_user_is_the_one_that_is_built_in(stream):
    q = wr.query(
        time="t", key="k", windows={"own": VISIT, "built in": wr.session(GAP)}, aggregates={"n": wr.count()}
    )
    operator = q.operator()
    mark = 0
    for rows, watermark, _ in stream:
        operator.process(table([row for row in rows if row[0] >= mark] or [(100, 0, 0)]))
        mark = max(mark, watermark or 0)
        found = operator.advance(mark).to_pylist()
        own = {(r["k"], r["start"], r["end"] - 1, r["n"]) for r in found if r["window"] == "own"}
        assert own == {(r["k"], r["start"], r["end"], r["n"]) for r in found if r["window"] == "built in"}


def test_functions_that_cannot_be_compiled_do_the_same():
    def slow(state):
        return sorted([state[1] + GAP + 1, *[]])[0] + len(str(globals().get("x", "")))

    events = table([(t, 0, 0) for t in (1, 3, 9, 20)])
    compiled, plain = (
        wr.query(
            time="t",
            windows={"w": wr.deterministic(visit, state=(0, 0), at_watermark=end)},
            aggregates={"n": wr.count()},
        )
        for end in (over, slow)
    )
    with pytest.warns(UserWarning, match="slow"):
        found = plain.run(events)
    assert_same(compiled.run(events), found)


def test_a_query_goes_on_without_such_a_window():
    q = wr.query(time="t", windows={"w": VISIT, "x": wr.tumbling(rows=2)}, aggregates={"n": wr.count()})
    op = q.operator()
    op.process(table([(1, 0, 0), (3, 0, 0), (4, 0, 0)]))
    without = wr.query(time="t", windows={"x": wr.tumbling(rows=2)}, aggregates={"n": wr.count()})
    assert without.restore(op.snapshot()).finish()["n"].to_pylist() == [2, 1]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(QueryError, match=r"at_watermark\(state\)"):
        wr.deterministic(visit, state=(0, 0), at_watermark=lambda a, b: a)
    for end, said in (
        (lambda state: state[1] / 2, "in ticks is needed"),
        (lambda state: 1 // state[1], "Zero"),
    ):
        w = wr.deterministic(visit, state=(0, 0), at_watermark=end)
        q = wr.query(time="t", windows={"w": w}, aggregates={"n": wr.count()})
        with pytest.raises(UserFunctionError, match=said):
            q.run(table([(0, 0, 0), (9, 0, 0)]))
