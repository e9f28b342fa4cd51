"""What used to end in an error of Python's own is refused in a sentence that says what to do instead."""

from __future__ import annotations

import inspect

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input.support import query, times

import windrow as wr
import windrow.policies as wp
from windrow import aggregates
from windrow.windows.base import Periodic

# Aggregates that read columns, with what else they need; `count` alone may do without.
OTHERS = {
    "quantile": {"q": 0.5},
    "kll_quantile": {"q": 0.5},
    "tdigest_quantile": {"q": 0.5},
    "histogram": {"low": 0, "high": 1, "bins": 2},
    "ith_smallest": {"i": 1},
    "ith_youngest": {"i": 1},
    "top_k": {"k": 1},
}
COLUMNS = ("column", "by", "weight", "x", "y")
MAKERS = {
    name: getattr(aggregates, name) for name in aggregates.__all__ if name.islower() and name != "aggregate"
}


@pytest.mark.parametrize("wrong", [5, pc.field("x"), ["x"], b"x", ""], ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_every_column_of_every_aggregate_is_given_by_its_name(name, wrong):
    maker = MAKERS[name]
    taken = [parameter for parameter in inspect.signature(maker).parameters if parameter in COLUMNS]
    assert taken
    for column in taken:
        with pytest.raises(wr.QueryError, match="reads a column by its name"):
            maker(**{c: wrong if c == column else "v" for c in taken}, **OTHERS.get(name, {}))


def test_an_expression_of_pyarrow_in_the_place_of_a_column_is_told_what_takes_its_place():
    with pytest.raises(
        wr.QueryError, match=r'not <pyarrow.compute.Expression x>: wr.expr\("\.\."\) makes an expression'
    ):
        wr.sum(pc.field("x"))


def test_one_column_of_an_aggregate_of_ones_own_needs_no_list():
    own = wr.aggregate(lift=lambda v: v, combine=lambda a, b: a + b, identity=0.0, columns="price")
    assert own.columns == ("price",)


@pytest.mark.parametrize(
    "windows",
    [[wr.tumbling("1 hour")], wr.tumbling("1 hour"), [("w", wr.tumbling("1 hour"), 1)], None],
    ids=str,
)
def test_windows_without_names_are_refused(windows):
    with pytest.raises(wr.QueryError, match=r'each window needs a name: give windows as \{"name": window\}'):
        query(windows=windows)


@pytest.mark.parametrize("q", ["a", None, [0.5], 2, -0.1, float("nan"), True], ids=str)
@pytest.mark.parametrize("maker", [wr.quantile, wr.kll_quantile, wr.tdigest_quantile])
def test_a_quantile_lies_between_0_and_1(maker, q):
    with pytest.raises(wr.QueryError, match="a quantile lies between 0 and 1, not at"):
        maker("x", q)


def test_one_in_the_place_of_the_other_is_shown_as_it_is_written():
    with pytest.raises(wr.QueryError, match=r"aggregate 'n' is not an aggregate, but tumbling 1 hour$"):
        query(aggregates={"n": wr.tumbling("1 hour")})
    with pytest.raises(wr.QueryError, match=r"window 'w' is not a window, but sum\(x\)$"):
        query(windows={"w": wr.sum("x")})
    with pytest.raises(wr.QueryError, match=r"window 'w' is not a window, but '1 hour'$"):
        query(windows={"w": "1 hour"})


@pytest.mark.parametrize("module", [wr, wp])
def test_a_name_that_is_nearly_there_is_suggested(module):
    name = {wr: "tumblin", wp: "agregate"}[module]
    with pytest.raises(AttributeError, match=rf"{module.__name__} has no '{name}'.*(tumbling|Aggregate)"):
        getattr(module, name)
    assert not hasattr(module, "nothing of that kind")


def test_aggregates_without_names_are_refused():
    with pytest.raises(wr.QueryError, match=r"each aggregate needs a name.* and an aggregate, not sum"):
        query(aggregates=[wr.sum("x")])


def test_no_key_is_no_key():
    assert query(key=None) == query(key=()) == query()


class OfTheUser(wr.Window):
    """A window of the user's own, placed as the user says."""

    def __init__(self, placed, context="context free"):
        self.placed = placed
        self.context = context

    def place(self, measure):
        return self.placed


class Shifts:
    """Edges that repeat with no period."""

    length = 20

    def windows(self, first, last):
        starts, ends = np.array([0, 3, 10]), np.array([3, 10, 30])
        held = (starts <= last) & (ends > first)
        return starts[held], ends[held]

    def windows_at(self, times):
        return self.windows(times.min(), times.max())


@pytest.mark.parametrize("beside", [{}, {"s": wr.session(2)}], ids=["alone", "beside a session"])
@pytest.mark.parametrize(
    "placed", [(Shifts(),), Shifts(), 5, None], ids=["irregular", "no tuple", "number", "none"]
)
def test_an_irregular_window_of_ones_own_is_refused(placed, beside):
    with pytest.raises(wr.QueryError, match=r"OfTheUser does not place windows .* wr.deterministic"):
        query(windows={"w": OfTheUser(placed), **beside}).run(times([1, 5, 11]))


@pytest.mark.parametrize("context", ["session", "of my own", "forward context free", "forward context aware"])
def test_a_window_of_a_class_that_nobody_knows_is_refused(context):
    with pytest.raises(wr.QueryError, match="OfTheUser does not place windows"):
        query(windows={"w": OfTheUser((), context)}).run(times([1]))


def test_a_window_that_does_not_say_where_it_lies_is_refused():
    class Nowhere(wr.Window):
        pass

    with pytest.raises(wr.QueryError, match="Nowhere does not place windows"):
        query(windows={"w": Nowhere()}).run(times([1]))


def test_a_periodic_window_of_ones_own_works():
    fives = OfTheUser((Periodic.of(length=5, every=5, offset=0),))
    assert query(windows={"w": fives}).run(times([1, 5, 11])) == query(windows={"w": wr.tumbling(5)}).run(
        times([1, 5, 11])
    )


def test_an_aggregate_that_does_not_say_how_it_is_computed_is_refused():
    class Nothing(wr.Aggregate):
        columns = ()
        algebra = wr.Algebra("distributive")

    with pytest.raises(wr.QueryError, match="Nothing does not say how it is computed"):
        query(aggregates={"n": Nothing()}).run(times([1]))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("avg", "mean"),
        ("std", "stddev"),
        ("tumble", "tumbling"),
        ("Tumbling", "tumbling"),
        ("quantil", "quantile"),
    ],
)
def test_a_name_that_windrow_has_not_leads_to_the_one_it_has(name, meant):
    with pytest.raises(AttributeError, match=rf"windrow has no '{name}'; did you mean '{meant}'\?$"):
        getattr(wr, name)


