"""Every loop as plain Python and compiled: both do the same, bit for bit, whatever the window and the aggregate."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from both_tiers import both_tiers, inner_loops, name_of
from policies.support import stream, table_of
from specimens import AGGREGATES, SEQUENCES, WINDOWS, fixed_stream

import windrow as wr
from windrow import policies as wp
from windrow.compiling.compiler import InterpretedWarning
from windrow.compiling.tiers import Kernel
from windrow.rolling import Rolling
from windrow.stores import STORES

# Loops that need more than a small stream: threads, slices from elsewhere, keys that come and go. `WINDROW_BOTH_TIERS=1 pytest`
# is the way to compare them in the tests of their own.
IN_OTHER_TESTS = {
    "windrow.engine.aligned.cutting.find_extents",
    "windrow.engine.aligned.cutting.put_together",
    "windrow.engine.aligned.cutting.spread_slices",
    "windrow.engine.intake.keys.fill_buckets",
    "windrow.engine.intake.keys.mix_strings",
    "windrow.engine.intake.keys.mix_words",
    "windrow.engine.intake.keys.refill_strings",
    "windrow.engine.ordered.sorting.few_by_key",
    "windrow.engine.ordered.sorting.merge_late",
    "windrow.engine.ordered.sorting.split_late",
    "windrow.engine.partials.multisets.expand",
    "windrow.engine.sessions.engine.cut_in_order",
    "windrow.engine.sessions.table.lay_out",
    "windrow.engine.sessions.table.put_back",
    "windrow.engine.spanning.placing.fill_positions",
    "windrow.engine.threads._select",
    "windrow.engine.threads._silence",
    "windrow.policies.log.mark_held",
    "windrow.policies.operators.chains.leave_behind",
    "windrow.policies.operators.deduplicate.mark_first",
    "windrow.policies.subwindows.rejoin",
}
MET: Counter[str] = Counter()

BOTH = {"few": wr.tumbling(9), "many": wr.sliding(40, every=3), "session": wr.session(3)}


@pytest.fixture(autouse=True)
def _compared() -> Iterator[None]:
    with warnings.catch_warnings(), both_tiers() as seen:
        warnings.simplefilter("ignore", InterpretedWarning)
        yield
    MET.update(seen)


def answered(query: wr.Query, table: pa.Table, marks: list[object]) -> None:
    """All windows of a table in small batches, in update mode, with late events and a restart."""
    op = query.operator(mode="update", lateness=4)
    size = -(-table.num_rows // (len(marks) + 1))
    for i, mark in enumerate(marks):
        op.process(table.slice(i * size, size))
        op.advance(mark)
        op = query.restore(op.snapshot())
    op.process(table.slice(len(marks) * size))
    op.finish()
    query.run(table)


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_is_the_same_in_both_tiers(name):
    aggregate, kinds = AGGREGATES[name]
    table = fixed_stream(kinds, size=60, span=90, seed=3).sort_by("time")
    query = wr.query(time="time", key="key0", windows=BOTH, aggregates={"a": aggregate})
    answered(query, table, [30, 60])


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_window_that_depends_on_events_is_the_same_in_both_tiers(name):
    table = fixed_stream({"x": "float", "y": "string"}, size=60, span=90, seed=5)
    aggregates = {"n": wr.count(), "s": wr.sum("x"), "c": wr.collect("y")}
    query = wr.query(time="time", key="key0", windows={"w": SEQUENCES[name]}, aggregates=aggregates)
    answered(query, table, [30, 60])


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_time_is_the_same_in_both_tiers(name):
    given = WINDOWS[name]
    table = fixed_stream({"x": "float"}, size=60, span=90, seed=7)
    unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(getattr(given.time, "unit", ""), 1)
    stride = 86_400 * unit if given.days and pa.types.is_timestamp(given.time) else 1
    width = pa.int32() if pa.types.is_date32(given.time) else pa.int64()
    ticks = pa.array([tick * stride for tick in table["time"].to_pylist()], width)
    table = table.set_column(0, "time", ticks.cast(given.time))
    query = wr.query(
        time="time", key="key0", windows={"w": given.window}, aggregates={"n": wr.count(), "m": wr.max("x")}
    )
    query.run(table)


@pytest.mark.parametrize("contributes", ["whole", "prorated", "start", "end"])
@pytest.mark.parametrize("mode", ["append", "update"])
def test_events_that_last_are_the_same_in_both_tiers(contributes, mode):
    table = fixed_stream({"x": "finite"}, size=40, span=60, seed=3).rename_columns({"time": "since"})
    lengths = [(1, 4, 1, 9, 30, 2)[row % 6] for row in range(table.num_rows)]
    ends = [start + length for start, length in zip(table["since"].to_pylist(), lengths, strict=True)]
    table = table.append_column("until", pa.array(ends, pa.int64()))
    aggregates = {"n": wr.count(), "s": wr.sum("x")}
    if contributes != "prorated":
        aggregates |= {
            "h": wr.max("x"),
            "q": wr.median("x"),
            "c": wr.collect("x"),
            "d": wr.approx_distinct("x"),
        }
    span = wr.span("since", "until", contributes=contributes)
    query = wr.query(
        time=span,
        key="key0",
        windows={"t": wr.tumbling(9), "s": wr.sliding(17, every=5)},
        aggregates=aggregates,
    )
    op = query.operator(mode=mode, lateness=5)
    for i in range(4):
        op.process(table.slice(10 * i, 10))
        op.advance(15 * i)
    op.finish()
    query.run(table)


def test_events_that_open_and_close_are_the_same_in_both_tiers():
    opened = {"since": [1, 2, None, 9, None, 30], "until": [None, None, 7, None, 25, None]}
    table = pa.table(
        {name: pa.array(values, pa.int64()) for name, values in opened.items()} | {"who": list("abacbd")}
    )
    query = wr.query(
        time=wr.span("since", "until", id="who"),
        windows={"t": wr.tumbling(5)},
        aggregates={"n": wr.count()},
    )
    op = query.operator(lateness=3)
    for i in range(0, 6, 2):
        op.process(table.slice(i, 2))
        op.advance(8 * i)
    op.finish()


def test_windows_that_come_and_go_are_the_same_in_both_tiers():
    table = fixed_stream({"x": "int"}, size=60, span=90, seed=3).sort_by("time")
    query = wr.query(
        time="time",
        key="key0",
        windows={"a": wr.session(2), "b": wr.session(9)},
        aggregates={"s": wr.sum("x")},
    )
    op = query.operator(lateness=4)
    op.process(table.slice(0, 30))
    op.add_window("c", wr.session(5))
    op.add_window("r", wr.tumbling(rows=2))
    op.process(table.slice(30))
    op.remove_window("a")
    op.finish()


def test_many_events_out_of_order_are_the_same_in_both_tiers():
    table = pa.table({"time": [37 * i % 100 for i in range(400)], "x": list(range(400))})
    query = wr.query(time="time", windows={"w": wr.tumbling(50)}, aggregates={"s": wr.sum("x")})
    op = query.operator()
    op.process(table)
    op.finish()


def test_windows_of_many_keys_that_end_at_once_are_the_same_in_both_tiers():
    times = {"time": [i % 3 for i in range(3_000)], "key": [i // 3 for i in range(3_000)]}
    query = wr.query(time="time", key="key", windows={"w": wr.tumbling(rows=2)}, aggregates={"n": wr.count()})
    op = query.operator(mode="update", lateness=2)
    op.process(pa.table(times))
    op.advance(2)
    op.advance(10)
    op.finish()


PARTITIONS = {
    "plain": {},
    "partitions": {"partitioned": True, "partition_eviction": wp.partition_count(2)},
    "tuples": {"partitioned": True, "partition_eviction": wp.tuple_count(6)},
    "age": {"partitioned": True, "partition_eviction": wp.partition_age(4)},
}
POLICIES = {
    "count": lambda **p: wp.tumbling(wp.count(3), **p),
    "delta": lambda **p: wp.tumbling(wp.delta("t", 4), **p),
    "time": lambda **p: wp.tumbling(wp.time(5), **p),
    "marks": lambda **p: wp.tumbling(wp.punct(), **p),
    "by count": lambda **p: wp.sliding(wp.count(4), wp.count(2), **p),
    "by delta": lambda **p: wp.sliding(wp.delta("t", 5), wp.delta("t", 2), **p),
    "by time": lambda **p: wp.sliding(wp.time(6), wp.count(1), **p),
}
FOLDED = {"n": wr.count(), "total": wr.sum("x"), "largest": wr.max("x")}


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_window_is_the_same_in_both_tiers(policy, partitions):
    spec = POLICIES[policy](**PARTITIONS[partitions])
    by = ["k"] if spec.partitioned else []
    makes = [
        lambda clock: wp.Aggregate(spec, FOLDED, partition_by=by, clock=clock),
        lambda clock: wp.Aggregate(
            spec, FOLDED | {"m": wr.median("x")}, partition_by=by, group_by=["g"], clock=clock
        ),
    ]
    if "sliding" not in str(spec) or "count(1)" in str(spec):
        makes.append(lambda clock: wp.Sort(spec, [("x", "descending")], partition_by=by, clock=clock))
        makes.append(lambda clock: wp.Deduplicate(spec, ["g"], partition_by=by, clock=clock))
    for make in makes:
        clock = wp.VirtualClock()
        operator = make(clock)
        for what, thing in stream(7):
            if what == "rows":
                operator.process(table_of(thing))
            elif what == "pass":
                clock.advance(thing)
                operator.poll()
            else:
                operator.process(wp.Punctuated.of(table_of([]), [0]))
        operator.finish()


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_join_is_the_same_in_both_tiers(how):
    clock = wp.VirtualClock()
    side = wp.sliding(wp.time(6), wp.count(1))
    join = wp.Join(side, wp.sliding(wp.count(4), wp.count(1)), on="g", how=how, clock=clock)
    for i, (what, thing) in enumerate(stream(7)):
        if what == "rows":
            join.process(table_of(thing), i % 2)
        elif what == "pass":
            clock.advance(thing)
            join.poll()
    join.finish()


@pytest.mark.parametrize("store", STORES)
def test_a_store_is_the_same_in_both_tiers(store):
    for aggregate in (wr.sum("x"), wr.max("x")):
        try:
            window = Rolling(aggregate, rows=5, every=2, store=store)
        except wr.QueryError:  # not a pair
            continue
        table = fixed_stream({"x": "int"}, size=40, span=60, seed=3)
        window.process(table.slice(0, 17))
        window.process(table.slice(17))


ASKED = {
    "trailing": wr.trailing(9, closed="right"),
    "rows": wr.trailing(rows=7),
    "around": wr.around(before=5, after=3),
    "tile": wr.tumbling(8),
    "tile of rows": wr.tumbling(rows=4),
    "session": wr.session(3),
}


@pytest.mark.parametrize("kind", ["int", "float", "small"])
def test_points_are_answered_the_same_in_both_tiers(kind):
    aggregates = {"sum": wr.sum("x"), "mean": wr.mean("x"), "max": wr.max("x"), "median": wr.median("x")}
    aggregates |= {"distinct": wr.distinct("x"), "last": wr.last("x")}
    query = wr.query(time="time", key="key0", windows=ASKED, aggregates=aggregates)
    table = fixed_stream({"x": "float" if kind == "small" else kind}, size=60, span=80, seed=4)
    if kind == "small":  # floats whose exact sums have 128 bits
        small = pa.array([(-1) ** i * (i + 0.1) for i in range(60)])
        table = table.set_column(table.column_names.index("x"), "x", small)
    points = pa.table({"time": pa.array(range(0, 80, 7)), "key0": table["key0"].slice(0, 12)})
    query.at(table)
    query.at(points, table)


def test_every_loop_was_met() -> None:
    """Behind all others: what they have not called, and what is not called by what they have, is not compared."""
    loops: dict[str, Kernel] = {}
    for module in pkgutil.walk_packages(wr.__path__, "windrow."):
        if not module.name.startswith(("windrow.spark", "windrow.pipelines", "windrow.cli")):
            found = vars(importlib.import_module(module.name)).values()
            loops |= {name_of(loop): loop for loop in found if isinstance(loop, Kernel)}
    met = loops.keys() & MET.keys()
    for name in list(met):
        met |= inner_loops(loops[name])
    assert not (missed := sorted(loops.keys() - met - IN_OTHER_TESTS)), " ".join(missed)
