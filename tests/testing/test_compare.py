"""What counts as the same result, and what a changelog adds up to."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from windrow.testing import assert_same, replay


def rows(**columns: list[object]) -> pa.Table:
    size = len(next(iter(columns.values())))
    return pa.table({"window": ["w"] * size, "start": list(range(size)), "end": [9] * size, **columns})


def test_row_order_does_not_matter():
    table = rows(x=[1, 2, 3])
    assert_same(table, table.take([2, 0, 1]))


def test_nan_equals_nan_and_negative_zero_equals_zero():
    assert_same(rows(x=[math.nan, 0.0]), rows(x=[math.nan, -0.0]))


def test_a_missing_row_is_shown():
    with pytest.raises(AssertionError, match=r"1 rows are missing, first: window='w', start=1"):
        assert_same(rows(x=[1, 2]), rows(x=[1]))


def test_a_row_too_many_is_shown():
    with pytest.raises(AssertionError, match="1 rows too many"):
        assert_same(rows(x=[1]), rows(x=[1, 2]))


def test_a_row_that_is_there_twice_is_shown():
    table = rows(x=[1])
    with pytest.raises(AssertionError, match="1 rows too many"):
        assert_same(table, pa.concat_tables([table, table]))


def sharing(*values: object) -> pa.Table:
    """Rows of one identity."""
    size = len(values)
    return pa.table({"window": ["w"] * size, "start": [0] * size, "end": [9] * size, "x": values})


def test_rows_that_share_an_identity_are_compared_in_any_order():
    assert_same(sharing(1, 2, 2), sharing(2, 1, 2))
    with pytest.raises(AssertionError, match="these rows share an identity"):
        assert_same(sharing(1, 2, 2), sharing(1, 1, 2))
    with pytest.raises(AssertionError, match="1 rows are missing"):
        assert_same(sharing(1, 2, 2), sharing(1, 2))


def test_rows_that_share_an_identity_are_paired_so_that_all_of_them_fit():
    low, middle, high = 1.0, 1.0 + 2**-52, 1.0 + 2**-51
    assert_same(sharing(middle, low), sharing(middle, high), ulps=1)
    assert_same(sharing(low, middle), sharing(middle, high), ulps=1)
    with pytest.raises(AssertionError, match="these rows share an identity"):
        assert_same(sharing(low, low), sharing(middle, high), ulps=1)


def test_a_different_value_is_shown_with_its_row():
    with pytest.raises(AssertionError, match="x should be 2, not 3"):
        assert_same(rows(x=[1, 2]), rows(x=[1, 3]))


def test_a_different_type_is_shown():
    with pytest.raises(AssertionError, match="column 'x' should be int64, not double"):
        assert_same(rows(x=[1]), rows(x=[1.0]))


def changelog(*changes: tuple[str, int, int, int]) -> pa.Table:
    ops, revisions, starts, counts = zip(*changes, strict=True)
    size = len(changes)
    return pa.table(
        {
            "window": ["w"] * size,
            "start": starts,
            "end": [9] * size,
            "n": counts,
            "op": ops,
            "revision": revisions,
        }
    )


def test_replay_applies_changes_in_order():
    log = changelog(("insert", 0, 1, 10), ("insert", 0, 2, 20), ("update", 1, 1, 11), ("delete", 1, 2, 20))
    assert replay(log).to_pylist() == [{"window": "w", "start": 1, "end": 9, "n": 11}]


def test_replay_deletes_and_inserts_rows_of_one_identity_together():
    log = changelog(
        ("insert", 0, 1, 10),
        ("insert", 0, 1, 20),
        ("delete", 1, 1, 0),
        ("insert", 2, 1, 11),
        ("insert", 2, 1, 21),
        ("insert", 2, 1, 31),
    )
    assert replay(log)["n"].to_pylist() == [11, 21, 31]


def test_replay_adds_a_row_to_an_identity_that_was_final():
    assert replay(changelog(("insert", 0, 1, 10), ("update", 1, 1, 11), ("insert", 0, 1, 20)))[
        "n"
    ].to_pylist() == [11, 20]


def test_replay_refuses_a_changelog_that_makes_no_sense():
    with pytest.raises(AssertionError, match="update of a row that is not there"):
        replay(changelog(("update", 1, 1, 10)))
    with pytest.raises(AssertionError, match="delete of a row that is not there"):
        replay(changelog(("insert", 0, 1, 10), ("delete", 1, 1, 0), ("delete", 2, 1, 0)))
    with pytest.raises(AssertionError, match="update of one of 2 rows"):
        replay(changelog(("insert", 0, 1, 10), ("insert", 0, 1, 10), ("update", 1, 1, 10)))
    for changes in (
        [("insert", 0, 1, 10), ("update", 2, 1, 10)],
        [("insert", 1, 1, 10)],
        [("insert", 0, 1, 10), ("insert", 1, 1, 10)],
        [("insert", 0, 1, 10), ("delete", 1, 1, 0), ("insert", 0, 1, 10)],
    ):
        with pytest.raises(AssertionError, match="a revision is missing"):
            replay(changelog(*changes))
