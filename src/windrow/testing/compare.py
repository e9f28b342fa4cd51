"""Comparing tables of results: as sets of rows, each value as exactly as its aggregate promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.testing.answers import Answers
from windrow.testing.events import canonical, plain_values
from windrow.testing.registry import reference_of
from windrow.testing.tolerance import same, within_ulps

OUTPUT = ("window", "start", "end", "op", "revision")
Row = dict[str, Any]


def rows_of(table: pa.Table) -> list[Row]:
    """A table as plain rows (temporal values as ticks)."""
    columns = {name: plain_values(table[name]) for name in table.column_names}
    return [{name: column[i] for name, column in columns.items()} for i in range(table.num_rows)]


def _identity(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(canonical(row[name]) for name in names)


def _by_identity(rows: list[Row], names: Sequence[str], whose: str) -> dict[tuple[Any, ...], Row]:
    result: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        identity = _identity(row, names)
        assert identity not in result, f"{whose} rows contain {_show(row)} and {_show(result[identity])}"
        result[identity] = row
    return result


def _show(row: Row) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def _identity_columns(table: pa.Table, aggregates: Mapping[str, Aggregate] | None) -> list[str]:
    """Keys, window, start, end, op and revision: what comes before `end`, and the change columns."""
    names: list[str] = table.column_names
    if aggregates is not None:
        return [name for name in names if name not in aggregates]
    before = names[: names.index("end") + 1]
    return before + [name for name in ("op", "revision") if name in names]


def assert_same(expected: pa.Table | Answers, actual: pa.Table, *, ulps: float = 3, note: str = "") -> None:
    """Raise an `AssertionError` that shows the first differing row, unless the two tables agree.

    Row order does not matter. With `Answers` as `expected` every value is held to what its
    aggregate promises: exact, a few ulp, or the error bound of a sketch. With a table, floats may
    differ by `ulps` units in the last place and all else is exact.

    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.testing import answers, assert_same
    >>> events = pa.table({"ts": [1, 2, 7], "x": [0.1, 0.2, 0.3]})
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
    >>> assert_same(answers(q, events), q.run(events))
    """
    table = expected.table() if isinstance(expected, Answers) else expected
    note = f"{note}: " if note else ""
    assert table.column_names == actual.column_names, (
        f"{note}expected the columns {table.column_names}, got {actual.column_names}"
    )
    for field in table.schema:
        got = actual.schema.field(field.name).type
        assert got == field.type, f"{note}column {field.name!r} should be {field.type}, not {got}"
    aggregates = expected.query.aggregates if isinstance(expected, Answers) else None
    names = _identity_columns(table, aggregates)
    wanted = _by_identity(rows_of(table), names, "expected")
    found = _by_identity(rows_of(actual), names, "actual")
    missing = [row for identity, row in wanted.items() if identity not in found]
    extra = [row for identity, row in found.items() if identity not in wanted]
    assert not missing, f"{note}{len(missing)} rows are missing, first: {_show(missing[0])}" + _also(extra)
    assert not extra, f"{note}{len(extra)} rows too many, first: {_show(extra[0])}"
    inputs = (
        {_identity(row, names): dict(a.inputs) for row, a in zip(rows_of(table), expected, strict=True)}
        if (isinstance(expected, Answers))
        else {}
    )
    for identity, row in wanted.items():
        for name in (n for n in row if n not in names):
            want, got = row[name], found[identity][name]
            if aggregates is None:
                agree = _close(want, got, ulps)
            else:
                events = inputs[identity][name]
                agree = reference_of(aggregates[name]).accepts(aggregates[name], events, want, got)
            assert agree, (
                f"{note}{name} should be {want!r}, not {got!r}, in the row\n"
                f"  expected {_show(row)}\n  actual   {_show(found[identity])}"
                + (f"\n  from     {inputs[identity][name]!r}" if aggregates is not None else "")
            )


def _also(extra: list[Row]) -> str:
    return f"; and {len(extra)} rows too many, first: {_show(extra[0])}" if extra else ""


def _close(want: Any, got: Any, ulps: float) -> bool:
    if isinstance(want, float) and isinstance(got, float):
        return within_ulps(want, got, ulps)
    return same(want, got)


def replay(changelog: pa.Table) -> pa.Table:
    """The table that a changelog builds: insert, update and delete applied in order.

    >>> import pyarrow as pa
    >>> log = pa.table({
    ...     "window": ["w", "w"], "start": [0, 0], "end": [5, 5], "n": [1, 2],
    ...     "op": ["insert", "update"], "revision": [0, 1],
    ... })
    >>> replay(log).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 5, 'n': 2}]
    """
    names = changelog.column_names[: changelog.column_names.index("end") + 1]
    state: dict[tuple[Any, ...], int] = {}
    revisions: dict[tuple[Any, ...], int] = {}
    for position, row in enumerate(rows_of(changelog)):
        identity, op = _identity(row, names), row["op"]
        assert op in ("insert", "update", "delete"), f"unknown op in {_show(row)}"
        present = identity in state
        assert present == (op != "insert"), (
            f"{op} of a row that is {'' if present else 'not '}there: {_show(row)}"
        )
        if present and op == "update":
            assert row["revision"] == revisions[identity] + 1, f"a revision is missing before {_show(row)}"
        if op == "delete":
            del state[identity]
            continue
        state[identity], revisions[identity] = position, row["revision"]
    kept = changelog.take(pa.array(sorted(state.values()), pa.int64()))
    return kept.drop_columns(["op", "revision"])
