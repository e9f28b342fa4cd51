"""Windows beside their naive model: the same steps, and what each of them told."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st
from policies.support import HeldUpClock

from tests.referee.policies import NaiveWindow
from windrow import policies as wp
from windrow.policies import spec as specs

SECOND = 1_000_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("d", pa.int64()), ("f", pa.float64())])


def rows_of(events):
    return pa.Table.from_pylist(events, SCHEMA)


def window_for(spec, clock, **options):
    kind = wp.TumblingWindow if isinstance(spec, specs.Tumbling) else wp.SlidingWindow
    by = "k" if spec.partitioned else None
    return kind(spec, SCHEMA, partition_by=by, clock=clock, **options)


def told_by_handlers(window, told):
    """Have every event of a window written down: name, key, ids of the content, id of the row concerned."""

    def listen(event):
        row = None if event.tuple is None else event.tuple["id"][0].as_py()
        told.append((event.kind, event.partition, event.content["id"].to_pylist(), row))

    for name in window.events - {"partition_selection"}:
        window.on(name, listen)


def told_on_tape(window, tape):
    """The events of a tape in the same words."""
    told = []
    for k in range(len(tape)):
        event = tape.event(k)
        row = None if event.tuple is None else event.tuple["id"][0].as_py()
        told.append((event.kind, event.partition, event.content["id"].to_pylist(), row))
    return told


def naive_for(spec, told, *, partial=True):
    def listen(happened):
        key = happened.partition[0] if happened.partition else None
        about = (
            happened.row["id"] if happened.row and happened.name not in ("trigger", "initial_full") else None
        )
        told.append((happened.name, key, [row["id"] for row in happened.content], about))

    return NaiveWindow(spec, listen, partition_by=["k"] if spec.partitioned else [], partial=partial)


def play(naive, steps):
    """Take a naive window through steps."""
    for what, thing in steps:
        if what == "rows":
            for row in thing:
                naive.insert(row)
        elif what == "pass":
            naive.advance(naive.now + thing)
        else:
            naive.punctuate()


def run_naive(spec, steps, *, partial=True):
    told = []
    play(naive_for(spec, told, partial=partial), steps)
    return told


def run_window(spec, steps, *, handlers=False, one_by_one=False, partial=True, late=False):
    """What the window tells; `late`: its clock jumps, and it finds out at the next call."""
    clock = HeldUpClock()
    window = window_for(spec, clock, partial_windows=partial)
    told = []
    if handlers:
        told_by_handlers(window, told)
    else:
        window.record(*(window.events - {"partition_selection"}))
        window.on_tape(lambda tape: told.extend(told_on_tape(window, tape)))

    def took(tape):
        if not handlers:
            told.extend(told_on_tape(window, tape))

    for what, thing in steps:
        if what == "rows":
            parts = [[row] for row in thing] if one_by_one else [thing]
            for part in parts:
                took(window.insert(rows_of(part)))
        elif what == "pass":
            if late:
                clock.skip_to(clock.now() + thing)
            else:
                clock.advance_to(clock.now() + thing)
        elif isinstance(spec.eviction, specs.Punct):
            took(window.punctuate())
    if late and specs.uses_clock(spec):
        took(window.advance())
    return told


@st.composite
def steps(draw, *, length=8):
    """Rows in batches, time that passes, punctuations; `d` and `f` never go back."""
    made, number, d = [], 0, 0
    for _ in range(draw(st.integers(1, length))):
        what = draw(st.sampled_from(["rows", "rows", "rows", "pass", "mark"]))
        if what == "pass":
            made.append(
                ("pass", draw(st.sampled_from([SECOND // 2, SECOND, 2 * SECOND, 5 * SECOND, SECOND + 1])))
            )
        elif what == "mark":
            made.append(("mark", None))
        else:
            rows = []
            for _ in range(draw(st.integers(0, 12))):
                d += draw(st.sampled_from([0, 1, 1, 2, 3, 7]))
                rows.append({"id": number, "k": draw(st.sampled_from("abcde")), "d": d, "f": d / 2})
                number += 1
            made.append(("rows", rows))
    return made


TRIGGERS = st.one_of(
    st.integers(1, 5).map(specs.count),
    st.integers(0, 6).map(lambda n: specs.delta("d", n)),
    st.sampled_from([0.0, 0.5, 1.5]).map(lambda x: specs.delta("f", x)),
    st.sampled_from([1, 2, 3.5]).map(specs.time),
)
EVICTIONS = st.one_of(TRIGGERS, st.just(specs.count(0)))
PARTITIONS = st.one_of(
    st.just({}),
    st.just({"partitioned": True}),
    st.builds(
        lambda e, s: {"partitioned": True, "partition_eviction": e, "selection": s},
        st.one_of(st.integers(1, 4).map(specs.partition_count), st.integers(1, 7).map(specs.tuple_count)),
        st.sampled_from(specs.SELECTIONS),
    ),
    st.sampled_from([1, 3]).map(
        lambda a: {"partitioned": True, "partition_eviction": specs.partition_age(a)}
    ),
)
TUMBLING = st.builds(
    lambda e, p: specs.tumbling(e, **p), st.one_of(TRIGGERS, st.just(specs.punct())), PARTITIONS
)
SLIDING = st.builds(lambda e, t, p: specs.sliding(e, t, **p), EVICTIONS, TRIGGERS, PARTITIONS)
SPECS = st.one_of(TUMBLING, SLIDING)