def test_a_name_that_is_like_no_other_is_just_not_there():
    with pytest.raises(AttributeError, match=r"^windrow has no 'zzz'$"):
        wr.zzz  # noqa: B018


def test_a_column_that_is_nearly_right_leads_to_the_right_one():
    table = pa.table({"ts": [1], "user": ["a"]})
    with pytest.raises(
        wr.QueryError, match=r"there is no column 'usr'; did you mean 'user'\? The columns are 'ts'"
    ):
        query(key="usr").run(table)


@pytest.mark.parametrize("method", ["remove_window", "remove_aggregate"])
def test_what_is_not_there_cannot_be_removed(method):
    asked = query(
        windows={"minute": wr.tumbling(1), "hour": wr.tumbling(60)},
        aggregates={"total": wr.sum("x"), "lowest": wr.min("x")},
    )
    with pytest.raises(wr.QueryError, match=r"there is no (window|aggregate) '(minut|totl)'; did you mean"):
        getattr(asked.operator(), method)("minut" if method == "remove_window" else "totl")


TRAILING = wr.query(time="ts", windows={"w": wr.trailing(5)}, aggregates={"n": wr.count()})


@pytest.mark.parametrize(
    "ask",
    [
        lambda: TRAILING.at([]),
        lambda: TRAILING.at(pa.table({"ts": [1]}), []),
        lambda: wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}).label([]),
    ],
)
def test_a_list_without_rows_has_no_columns(ask):
    with pytest.raises(wr.QueryError, match="a list without rows has no columns"):
        ask()


def test_an_integer_that_is_too_large_for_arrow_is_refused():
    for events in ([{"ts": 2**70}], {"ts": [2**70]}):
        with pytest.raises(wr.QueryError, match="rows of Python do not make a table"):
            TRAILING.at(events)
