"""Snapshots: a restored window goes on as if nothing had been; a damaged one is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.compared import SPECS, rows_of, steps, told_on_tape, window_for
from policies.test_summarizers import AGGREGATES, HOLISTIC, SCHEMA, with_values
from profiles import examples

from windrow import policies as wp
from windrow.errors import QueryError, StateError
from windrow.policies import spec as specs


def carried(made, make, took, *, restarts):
    """Go through steps; with `restarts`, through a snapshot and a new window before each of them."""
    clock = wp.VirtualClock()
    window = make(clock)
    for what, thing in made:
        if restarts:
            state = window.snapshot()
            window.close()
            window = make(clock)
            window.restore(state)
        if what == "rows":
            took(window, window.insert(thing))
        elif what == "pass":
            clock.advance_to(clock.now() + thing)
            took(window, window.advance())
        elif isinstance(window.spec.eviction, specs.Punct):
            took(window, window.punctuate())


@examples(80)
@given(SPECS, steps(), st.booleans())
def test_a_restored_window_tells_the_same_events(spec, made, partial):
    def told(restarts):
        found = []

        def make(clock):
            window = window_for(spec, clock, partial_windows=partial)
            window.record(*(window.events - {"partition_selection"}))
            window.on_tape(lambda tape: found.extend(told_on_tape(window, tape)))
            return window

        tables = [(what, rows_of(thing) if what == "rows" else thing) for what, thing in made]
        carried(
            tables, make, lambda window, tape: found.extend(told_on_tape(window, tape)), restarts=restarts
        )
        return found

    assert told(True) == told(False)


@examples(60)
@given(SPECS, steps(), st.sampled_from([AGGREGATES, HOLISTIC]))
def test_a_restored_window_gives_the_same_answers(spec, made, aggregates):
    made = with_values(made)

    def told(restarts):
        found = []
        kind = wp.TumblingWindow if isinstance(spec, specs.Tumbling) else wp.SlidingWindow

        def make(clock):
            by = "k" if spec.partitioned else None
            window = kind(spec, SCHEMA, partition_by=by, clock=clock, aggregates=aggregates)
            window.on_tape(lambda tape: found.extend(tape.answers.to_pylist()))
            return window

        tables = [(w, pa.Table.from_pylist(t, SCHEMA) if w == "rows" else t) for w, t in made]
        carried(tables, make, lambda window, tape: found.extend(tape.answers.to_pylist()), restarts=restarts)
        return found

    assert told(True) == told(False)


def filled():
    window = wp.SlidingWindow("sliding, count(3), count(1), partitioned", SCHEMA, partition_by="k")
    made = with_values([("rows", [{"id": i, "k": "ab"[i % 2], "d": i, "f": 0.0} for i in range(9)])])
    window.insert(pa.Table.from_pylist(made[0][1], SCHEMA))
    return window


def test_a_snapshot_with_any_byte_changed_is_refused():
    state = filled().snapshot()
    for at in range(0, len(state), 97):
        damaged = bytearray(state)
        damaged[at] ^= 0x55
        with pytest.raises(StateError):
            wp.SlidingWindow(filled().spec, SCHEMA, partition_by="k").restore(bytes(damaged))


@pytest.mark.parametrize("keep", [0, 10, 100, -1])
def test_a_truncated_snapshot_is_refused(keep):
    with pytest.raises(StateError):
        wp.SlidingWindow(filled().spec, SCHEMA, partition_by="k").restore(filled().snapshot()[:keep])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("sliding, count(4), count(1), partitioned", {}),
        ("sliding, count(3), count(1), partitioned", {"partial_windows": False}),
        ("sliding, count(3), count(1), partitioned", {"columns": ["id"]}),
    ],
)
def test_a_snapshot_of_another_window_is_refused(text, options):
    with pytest.raises(StateError, match="belongs to another window"):
        wp.SlidingWindow(text, SCHEMA, partition_by="k", **options).restore(filled().snapshot())


def test_a_snapshot_goes_into_a_new_window_only():
    window = filled()
    with pytest.raises(StateError, match="a new window only"):
        window.restore(window.snapshot())


def test_a_handler_cannot_take_a_snapshot():
    window = wp.SlidingWindow("sliding, count(3), count(1)", SCHEMA)
    refused = []

    def handler(event):
        with pytest.raises(QueryError, match="in the middle of insert") as raised:
            window.snapshot()
        refused.append(raised.value)

    window.on_trigger(handler)
    window.insert(
        pa.Table.from_pylist(with_values([("rows", [{"id": 1, "k": "a", "d": 1, "f": 0.0}])])[0][1], SCHEMA)
    )
    assert len(refused) == 1


def test_a_summarizer_of_the_users_own_has_no_snapshot():
    window = wp.TumblingWindow("tumbling, count(3)", SCHEMA, summarizer=wp.Summarizer)
    with pytest.raises(StateError, match="what it keeps is not known"):
        window.snapshot()
