"""Windows that depend on the events: every type, every aggregate, in order and out of it.

What the engine says is compared with the oracle where all data is there, and with the reference
operator step by step where it comes bit by bit.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import AGGREGATES, GROUPS, SEQUENCES, fixed_stream

import windrow as wr
from tests.referee import answers, assert_same, check_steps
from tests.referee.strategies import SIGNALS, in_ticks, length, mixed_queries, schedules, streams

MODES = ("append", "update")
TIMES = (pa.int64(), pa.timestamp("us", "UTC"), pa.float64())
COLUMNS = {"x": "int", "s": "string"}
FEW = {"n": wr.count(), "total": wr.sum("x"), "letters": wr.concat("s"), "last": wr.last("x")}


def in_batches(table: pa.Table, *, size: int, behind: int) -> list[tuple[str, object]]:
    """Batches of `size`, each followed by an advance to `behind` ticks before the latest event."""
    steps: list[tuple[str, object]] = []
    latest = None
    for first in range(0, table.num_rows, size):
        batch = table.slice(first, size)
        ticks = batch["time"].to_pylist()
        latest = max(ticks) if latest is None else max(latest, *ticks)
        steps += [("process", batch), ("advance", latest - behind)]
    return steps


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_in_every_window(name, group):
    aggregate, kinds = AGGREGATES[name]
    windows = {window: SEQUENCES[window] for window in GROUPS[group]}
    query = wr.query(time="time", key="key0", windows=windows, aggregates={"a": aggregate})
    kinds = {"z": "bool", **kinds}
    disordered = fixed_stream(kinds, size=28, span=45, seed=1)
    in_order = disordered.sort_by("time")
    ties = fixed_stream(kinds, size=28, span=5, seed=2)
    for note, table in (("in order", in_order), ("out of order", disordered), ("equal times", ties)):
        assert_same(answers(query, table), query.run(table), note=note)
    nearly = pa.concat_tables([in_order.take(list(range(k, 28, 3))) for k in range(3)])
    check_steps(query, in_batches(nearly, size=6, behind=4), mode="update", lateness=20)


@pytest.mark.parametrize("name", SEQUENCES)
@given(data=st.data())
def test_every_window_agrees_with_the_oracle(name, data):
    time = data.draw(st.sampled_from(TIMES))
    table = data.draw(streams(time=time, key=["bool"], columns=SIGNALS | COLUMNS, spread=12))
    windows = {"w": in_ticks(SEQUENCES[name], time)}
    query = wr.query(time="time", key="key0", windows=windows, aggregates=FEW)
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SEQUENCES)
@examples(20)
@given(data=st.data())
def test_every_window_agrees_step_by_step(name, mode, data):
    time = data.draw(st.sampled_from(TIMES))
    table = data.draw(streams(time=time, key=["bool"], columns=SIGNALS | COLUMNS, spread=9, min_size=4))
    windows = {"w": in_ticks(SEQUENCES[name], time)}
    query = wr.query(time="time", key="key0", windows=windows, aggregates=FEW)
    steps = data.draw(schedules(table, behind=3, eager=data.draw(st.booleans())))
    check_steps(query, steps, mode=mode, lateness=length(data.draw(st.sampled_from([0, 3, 15])), time))


@pytest.mark.parametrize("time", TIMES, ids=str)
@examples(40)
@given(data=st.data())
def test_mixed_queries_agree_with_the_oracle(time, data):
    table = data.draw(streams(time=time, key=["string"], columns=SIGNALS | COLUMNS, spread=15))
    query = data.draw(mixed_queries(time=time, key=["string"], columns=COLUMNS))
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("mode", MODES)
@examples(120)
@given(data=st.data())
def test_mixed_queries_agree_step_by_step(mode, data):
    time = data.draw(st.sampled_from(TIMES))
    table = data.draw(streams(time=time, key=["string"], columns=SIGNALS | COLUMNS, spread=9, min_size=4))
    query = data.draw(mixed_queries(time=time, key=["string"], columns=COLUMNS))
    steps = data.draw(schedules(table, behind=4, eager=data.draw(st.booleans())))
    check_steps(query, steps, mode=mode, lateness=length(data.draw(st.sampled_from([0, 4, 20])), time))


@pytest.mark.parametrize("key", [(), ("int", "string"), ("float",)], ids=lambda key: "-".join(key) or "none")
@given(data=st.data())
def test_keys_of_every_shape_have_sequences_of_their_own(key, data):
    table = data.draw(streams(time=pa.int64(), key=key, columns=SIGNALS | COLUMNS, spread=9))
    names = [f"key{i}" for i in range(len(key))]
    windows = {n: SEQUENCES[n] for n in ("session", "count tumbling", "marks", "latest")}
    query = wr.query(time="time", key=names, windows=windows, aggregates=FEW)
    assert_same(answers(query, table), query.run(table))
