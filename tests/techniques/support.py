"""How a technique is driven beside the engine, and the techniques themselves."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import windrow as wr
from benchmarks import techniques
from tests.referee import assert_same
from tests.referee.strategies import in_ticks, length

ANY_ORDER = (
    techniques.TupleBuffer,
    techniques.ReactiveAggregator,
    techniques.BaseIntervals,
    techniques.TupleBuckets,
    techniques.AggregateBuckets,
)
IN_ORDER = (techniques.Panes, techniques.Pairs, techniques.PairsPlus, techniques.Cutty)
KEEPING = (techniques.TupleBuffer, techniques.TupleBuckets)


def periodic(scale: float = 1) -> st.SearchStrategy[Any]:
    """Tumbling, sliding and cumulate windows of a few ticks."""
    sizes = st.integers(1, 20).map(lambda i: i * scale)
    offsets = st.integers(-7, 7).map(lambda i: i * scale)
    return st.one_of(
        st.builds(lambda n, o: wr.tumbling(n, offset=o), sizes, offsets),
        st.builds(lambda n, e, o: wr.sliding(n, every=e, offset=o), sizes, sizes, offsets),
        st.builds(
            lambda step, i, o: wr.cumulate(step * i, step=step, offset=o), sizes, st.integers(1, 4), offsets
        ),
    )


def sessions(scale: float = 1) -> st.SearchStrategy[Any]:
    """Sessions with a gap of a few ticks."""
    return st.integers(1, 12).map(lambda i: wr.session(i * scale))


def several(windows: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One to three of these windows, named."""
    lists = st.lists(windows, min_size=1, max_size=3)
    return lists.map(lambda found: {f"w{i}": window for i, window in enumerate(found)})


def agree(technique: Any, query: Any, steps: list[tuple[str, Any]], lateness: Any = 0) -> Any:
    """Drive a technique and the engine by the same steps, and compare what each of them gives."""
    type_ = steps[0][1].schema.field("time").type
    query, lateness = in_ticks(query, type_), length(lateness, type_)
    ours, engine = technique(query, lateness=lateness), query.operator(lateness=lateness)
    for number, (step, argument) in enumerate(steps):
        if step == "process":
            ours.process(argument)
            engine.process(argument)
        else:
            assert_same(engine.advance(argument), ours.advance(argument), note=f"step {number}")
    assert_same(engine.finish(), ours.finish(), note="at the end")
    late, expected = ours.late(), engine.late()
    assert len(late) == len(expected)
    assert not len(late) or late["time"].equals(expected["time"])
    assert ours.counters.partials == ours.counters.tuples == 0
    return ours
