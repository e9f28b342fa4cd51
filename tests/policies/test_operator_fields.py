"""Fields of operators of one's own: those that are named are in the snapshot, and others are not lost in silence."""

from __future__ import annotations

import abc
from collections import Counter, defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow import policies as wp
from windrow.errors import StateError

ROWS = pa.table({"k": ["a", "b", "a"], "x": [1, 2, 4]})
WINDOW = "tumbling, count(2)"


class Total(wp.Windowed):
    """The sum of all rows so far, told at the end of each window."""

    state_fields = ("total",)

    def __init__(self, window, **options):
        super().__init__(window, **options)
        self.total = 0

    def after_insert(self, event):
        self.total += event.tuple["x"][0].as_py()

    def before_flush(self, event):
        self.emit([{"total": self.total}])


class Forgetful(Total):
    """The same, with a sum that nobody has named."""

    state_fields = ()

    def __init__(self, window, **options):
        super().__init__(window, **options)
        self.others = 0

    def after_insert(self, event):
        self.others += 1


def test_a_restored_operator_of_ones_own_goes_on_with_its_sums():
    first, second = Total(WINDOW), Total(WINDOW)
    first.process(ROWS)
    second.restore(first.snapshot())
    given = [operator.process(ROWS)[0].table.to_pylist() for operator in (first, second)]
    assert given[1] == given[0] == [{"total": 8}, {"total": 14}]


def test_fields_are_saved_before_the_first_row_too():
    first, second = Total(WINDOW), Total(WINDOW)
    first.total = 100
    second.restore(first.snapshot())
    assert second.process(ROWS)[0].table.to_pylist() == [{"total": 103}]


def test_restoring_is_in_place_of_what_the_operator_holds():
    first = Total(WINDOW)
    first.process(ROWS)
    state = first.snapshot()
    first.process(ROWS)
    first.restore(state)
    assert (first.total, len(first.window)) == (7, 1)


class Keeps(wp.Windowed):
    """Keeps a value."""

    state_fields = ("value",)
    value = None


