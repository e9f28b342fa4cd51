"""What cannot be meant is refused in a sentence, by windows and operators alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow import policies as wp
from windrow.errors import DataError, QueryError

X = pa.schema([("k", pa.string()), ("x", pa.int64())])
BY_KEY = "tumbling, count(2), partitioned"
JOINED = "sliding, count(2), count(1)"


def emitted(*tables):
    operator = wp.Operator()
    for table in tables:
        operator.emit(table)
    return operator.poll()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: wp.TumblingWindow("tumbling, count(2)", {"x": "int64"}),
            "schema of a window is one of pyarrow",
        ),
        (lambda: wp.TumblingWindow("tumbling, count(2)", pa.schema([*X, X.field("x")])), "occurs 2 times"),
        (lambda: wp.TumblingWindow("tumbling, count(2)", X, columns=["q"]), "there is no column 'q'"),
        (lambda: wp.TumblingWindow(BY_KEY, X, partition_by=3), "partition_by is the name of a column"),
        (lambda: wp.TumblingWindow(BY_KEY, X, partition_by=["k", "k"]), "names a column twice"),
        (lambda: wp.TumblingWindow("tumbling, time(2)", X, clock=3), "methods now and call_at"),
        (lambda: wp.TumblingWindow("tumbling, count(2)", X, aggregates=[wr.mean("x")]), "given by name"),
        (
            lambda: wp.TumblingWindow(BY_KEY, X, partition_by="k", aggregates={"k": wr.mean("x")}),
            "'k' is a column of the partition",
        ),
        (lambda: wp.SlidingWindow(JOINED, X, partial_windows="no"), "partial_windows is True or False"),
        (lambda: wp.SlidingWindow(JOINED, X).on_tape(3), "function of a tape"),
        (lambda: wp.Join(JOINED, JOINED, match=3), "match is a function"),
        (lambda: wp.Join(JOINED, JOINED, on=3), "names, or pairs of names"),
        (lambda: wp.Join(JOINED, JOINED, on=[("a", "b", "c")]), "pair of names"),
        (lambda: wp.Join(3, JOINED, on="k"), "made by tumbling or sliding"),
        (lambda: wp.Aggregate("tumbling, count(2)", None), "given by name"),
        (lambda: wp.Aggregate("tumbling, count(2)", {"n": wr.count()}, group_by=3), "group_by is the name"),
        (lambda: wp.Sort("tumbling, count(2)", 3), "a column, or a list of columns"),
        (lambda: wp.Sort("tumbling, count(2)", [("x",)]), "a name and a direction"),
        (lambda: wp.Deduplicate("tumbling, count(2)", 3), "by is the name of a column"),
        (lambda: wp.Filter("x > 1"), "a filter is an expression"),
        (lambda: wp.Project({"y": 3}), "a column is an expression"),
        (lambda: wp.Filter(pc.field("q") > 1).process(pa.table({"x": [1]})), "cannot be computed of x"),
        (lambda: wp.Flow().add("a", "join"), "needs an operator"),
        (lambda: wp.Flow().add("a", wp.Filter(pc.field("x") > 1), 3), "fed by streams"),
        (lambda: wp.Punctuated.of(3), "a table or a batch, not int"),
        (lambda: wp.Operator().emit(3), "a table or a batch, not int"),
        (lambda: wp.Operator().emit([1, 2]), "these rows make no table"),
        (lambda: wp.Operator().emit({"x": [1], "y": [1, 2]}), "these rows make no table"),
        (
            lambda: emitted({"x": [1]}, {"x": ["a"]}),
            "rows with the columns x int64; and others with x string",
        ),
        (lambda: wp.TumblingWindow("tumbling, count(2)", X).on("triger", print), r"did you mean 'trigger'\?"),
        (lambda: wp.tumbling(wp.count(1), selection="oldst"), r"did you mean 'oldest'\?"),
        (lambda: wp.Join(JOINED, JOINED, how="rigth"), r"did you mean 'right'\?"),
        (lambda: wp.Punctuated.of(pa.table({"x": [1]}), [0.5]), "numbers of rows"),
        (lambda: wp.Punctuated.of(pa.table({"x": [1]}), "a"), "numbers of rows"),
    ],
)
def test_a_wrong_argument_is_refused_in_a_sentence(make, words):
    with pytest.raises(QueryError, match=words):
        make()


def test_rows_with_two_columns_of_a_name_are_refused():
    window = wp.TumblingWindow("tumbling, count(2)", pa.schema([("x", pa.int64())]))
    with pytest.raises(QueryError, match="several columns called 'x'"):
        window.insert(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]))


def test_a_sort_refuses_a_row_without_a_place_before_its_window_sees_it():
    rows = pa.table({"x": pa.array([3, 1], pa.uint64())})
    sort = wp.Sort("sliding, count(3), count(1)", "x")
    sort.process(rows)
    with pytest.raises(DataError, match="does not fit in 64 bits"):
        sort.process(pa.table({"x": pa.array([4, 2**63], pa.uint64())}))
    assert len(sort.window) == 2
    assert sort.process(rows)[0].table["x"].to_pylist() == [1]
    assert sort.finish()[0].table["x"].to_pylist() == [1, 3, 3]


@pytest.mark.parametrize("aggregates", [{"n": wr.max("x")}, {"n": wr.max("x"), "m": wr.median("x")}])
def test_a_stretch_with_a_value_that_cannot_be_read_is_refused_as_a_whole(aggregates):
    stretch = wp.Punctuated.of(pa.table({"x": pa.array([1, 2, 2**63], pa.uint64())}), [1, 2])
    operator = wp.Aggregate("tumbling, punct()", aggregates)
    with pytest.raises(DataError, match="does not fit in 64 bits") as raised:
        operator.process(stretch)
    assert raised.value.row == 2
    assert operator.poll()[0].table.num_rows == 0
    assert len(operator.window) == 0


NARROW = pa.dictionary(pa.int8(), pa.string())


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: wp.Sort("tumbling, count(250)", "y"), 500),
        (lambda: wp.Sort("sliding, count(250), count(1)", "y"), 250),
        (lambda: wp.Deduplicate("sliding, count(250), count(1)", "y"), 500),
        (lambda: wp.Aggregate("tumbling, count(250)", {"n": wr.count()}, group_by="y"), 500),
    ],
)
def test_dictionaries_may_grow_beyond_what_their_type_can_tell_apart(make, rows):
    operator, given = make(), 0
    for k in range(5):
        words = pa.array([f"{k} {i}" for i in range(100)]).dictionary_encode().cast(NARROW)
        given += operator.process(pa.table({"y": words}))[0].table.num_rows
    assert given == rows


def test_a_null_among_the_values_of_a_dictionary_is_a_null():
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    rows = pa.table({"y": words})
    window = wp.SlidingWindow("sliding, count(2), count(1)", rows.schema)
    window.insert(rows)
    assert window.content()["y"].to_pylist() == [None, "a"]
    join = wp.Join("sliding, count(9), count(1)", "sliding, count(9), count(1)", on="y")
    join.process(rows, port=0)
    assert join.process(rows, port=1)[0].table["y"].to_pylist() == ["a"] * 4
