"""Results as Arrow has them: whatever engines and calls they come from, they are one table like any other."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import windrow as wr

EVENTS = pa.table({"t": [1, 2, 7, 30], "x": [1, 2, 3, 4]})
WINDOWS = {"time": wr.tumbling(5), "session": wr.session(3), "rows": wr.tumbling(rows=2)}


def query(*, ordered: bool = False) -> wr.Query:
    return wr.query(time="t", windows=WINDOWS, aggregates={"n": wr.count()}, ordered=ordered)


def in_one_run() -> pa.Table:
    return query().run(EVENTS)


def in_one_call() -> pa.Table:
    operator = query().operator()
    operator.process(EVENTS)
    return operator.advance(40)


def in_one_call_of_many_batches() -> pa.Table:
    operator = query(ordered=True).operator()
    rows = operator.process(iter(EVENTS.to_batches(max_chunksize=1)))
    return pa.concat_tables([rows, operator.finish()]).unify_dictionaries()


@pytest.mark.parametrize("answer", [in_one_run, in_one_call, in_one_call_of_many_batches])
def test_results_of_several_engines_can_be_grouped_and_written(answer: Callable[[], pa.Table]) -> None:
    rows = answer()
    sums = rows.group_by("window").aggregate([("n", "sum")])
    assert dict(zip(sums["window"].to_pylist(), sums["n_sum"].to_pylist(), strict=True)) == {
        "time": 4,
        "session": 4,
        "rows": 4,
    }
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    assert pa.ipc.open_file(sink.getvalue()).read_all().equals(rows)
