"""What becomes of single events, splits and removals (Scotty, Figures 4, 5 and 6), for each kind of workload."""

from __future__ import annotations

import pytest
from specimens import SEQUENCES

import windrow as wr
from windrow.options import OperatorOptions
from windrow.planner.explain import in_order, removal, single_events, splits
from windrow.planner.plan import Plan

KINDS = {
    "time": {"w": wr.tumbling(10), "c": wr.calendar("1 day")},
    "sessions": {"w": wr.tumbling(10), "s": wr.session(3)},
    "points in time": {"w": wr.snapshot()},
    "counts": {"w": wr.tumbling(10), "r": wr.tumbling(rows=2)},
    "data": {"d": wr.delta("x", by=2)},
}


def asked(windows, time="ts", ordered=False):
    return wr.query(time=time, windows=windows, aggregates={"n": wr.count()}, ordered=ordered)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_figure_4_events_are_kept_where_their_order_matters_unless_it_is_promised(kind, ordered):
    answer, reason = single_events(asked(KINDS[kind], ordered=ordered), []).split(", because ")
    assert answer == ("kept" if kind in ("counts", "data") and not ordered else "dropped")
    assert ("(r)" in reason) == (kind == "counts" and not ordered)


def test_figure_4_events_are_kept_for_aggregates_that_read_them_again():
    answer, reason = single_events(asked(KINDS["time"]), ["concat(s)"]).split(", because ")
    assert answer == "kept"
    assert "concat(s)" in reason


def test_figure_4_events_without_an_end_are_kept():
    assert single_events(asked(KINDS["time"], wr.span("a", "b", id="i")), []).startswith("kept, ")
    assert single_events(asked(KINDS["time"], wr.span("a", "b")), []).startswith("dropped, ")


@pytest.mark.parametrize(
    ("kind", "split", "removed"),
    [
        ("time", "known in advance", "no window counts"),
        ("sessions", "between events", "no window counts"),
        ("points in time", "between events", "no window counts"),
        ("counts", "in order", "in order"),
        ("data", "in order", "no window counts"),
    ],
)
def test_figures_5_and_6_slices_are_never_split_and_keep_their_events(kind, split, removed):
    query = asked(KINDS[kind])
    never, why_split = splits(query).split(", because ")
    never_needed, why_removed = removal(query).split(", because ")
    assert (never, never_needed) == ("never", "never needed")
    assert split in why_split
    assert removed in why_removed


@pytest.mark.parametrize("name", SEQUENCES)
def test_windows_that_depend_on_order_are_named(name):
    query = asked({"w": SEQUENCES[name], "other": wr.tumbling(5)})
    assert in_order(query) == ("w" if SEQUENCES[name].layout == "ordered" else "")


def shared(query):
    """The kinds of state of a query, and the windows of each."""
    return [(part.kind, list(part.query.windows)) for part in Plan.of(query, None, OperatorOptions()).parts]


def test_windows_of_one_kind_share_slices():
    windows = {**KINDS["time"], **KINDS["sessions"], **KINDS["data"]}
    assert [kind for kind, _ in shared(asked(windows))] == ["aligned", "sessions", "ordered"]
    assert [kind for kind, _ in shared(asked(KINDS["time"]))] == ["aligned"]


def test_sessions_of_events_that_last_have_slices_of_their_own():
    windows = {"s": wr.session(3), "w": wr.tumbling(10), "t": wr.session(5), "v": wr.tumbling(20)}
    found = shared(asked(windows, wr.span("a", "b")))
    assert found == [
        ("sessions", ["s", "t"]),
        ("aligned", ["w", "v"]),
    ]
