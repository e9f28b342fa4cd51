"""What counts as the same result, and what a changelog adds up to."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import windrow as wr
from windrow.testing import answers, assert_same, replay


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


def judged(aggregate: wr.Aggregate, values: list[object], wrong: object) -> None:
    """Compare an answer with one whose value was replaced."""
    table = pa.table({"t": list(range(len(values))), "x": values})
    query = wr.query(time="t", windows={"w": wr.tumbling(100)}, aggregates={"a": aggregate})
    expected = answers(query, table)
    actual = expected.table()
    column = pa.array([wrong], actual.schema.field("a").type)
    assert_same(expected, actual.set_column(actual.column_names.index("a"), "a", column))


def test_a_float_sum_may_be_two_ulp_off_and_no_more():
    judged(wr.sum("x"), [1.0, 2.0], 3.0 + 2 * math.ulp(3.0))
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.sum("x"), [1.0, 2.0], 3.0 + 3 * math.ulp(3.0))


def test_a_variance_of_equal_values_is_exactly_zero():
    judged(wr.variance("x"), [0.1, 0.1, 0.1], 0.0)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.variance("x"), [0.1, 0.1, 0.1], 1e-33)


def test_a_variance_may_be_off_by_its_rounding():
    judged(wr.variance("x"), [1e9, 1e9 + 1], 0.5 + 1e-10)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.variance("x"), [1.0, 2.0], 0.5 + 1e-6)


def test_quantiles_and_extremes_are_exact():
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.median("x"), [1.0, 2.0], 1.5 + math.ulp(1.5))
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.max("x"), [1.0, 2.0], 2.0 + math.ulp(2.0))


def test_a_sketch_is_held_to_its_error():
    judged(wr.approx_distinct("x"), list(range(50)), 51)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.approx_distinct("x"), list(range(50)), 60)
    judged(wr.kll_quantile("x", 0.5), list(range(50)), 25.0)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.kll_quantile("x", 0.5), list(range(50)), 40.0)
    with pytest.raises(AssertionError, match="a should be"):
        judged(wr.bloom_filter("x"), [1, 2, 3], b"\x07" + bytes(1200))


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