TIME = datetime(2024, 7, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
VALUES = [
    *(None, True, 0, -(2**70), 1.5, float("inf"), "text \ud800", b"\x00\xff"),
    *([1, [2, "three"]], (1, (2,)), {1, 2}, frozenset("ab"), {"a": 1, None: [2], (1, "b"): {"c": 3}}),
    *(np.int64(2**60 + 1), np.float32(0.1), np.bool_(True), np.datetime64("2024-01-01T00:00:00", "ns")),
    *(np.arange(6).reshape(2, 3), np.array(["a", "bc"]), np.zeros((0, 3), np.float32), np.array(7)),
    *(
        date(2024, 1, 2),
        TIME,
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=UTC),
        timedelta(days=-1, microseconds=1),
    ),
    *(Decimal("1.50"), deque([1, 2], maxlen=2), pa.scalar("a"), pa.scalar(None, pa.int8())),
    *(
        ROWS,
        ROWS.to_batches()[0],
        ROWS["x"],
        pa.array([1, None]),
        ROWS.slice(0, 0).to_batches(),
        pa.array([], "int8"),
    ),
    pa.array(["u", "v", "u"]).dictionary_encode(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value):
    first, second = Keeps(WINDOW), Keeps(WINDOW)
    first.value = value
    second.restore(first.snapshot())
    assert type(second.value) is type(value)
    if isinstance(value, (np.ndarray, np.generic)):
        assert (second.value.dtype, second.value.shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(second.value, value)
    else:
        assert second.value == value
    if isinstance(value, deque):
        assert second.value.maxlen == value.maxlen
    if isinstance(value, datetime):
        assert second.value.utcoffset() == value.utcoffset()


def test_nan_comes_back_as_nan():
    first, second = Keeps(WINDOW), Keeps(WINDOW)
    first.value = float("nan")
    second.restore(first.snapshot())
    assert second.value != second.value


def test_an_array_that_comes_back_can_be_written_to():
    first, second = Keeps(WINDOW), Keeps(WINDOW)
    first.value = np.zeros(2)
    second.restore(first.snapshot())
    second.value += 1
    assert second.value.tolist() == [1, 1]


class PerKey(wp.Windowed):
    """Sums and counts of each partition."""

    state_fields = ("sums", "counts")

    def __init__(self, window, **options):
        super().__init__(window, **options)
        self.sums, self.counts = defaultdict(int), Counter()

    def after_insert(self, event):
        self.sums[event.partition] += event.tuple["x"][0].as_py()
        self.counts[event.partition] += 1


def test_a_dict_with_defaults_stays_one():
    first, second = (PerKey("tumbling, count(9), partitioned", partition_by="k") for _ in range(2))
    first.process(ROWS)
    second.restore(first.snapshot())
    second.process(pa.table({"k": ["a", "c"], "x": [10, 20]}))
    assert second.sums == {"a": 15, "b": 2, "c": 20}
    assert second.counts.most_common(1) == [("a", 3)]


def refused(operator):
    with pytest.raises(StateError) as found:
        operator.snapshot()
    return str(found.value)


def test_an_attribute_that_has_changed_and_is_not_named_is_refused_with_what_to_do():
    operator = Forgetful(WINDOW)
    operator.process(ROWS.slice(0, 1))
    assert refused(operator) == (
        "the attribute 'others' of Forgetful has changed since the operator was made, and a snapshot would lose it: "
        "say state_fields = ('others',) in the class to have it saved and restored, or constant_fields if it may be lost"
    )


def test_it_is_not_restored_into_either():
    state = Forgetful(WINDOW).snapshot()
    operator = Forgetful(WINDOW)
    operator.process(ROWS.slice(0, 1))
    with pytest.raises(StateError, match="the attribute 'others' of Forgetful has changed"):
        operator.restore(state)


class Hidden(wp.Windowed):
    """Changes something in a way of its own at each row."""

    __slots__ = ("slot",)
    of_class: ClassVar[dict] = {}

    def __init__(self, window, change, given=()):
        super().__init__(window)
        self.slot = 0
        self.change, self.rows, self.given, self.box, self.table = change, [], given, [[0]], ROWS

    def after_insert(self, event):
        self.change(self)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda self: self.rows.append(1)),
        ("box", lambda self: self.box[0].append(1)),
        ("later", lambda self: setattr(self, "later", 1)),
        ("given", lambda self: self.given.append(1)),
        ("change", lambda self: setattr(self, "change", print)),
        ("slot", lambda self: setattr(self, "slot", 1)),
        ("table", lambda self: setattr(self, "table", ROWS.slice(1))),
        ("of_class", lambda self: self.of_class.update(a=len(self.of_class))),
    ],
)
def test_whatever_way_an_attribute_changes_in_it_is_noticed(name, change):
    operator = Hidden(WINDOW, change, [])
    assert operator.snapshot()
    operator.process(ROWS.slice(0, 1))
    Hidden.of_class.pop("a", None) if name != "of_class" else None
    assert f"the attribute '{name}' of Hidden has changed" in refused(operator)


def test_what_an_operator_is_told_when_it_is_made_needs_no_declaration():
    class Configured(wp.Windowed):
        def __init__(self, window, column, *, names, function, aggregate):
            super().__init__(window)
            self.column, self.names, self.function = column, list(names), function
            self.aggregate, self.schema, self.where = aggregate, ROWS.schema, pc.field("x") > 0

    operator = Configured(WINDOW, "x", names=["a"], function=len, aggregate=wr.sum("x"))
    operator.process(ROWS)
    Configured(WINDOW, "x", names=["a"], function=len, aggregate=wr.sum("x")).restore(operator.snapshot())


class Engine:
    """Somebody else's object."""


class Learns(wp.Windowed):
    def __init__(self, window):
        super().__init__(window)
        self.engine = Engine()


class NeverLearns(Learns):
    constant_fields = ("engine",)


def test_an_object_of_which_nobody_knows_whether_it_changes_is_refused_unless_it_is_constant():
    problem = refused(Learns(WINDOW))
    assert "the attribute 'engine' of Learns is an object of type Engine" in problem
    assert "say constant_fields = ('engine',) in the class" in problem
    NeverLearns(WINDOW).restore(NeverLearns(WINDOW).snapshot())


def _cycle():
    value = []
    value.append(value)
    return value


