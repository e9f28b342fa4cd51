"""`run(partial=False)`: windows that the events fill, and no others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import QueryError
from windrow.testing.compare import assert_same

WINDOWS = {
    "tumbling": wr.tumbling(4),
    "sliding": wr.sliding(7, every=3),
    "session": wr.session(2),
    "rows": wr.sliding(rows=3, every_rows=2),
}
QUERY = wr.query(time="t", key="k", windows=WINDOWS, aggregates={"n": wr.count()})


@given(rows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1)), max_size=30), ordered=st.booleans())
def test_windows_are_left_out_that_reach_beyond_the_events(rows, ordered):
    rows = sorted(rows) if ordered else rows
    table = pa.table(
        {"t": pa.array([t for t, _ in rows], pa.int64()), "k": pa.array([k for _, k in rows], pa.int64())}
    )
    whole = QUERY.run(table)
    filled = QUERY.run(table, partial=False)
    first, end = min([t for t, _ in rows], default=0), max([t for t, _ in rows], default=0) + 1

    def is_filled(row):
        if row["window"] == "rows":
            return row["n"] == 3
        over = row["end"] < end if row["window"] == "session" else row["end"] <= end
        return row["start"] >= first and over

    expected = whole.filter(pa.array([is_filled(row) for row in whole.to_pylist()], pa.bool_()))
    assert_same(expected, filled)
    assert_same(expected, QUERY.run(iter(table.to_batches(max_chunksize=3) or [table]), partial=False))


def test_spans_and_other_words_are_refused():
    spans = wr.query(time=wr.span("t", "u"), windows={"w": wr.tumbling(4)}, aggregates={"n": wr.count()})
    with pytest.raises(QueryError, match="these last"):
        spans.run(pa.table({"t": [1], "u": [2]}), partial=False)
    with pytest.raises(QueryError, match="partial is True or False"):
        QUERY.run(pa.table({"t": [1], "k": [1]}), partial=0)
