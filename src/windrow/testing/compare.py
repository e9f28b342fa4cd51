"""Comparing tables of results: as multisets of rows, each value as exactly as its aggregate promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.testing.answers import Answers, reference_in
from windrow.testing.events import canonical, plain_values
from windrow.testing.tolerance import same, within_ulps

OUTPUT = ("window", "start", "end", "op", "revision")
Row = dict[str, Any]


def rows_of(table: pa.Table) -> list[Row]:
    """A table as plain rows (temporal values as ticks)."""
    columns = {name: plain_values(table[name]) for name in table.column_names}
    return [{name: column[i] for name, column in columns.items()} for i in range(table.num_rows)]


def _identity(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(canonical(row[name]) for name in names)


def _by_identity(rows: list[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[int]]:
    """Positions of rows by identity: two windows over equal times can share one."""
    result: dict[tuple[Any, ...], list[int]] = {}
    for position, row in enumerate(rows):
        result.setdefault(_identity(row, names), []).append(position)
    return result


def _more(these: dict[tuple[Any, ...], list[int]], others: dict[tuple[Any, ...], list[int]]) -> list[int]:
    """Positions of rows of `these` for which `others` have no counterpart of the same identity."""
    return [i for identity, found in these.items() for i in found[len(others.get(identity, ())) :]]


def _matched(left: list[int], right: list[int], agree: Callable[[int, int], bool]) -> bool:
    """Whether each of `left` can be paired with one of `right` that agrees with it."""
    taken: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j in right:
            if j not in tried and agree(i, j):
                tried.add(j)
                if j not in taken or place(taken[j], tried):
                    taken[j] = i
                    return True
        return False

    return all(place(i, set()) for i in left)


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

    Row order does not matter, the number of equal rows does. With `Answers` as `expected` every value
    is held to what its aggregate promises: exact, a few ulp, or the error bound of a sketch. With a
    table, floats may differ by `ulps` units in the last place and all else is exact.

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
    wanted, found = rows_of(table), rows_of(actual)
    places, found_places = _by_identity(wanted, names), _by_identity(found, names)
    missing = [wanted[i] for i in _more(places, found_places)]
    extra = [found[i] for i in _more(found_places, places)]
    assert not missing, f"{note}{len(missing)} rows are missing, first: {_show(missing[0])}" + _also(extra)
    assert not extra, f"{note}{len(extra)} rows too many, first: {_show(extra[0])}"
    inputs = [dict(answer.inputs) for answer in expected] if isinstance(expected, Answers) else []

    def differing(i: int, j: int) -> str | None:
        """The first column in which an actual row is not as good as the expected one."""
        for name in (n for n in wanted[i] if n not in names):
            want, got = wanted[i][name], found[j][name]
            if not isinstance(expected, Answers) or wanted[i].get("op") == "delete":
                agree = _close(want, got, ulps)
            else:
                aggregate = expected.query.aggregates[name]
                accepts = reference_in(expected.query, aggregate).accepts
                agree = accepts(aggregate, inputs[i][name], want, got)
            if not agree:
                return name
        return None

    for identity, positions in places.items():
        others = found_places[identity]
        if len(positions) > 1:
            assert _matched(positions, others, lambda i, j: differing(i, j) is None), (
                f"{note}these rows share an identity, and their values differ\n"
                + "".join(f"  expected {_show(wanted[i])}\n" for i in positions)
                + "".join(f"  actual   {_show(found[j])}\n" for j in others)
            )
            continue
        i, j = positions[0], others[0]
        name = differing(i, j)
        assert name is None, (
            f"{note}{name} should be {wanted[i][name]!r}, not {found[j][name]!r}, in the row\n"
            f"  expected {_show(wanted[i])}\n  actual   {_show(found[j])}"
            + (f"\n  from     {inputs[i][name]!r}" if inputs else "")
        )


def _also(extra: list[Row]) -> str:
    return f"; and {len(extra)} rows too many, first: {_show(extra[0])}" if extra else ""


def _close(want: Any, got: Any, ulps: float) -> bool:
    if isinstance(want, float) and isinstance(got, float):
        return within_ulps(want, got, ulps)
    return same(want, got)


def replay(changelog: pa.Table) -> pa.Table:
    """The table that a changelog builds: insert, update and delete applied in order.

    `insert` adds a row, `update` replaces the one row of its identity (key, window, start, end),
    `delete` takes away all rows of its identity. Each change has the next revision; rows inserted
    together share one, and an identity that was final is numbered from 0 again.

    >>> import pyarrow as pa
    >>> log = pa.table({
    ...     "window": ["w", "w"], "start": [0, 0], "end": [5, 5], "n": [1, 2],
    ...     "op": ["insert", "update"], "revision": [0, 1],
    ... })
    >>> replay(log).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 5, 'n': 2}]
    """
    names = changelog.column_names[: changelog.column_names.index("end") + 1]
    state: dict[tuple[Any, ...], list[int]] = {}
    last: dict[tuple[Any, ...], Row] = {}
    for position, row in enumerate(rows_of(changelog)):
        identity, op, revision = _identity(row, names), row["op"], row["revision"]
        assert op in ("insert", "update", "delete"), f"unknown op in {_show(row)}"
        present, before = state.setdefault(identity, []), last.get(identity)
        assert op == "insert" or present, f"{op} of a row that is not there: {_show(row)}"
        allowed = {0} if before is None else {before["revision"] + 1}
        if op == "insert" and before is not None and before["op"] != "delete":
            allowed = {before["revision"], 0} if before["op"] == "insert" else {0}
        assert revision in allowed, f"a revision is missing before {_show(row)}"
        if op == "update":
            assert len(present) == 1, f"update of one of {len(present)} rows: {_show(row)}"
        if op != "insert":
            present.clear()
        if op != "delete":
            present.append(position)
        last[identity] = row
    kept = changelog.take(pa.array(sorted(i for rows in state.values() for i in rows), pa.int64()))
    return kept.drop_columns(["op", "revision"])