_LIST = [1]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Engine(), "an object of type Engine"),
        ([1, Engine()], "an object of type Engine"),
        (_cycle(), "the same list twice"),
        ([_LIST, _LIST], "the same list twice"),
        ({"a": defaultdict(int)}, "an object of type defaultdict"),
        (np.array([object()]), "an object of type ndarray"),
    ],
    ids=["object", "inside", "cycle", "shared", "nested defaults", "objects"],
)
def test_a_field_that_cannot_be_saved_says_what_it_holds(value, words):
    operator = Keeps(WINDOW)
    operator.value = value
    problem = refused(operator)
    assert problem.startswith(f"the field 'value' of Keeps cannot be saved: it holds {words}")
    assert problem.endswith("and lists, tuples, sets and dicts of these")


def test_fields_of_base_classes_are_saved_too():
    class Both(Total):
        state_fields = ("count",)
        count = 0

        def after_insert(self, event):
            super().after_insert(event)
            self.count += 1

    first, second = Both(WINDOW), Both(WINDOW)
    first.process(ROWS)
    second.restore(first.snapshot())
    assert (second.total, second.count) == (7, 3)


def test_names_of_fields_are_a_tuple_and_are_there():
    class Wrong(wp.Windowed):
        state_fields = "total"

    class Missing(wp.Windowed):
        state_fields = ("total",)

    with pytest.raises(
        StateError, match=r"state_fields of Wrong is a tuple of names, as in \('total',\); not 'total'"
    ):
        Wrong(WINDOW)
    assert refused(Missing(WINDOW)).startswith(
        "the field 'total' of Missing cannot be saved: 'Missing' object has no"
    )


def test_a_snapshot_with_other_fields_is_refused():
    def total(*names):
        return type(
            "Total", (wp.Windowed,), {"state_fields": names, "total": 0, "n": 0, "__qualname__": "Total"}
        )

    with pytest.raises(
        StateError, match="has the fields 'total'; state_fields of the operator names 'n', 'total'"
    ):
        total("total", "n")(WINDOW).restore(total("total")(WINDOW).snapshot())


def test_an_operator_that_saves_itself_is_trusted():
    class ByHand(wp.Windowed):
        def __init__(self, window):
            super().__init__(window)
            self.seen = []

        def after_insert(self, event):
            self.seen.append(event.tuple["x"][0].as_py())

        def state(self):
            return {"seen": bytes(self.seen)}

        def load(self, parts):
            self.seen = list(parts["seen"])

    first, second = ByHand(WINDOW), ByHand(WINDOW)
    first.process(ROWS)
    second.restore(first.snapshot())
    assert second.seen == [1, 2, 4]


OPERATORS = {
    wp.Aggregate: (WINDOW, {"n": wr.count()}),
    wp.Sort: ("sliding, count(2), count(1)", "x"),
    wp.Deduplicate: (WINDOW, "x"),
    wp.Filter: (pc.field("x") > 1,),
    wp.Project: ({"x": pc.field("x") + 1},),
    wp.Join: ("sliding, count(2), count(1)", "sliding, count(2), count(1)"),
}


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_subclass_of_any_operator_has_fields(kind):
    class Own(kind, abc.ABC):
        state_fields = ("calls",)
        calls = 0

        def process(self, rows, port=0):
            self.calls += 1
            return super().process(rows, port)

    first, second = Own(*OPERATORS[kind]), Own(*OPERATORS[kind])
    for port in range(len(first.model.inputs)):
        first.process(ROWS, port)
    second.restore(first.snapshot())
    assert second.calls == len(first.model.inputs)
    assert [s.table for s in second.process(ROWS)] == [s.table for s in first.process(ROWS)]


def test_an_operator_that_is_no_window_has_fields_too():
    class Numbered(wp.Operator):
        state_fields = ("count",)
        count = 0

        def process(self, rows, port=0):
            self.emit(rows.append_column("n", pa.array(range(self.count, self.count + len(rows)))))
            self.count += len(rows)
            return self.poll()

    first, second = Numbered(), Numbered()
    first.process(ROWS)
    second.restore(first.snapshot())
    assert second.process(ROWS)[0].table["n"].to_pylist() == [3, 4, 5]
