"""The same for the engine of windows that depend on order, with every kind of them in it."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input.snapshots.support import backwards, bound, changed, in_a_process, parts_of, stream_of

import windrow as wr
from tests.referee.strategies import every_second_time, is_positive, one_more, waves

SEQUENCED = wr.query(
    time="ts",
    key="k",
    windows={
        "rows": wr.tumbling(rows=3),
        "sliding rows": wr.sliding(rows=5, every_rows=2),
        "km": wr.sliding(5, every=2, on="km"),
        "marks": wr.punctuated(where="mark"),
        "between": wr.punctuated(start=is_positive, end=pc.field("level") < 0),
        "delta": wr.delta("level", by=0.5, moves=2),
        "threshold": wr.threshold(pc.field("level") > 0),
        "back": wr.slide_by_rows(6, every_rows=2),
        "latest": wr.latest(rows=3, every=5, offset=1),
        "own": wr.deterministic(waves, state=0),
        "evicting": wr.nondeterministic(
            evict=lambda oldest, ts: 1 if oldest <= ts - 6 else 0, trigger=every_second_time, update=one_more
        ),
    },
    aggregates={
        "n": wr.count(),
        "first": wr.first("s"),
        "all": wr.collect("x"),
        "middle": wr.median("x"),
    },
)
# The places of the discretizers: count windows share the first.
COUNTED, KM, MARKS, BETWEEN, DELTA, THRESHOLD, BACK, LATEST, OWN, EVICTING = (
    f"discretizer {i}" for i in range(10)
)


def happened(since, count):
    """Events from `since` on, two at each tick."""
    return pa.table(
        {
            "ts": pa.array([since + i // 2 for i in range(count)], pa.int64()),
            "k": [f"k{i % 3}" for i in range(count)],
            "x": [float(i) for i in range(count)],
            "s": [f"s{i % 9}" for i in range(count)],
            "km": [since + i // 2 + i % 3 for i in range(count)],
            "mark": [i % 7 == 0 for i in range(count)],
            "level": [float(i % 5 - 2) for i in range(count)],
            "v": [i % 5 - 2 for i in range(count)],
        }
    )


def sequenced():
    """A snapshot with slices, rows given out, open and ended windows, and waiting events."""
    operator = SEQUENCED.operator(mode="update", lateness=15)
    operator.process(happened(0, 120))
    operator.advance(30)
    operator.advance(45)
    operator.process(happened(42, 6))
    operator.advance(46)
    operator.process(happened(44, 3))
    operator.process(happened(70, 3))
    return SEQUENCED.restore(operator.snapshot()).snapshot()


@cache
def parts():
    return parts_of(sequenced())


@cache
def arrays():
    return {
        name.removeprefix("engine 0 "): np.frombuffer(data, dtype)
        for name, (dtype, data) in parts().items()
        if dtype not in ("json", "table")
    }


def resequenced(name, part):
    return bound(parts() | {name: part}, SEQUENCED)


def with_column(name, array):
    return resequenced(f"engine 0 {name}", (str(array.dtype), array.tobytes()))


def not_restored(state, message=None):
    with pytest.raises(wr.StateError, match=message):
        SEQUENCED.restore(state)


def go_on(operator):
    """What a stream does next."""
    operator.process(happened(60, 20))
    operator.advance(50)
    operator.process(happened(80, 40))
    operator.advance(90)
    operator.snapshot()
    operator.finish()


def test_the_sequenced_snapshot_of_these_tests_can_be_restored_and_has_something_in_every_array():
    assert SEQUENCED.restore(bound(parts(), SEQUENCED)).snapshot() == bound(parts(), SEQUENCED)
    assert min(map(len, arrays().values())) > 0
    go_on(SEQUENCED.restore(bound(parts(), SEQUENCED)))


def test_an_array_of_an_ordered_section_is_refused_if_it_is_not_of_its_type_or_length():
    for name, array in arrays().items():
        other = array.astype(np.int64 if array.dtype != np.int64 else np.float64)
        not_restored(with_column(name, other))
        not_restored(with_column(name, np.append(array, array[-1:])))
        not_restored(with_column(name, array[:-1]))
        not_restored(bound({n: part for n, part in parts().items() if n != f"engine 0 {name}"}, SEQUENCED))


IMPOSSIBLE = [
    ("slices key", changed(-1, 3)),
    ("slices key", changed(0, -1)),
    ("slices key", backwards),
    ("slices first", backwards),
    ("slices first", changed(0, -(2**63))),
    ("slices first", changed(-1, 2**63 - 1)),
    ("slices last", changed(0, -1)),
    ("slices last", changed(-1, 2**63 - 1)),
    ("slices opening", changed(0, -1)),
    ("slices closing", changed(0, -1)),
    ("slices rank", changed(0, -1)),
    ("slices rank", changed(0, 10**6)),
    ("slices rank", backwards),
    ("store 0 n", changed(0, 0)),
    ("store 0 n", changed(0, -1)),
    ("store 0 n", changed(0, 10**6)),
    ("given key", changed(0, 3)),
    ("given key", changed(0, -1)),
    ("given spec", changed(0, 11)),
    ("given spec", changed(0, -1)),
    ("seen", changed(0, 0)),
    ("seen", changed(0, -1)),
    ("found spec", changed(0, 11)),
    ("found spec", changed(0, -1)),
    ("found key", changed(0, 3)),
    ("found key", changed(0, -1)),
    ("found begin", changed(0, -1)),
    ("found begin", changed(0, 10**6)),
    ("found end", changed(0, 0)),
    ("found end", changed(0, 10**6)),
    ("found named", changed(0, 2)),
    ("pending number", changed(0, 3)),
    ("pending number", changed(0, -1)),
    ("pending time", changed(0, 2**63 - 1)),
    ("pending time", changed(0, -(2**63))),
    (f"{COUNTED} seen", changed(0, -1)),
    (f"{COUNTED} seen", changed(0, 10**6)),
    (f"{MARKS} opened", changed(0, 5)),
    (f"{BETWEEN} opened", changed(0, -1)),
    (f"{THRESHOLD} opened", changed(0, 7)),
    (f"{DELTA} opened", changed(0, 9)),
    *((f"{place} open_key", changed(0, 3)) for place in (KM, MARKS, DELTA, OWN)),
    *((f"{place} open_key", changed(0, -1)) for place in (KM, MARKS, DELTA, OWN)),
    *((f"{place} open_key", backwards) for place in (KM, MARKS, DELTA, OWN)),
    *((f"{place} open_rank", changed(-1, 10**6)) for place in (KM, MARKS, DELTA, OWN)),
    *((f"{place} open_rank", changed(0, -1)) for place in (KM, MARKS, DELTA, OWN)),
    (f"{BACK} tail", changed(0, -1)),
    (f"{BACK} tail", changed(0, 10**6)),
    (f"{BACK} waiting", changed(0, 2)),
    *((f"{place} base", changed(0, -1)) for place in (COUNTED, BACK, LATEST)),
    *((f"{place} base", changed(0, 10**6)) for place in (COUNTED, BACK, LATEST)),
    (f"{LATEST} waiting", changed(0, 2)),
    (f"{EVICTING} begin", changed(0, -1)),
    (f"{EVICTING} begin", changed(0, 10**6)),
]


@pytest.mark.parametrize(("name", "change"), IMPOSSIBLE, ids=lambda v: v if isinstance(v, str) else "")
def test_an_ordered_section_that_no_events_lead_to_is_refused(name, change):
    forgery = change(arrays()[name])
    assert forgery.tobytes() != arrays()[name].tobytes(), "nothing was forged"
    not_restored(with_column(name, forgery))


NOT_SEEN_YET = [
    ("seen", changed(slice(None), 10**6)),
    ("pending time", changed(0, 0)),
    ("pending arrival", backwards),
]


@pytest.mark.parametrize(("name", "change"), NOT_SEEN_YET, ids=lambda v: v if isinstance(v, str) else "")
def test_an_ordered_section_that_contradicts_itself_is_refused(name, change):
    not_restored(with_column(name, change(arrays()[name])))


def restated(**changes):
    about = json.loads(parts()["about"][1])
    for name, value in changes.items():
        (about["engines"][0] if name in about["engines"][0] else about)[name] = value
    return resequenced("about", ("json", json.dumps(about).encode()))


@pytest.mark.parametrize("value", [None, "noon", 1.5, True, []], ids=repr)
@pytest.mark.parametrize("name", ["frontier"])
def test_an_ordered_section_must_say_how_far_it_has_come(name, value):
    not_restored(restated(**{name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("watermark", 45),
        ("complete_from", {"window nobody": 1}),
        ("complete_from", {"window rows": "noon"}),
        ("windows", ["rows"]),
        ("windows", []),
        ("windows", [*SEQUENCED.windows, "rows"]),
        ("engines", []),
        ("engines", [{}]),
    ],
)
def test_a_forged_statement_of_an_ordered_section_is_refused(name, value):
    not_restored(restated(**{name: value}))


def test_a_number_beyond_64_bits_in_a_statement_is_refused():
    not_restored(restated(frontier=10**30))


WAITING = [
    ("pending value s", 10**6),
    ("pending value s", -2),
    ("pending value s", -1),
    ("pending nulls 0", -1),
]


@pytest.mark.parametrize(("name", "value"), WAITING)
def test_waiting_events_that_no_events_lead_to_are_refused(name, value):
    not_restored(with_column(name, changed(0, value)(arrays()[name])))


def test_waiting_readings_that_would_have_been_bad_rows_are_refused():
    query = wr.query(time="t", windows={"km": wr.tumbling(1.5, on="km")}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.process(pa.table({"t": [1, 2], "km": [1.5, 2.5]}))
    known = parts_of(operator.snapshot())
    readings = known["engine 0 pending input km 0"]
    assert readings == ("float64", np.array([1.5, 2.5]).tobytes())
    for wrong in (np.nan, np.inf, 1e300):
        forged = known | {"engine 0 pending input km 0": ("float64", np.array([1.5, wrong]).tobytes())}
        with pytest.raises(wr.StateError, match="values that no event may have"):
            query.restore(bound(forged, query))


def waiting_rows():
    """Rows of events that wait, as many as there are in the snapshot."""
    rows = happened(40, len(arrays()["pending time"]))
    return rows.select(["ts", "km", "mark", "v", "level", "s", "x"])


def of_version_5(table):
    """The snapshot with the rows of events in the place of what is kept of them."""
    kept = ("pending nulls", "pending value", "pending input")
    others = {n: p for n, p in parts().items() if not n.removeprefix("engine 0 ").startswith(kept)}
    return bound(others | {"engine 0 pending": ("table", stream_of(table))}, SEQUENCED)


def test_rows_of_version_5_can_be_restored():
    go_on(SEQUENCED.restore(of_version_5(waiting_rows())))


OTHER_EVENTS = {
    "fewer columns": lambda t: t.select(t.column_names[:-1]),
    "other places": lambda t: t.select(t.column_names[::-1]),
    "more columns": lambda t: t.append_column("more", pa.nulls(t.num_rows, pa.int8())),
    "fewer rows": lambda t: t.slice(1),
    "no rows": lambda t: t.slice(0, 0),
    "more rows": lambda t: pa.concat_tables([t, t.slice(0, 1)]),
    "text": lambda t: pa.table({n: ["7"] * t.num_rows for n in t.column_names}),
    "floats": lambda t: pa.table({n: [7.5] * t.num_rows for n in t.column_names}),
    "structs": lambda t: pa.table({n: [{"a": 1}] * t.num_rows for n in t.column_names}),
    "lists": lambda t: pa.table({n: [[1]] * t.num_rows for n in t.column_names}),
}


@pytest.mark.parametrize("name", OTHER_EVENTS)
def test_waiting_events_of_another_shape_or_type_are_refused(name):
    not_restored(of_version_5(OTHER_EVENTS[name](waiting_rows())))


def test_waiting_events_that_would_have_been_bad_rows_are_refused():
    events = waiting_rows()
    nulls = pa.table({n: pa.nulls(events.num_rows, events.schema.field(n).type) for n in events.column_names})
    not_restored(of_version_5(nulls))


def lies():
    """Arrays with values that may pass for true ones."""
    for name, array in arrays().items():
        yield name, backwards(array)
        if array.dtype.kind in "if":
            extremes = (-1, 0, 10**6, *((2**63 - 1, -(2**63)) if array.dtype == np.int64 else ()))
            for value in extremes:
                yield name, np.full_like(array, value)
                yield name, changed(len(array) // 2, value)(array)


def survive_lies():
    """Restore each lie and go on; errors are fine, a crash or a loop without end is not."""
    for name, array in lies():
        print(name, flush=True)
        try:
            go_on(SEQUENCED.restore(with_column(name, array)))
        except Exception:
            continue


def test_what_is_made_up_and_passes_for_true_crashes_nothing():
    in_a_process("module.survive_lies()", __file__)
