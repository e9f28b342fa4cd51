"""Comparing with the referee's answers: each value as exactly as its aggregate promises."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.referee.answers import Answers, reference_in
from windrow.testing import assert_same as assert_same_tables
from windrow.testing.compare import assert_rows, close


def assert_same(expected: pa.Table | Answers, actual: pa.Table, *, ulps: float = 3, note: str = "") -> None:
    """As that of `windrow.testing`; with `Answers` every value is held to what its aggregate promises.

    That is the very value, a few ulp, or the error bound of a sketch.

    >>> import windrow as wr, pyarrow as pa
    >>> from tests.referee import answers, assert_same
    >>> events = pa.table({"ts": [1, 2, 7], "x": [0.1, 0.2, 0.3]})
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
    >>> assert_same(answers(q, events), q.run(events))
    """
    if not isinstance(expected, Answers):
        assert_same_tables(expected, actual, ulps=ulps, note=note)
        return
    query, rows = expected.query, list(expected)
    table = expected.table()

    def agree(i: int, name: str, want: Any, got: Any) -> bool:
        if rows[i].op == "delete":
            return close(want, got, ulps)
        aggregate = query.aggregates[name]
        return reference_in(query, aggregate).accepts(aggregate, rows[i].inputs[name], want, got)

    identity = [name for name in table.column_names if name not in query.aggregates]
    assert_rows(table, actual, identity, agree, note=note, made_of=lambda i, name: rows[i].inputs[name])
