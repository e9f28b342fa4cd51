"""Every branch of the decision trees (Scotty, Figures 4, 5 and 6)."""

from __future__ import annotations

from itertools import product

import pytest

import windrow as wr
from windrow.planner.decisions import Characteristics, keep_tuples, removal, splits

CONTEXTS = {
    "context free": (True, True, True),
    "session": (False, True, True),
    "forward context free": (False, True, False),
    "forward context aware": (False, False, False),
}
CASES = list(product([True, False], [True, False], [True, False], CONTEXTS, [True, False]))


def workload(ordered, commutative, invertible, context, counting):
    free, forward_free, session = CONTEXTS[context]
    return Characteristics(ordered, commutative, invertible, free, forward_free, session, counting)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_figure_4_when_events_are_kept(case):
    ordered, commutative, _, context, counting = case
    if ordered:
        kept = context == "forward context aware"
    else:
        kept = not commutative or context not in ("context free", "session") or counting
    decision = keep_tuples(workload(*case))
    assert decision.answer == ("kept" if kept else "dropped")
    assert decision.reason


@pytest.mark.parametrize("case", CASES, ids=str)
def test_figure_5_when_slices_are_split(case):
    ordered, _, _, context, _ = case
    if ordered:
        possible = context == "forward context aware"
    else:
        possible = context not in ("context free", "session")
    decision = splits(workload(*case))
    assert decision.answer == ("possible" if possible else "never")
    assert decision.reason


@pytest.mark.parametrize("case", CASES, ids=str)
def test_figure_6_how_events_are_removed(case):
    ordered, _, invertible, _, counting = case
    wanted = "never needed" if ordered or not counting else "by invert" if invertible else "by recomputation"
    decision = removal(workload(*case))
    assert decision.answer == wanted
    assert decision.reason


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("aggregate", "commutative", "invertible"),
    [(wr.sum("x"), True, True), (wr.max("x"), True, False), (wr.concat("s"), False, False)],
    ids=str,
)
def test_the_characteristics_of_a_query(ordered, aggregate, commutative, invertible):
    query = wr.query(
        time="ts",
        ordered=ordered,
        windows={"w": wr.tumbling(1), "c": wr.calendar("1 day")},
        aggregates={"n": wr.count(), "a": aggregate},
    )
    found = Characteristics.of(query)
    assert (found.ordered, found.commutative, found.invertible) == (ordered, commutative, invertible)
    assert found.context_free
    assert not found.count_measure
