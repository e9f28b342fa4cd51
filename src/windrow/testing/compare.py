"""Comparing tables of results: as multisets of rows, floats to the last few bits, all else exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


def plain_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column as plain Python; timestamps, dates and durations as ticks.

    So nothing is lost to `datetime`, which has no nanoseconds and no years beyond 9999.

    >>> import pyarrow as pa
    >>> plain_values(pa.array([1, None], pa.timestamp("ns")))
    [1, None]
    """
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return plain_values(column.cast(type_.value_type))
    if pa.types.is_date32(type_):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(type_):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def rows_of(table: pa.Table) -> list[Row]:
    """A table as plain rows (temporal values as ticks)."""
    columns = {name: plain_values(table[name]) for name in table.column_names}
    return [{name: column[i] for name, column in columns.items()} for i in range(table.num_rows)]


def canonical(value: Any) -> Any:
    """A key value as groups see it: every NaN is one key, -0.0 is 0.0."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two plain values are the same answer.

    >>> same([1, float("nan")], [1, float("nan")]), same(0.0, -0.0), same(None, 0)
    (True, True, False)
    """
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and bool(a == b)


def close(want: Any, got: Any, ulps: float) -> bool:
    """Whether two values are the same, or finite floats that differ by at most `ulps` units in the last place."""
    if same(want, got):
        return True
    floats = isinstance(want, float) and isinstance(got, float)
    return floats and math.isfinite(want) and abs(want - got) <= ulps * math.ulp(want)


def assert_same(expected: pa.Table, actual: pa.Table, *, ulps: float = 3, note: str = "") -> None:
    """Raise an `AssertionError` that shows the first differing row, unless two tables of results agree.

    Row order does not matter, the number of equal rows does. Rows are matched by key, window, start and end,
    and in a changelog by `op` and `revision`.

    Parameters
    ----------
    expected, actual
        Results of queries, with the same columns of the same types.
    ulps
        By how many units in the last place floats may differ; all else is exact.
    note
        What the message begins with.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.testing import assert_same
    >>> events = pa.table({"ts": [1, 2, 7], "x": [0.1, 0.2, 0.3]})
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
    >>> assert_same(q.run(events), q.run(events.take([2, 0, 1])))
    >>> assert_same(q.run(events), q.run(events.slice(1)))
    Traceback (most recent call last):
    ...
    AssertionError: total should be 0.30000000000000004, not 0.2, in the row
      expected window='w', start=0, end=5, total=0.30000000000000004
      actual   window='w', start=0, end=5, total=0.2
    """
    names: list[str] = expected.column_names
    identity = names[: names.index("end") + 1] + [name for name in ("op", "revision") if name in names]
    assert_rows(expected, actual, identity, lambda _, __, want, got: close(want, got, ulps), note=note)


def assert_rows(
    expected: pa.Table,
    actual: pa.Table,
    identity: Sequence[str],
    agree: Callable[[int, str, Any, Any], bool],
    *,
    note: str = "",
    made_of: Callable[[int, str], Any] | None = None,
) -> None:
    """Match rows by the columns of `identity`, and compare all other values by `agree(row, column, want, got)`.

    `made_of(row, column)` is what the expected value was computed from, for the message.
    """
    note = f"{note}: " if note else ""
    assert expected.column_names == actual.column_names, (
        f"{note}expected the columns {expected.column_names}, got {actual.column_names}"
    )
    for field in expected.schema:
        got = actual.schema.field(field.name).type
        assert got == field.type, f"{note}column {field.name!r} should be {field.type}, not {got}"
    wanted, found = rows_of(expected), rows_of(actual)
    places, found_places = _by_identity(wanted, identity), _by_identity(found, identity)
    missing = [wanted[i] for i in _more(places, found_places)]
    extra = [found[i] for i in _more(found_places, places)]
    assert not missing, f"{note}{len(missing)} rows are missing, first: {_show(missing[0])}" + _also(extra)
    assert not extra, f"{note}{len(extra)} rows too many, first: {_show(extra[0])}"

    def differing(i: int, j: int) -> str | None:
        """The first column in which an actual row is not as good as the expected one."""
        names = (name for name in wanted[i] if name not in identity)
        return next((n for n in names if not agree(i, n, wanted[i][n], found[j][n])), None)

    for shared, positions in places.items():
        others = found_places[shared]
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
            + (f"\n  from     {made_of(i, name)!r}" if made_of else "")
        )


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


def _also(extra: list[Row]) -> str:
    return f"; and {len(extra)} rows too many, first: {_show(extra[0])}" if extra else ""


def replay(changelog: pa.Table) -> pa.Table:
    """The table that a changelog builds: insert, update and delete applied in order.

    `insert` adds a row, `update` replaces the one row of its identity (key, window, start, end),
    `delete` takes away all rows of its identity. Each change has the next revision; rows inserted
    together share one, and an identity that was final is numbered from 0 again.

    Parameters
    ----------
    changelog
        Everything that an operator in update mode has emitted, in order.

    Returns
    -------
    The rows that are left, without `op` and `revision`.

    Raises
    ------
    AssertionError
        If a change does not fit what came before: a row that is not there, or a revision that is missing.

    Examples
    --------
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
