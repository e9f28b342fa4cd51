"""Is it so? What `explain` says of a query is asked of an operator that runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from specimens import AGGREGATES as ALL
from specimens import ALTERNATING, GROUPS, SEQUENCES, TOTAL, fixed_stream

import windrow as wr
from windrow.engine.aligned.engine import Aligned
from windrow.engine.ordered.engine import Ordered
from windrow.engine.partials import Log, Multisets, Numbers
from windrow.engine.sessions.engine import Sessions
from windrow.engine.windows import ClosedWindows
from windrow.planner.merging import NAMES, possible

EVENTS = fixed_stream({"x": "int", "y": "mild", "s": "string"}, size=60, span=90, seed=3)
SPANS = EVENTS.append_column(
    "until", pa.array([t + 1 + 13 * i % 40 for i, t in enumerate(EVENTS["time"].to_pylist())])
)
SPANS = SPANS.append_column("id", pa.array(range(60)))
NUMBERS = {
    "n": wr.count(),
    "total": wr.sum("x"),
    "mean": wr.mean("x"),
    "high": wr.max("x"),
    "sum": wr.sum("y"),
}
AGGREGATES = {
    "numbers": NUMBERS,
    "the user's own": {"own": TOTAL, "known": wr.count("x")},
    "sorted values": {"median": wr.median("x"), "n": wr.count()},
    "a sketch": {"different": wr.approx_distinct("x"), "n": wr.count()},
    "events in order": {"all": wr.collect("x"), "total": wr.sum("x")},
    "not commutative": {"own": ALTERNATING},
    "first and last": {"first": wr.first("x"), "last": wr.last("s")},
}
WINDOWS = {
    "aligned": {"a": wr.tumbling(7), "b": wr.sliding(21, every=3), "c": wr.cumulate(12, step=4)},
    "with gaps": {"a": wr.sliding(3, every=8), "b": wr.band(20, length=30)},
    "one session": {"a": wr.session(4)},
    "one rows window": {"a": wr.tumbling(rows=3)},
    "deterministic": {"a": SEQUENCES["deterministic"]},
    **{group: {f"w{i}": SEQUENCES[name] for i, name in enumerate(names)} for group, names in GROUPS.items()},
    "mixed": {"a": wr.tumbling(7), "s": wr.session(4), "r": wr.tumbling(rows=3)},
    "time and sessions": {"a": wr.tumbling(7), "s": wr.session(4), "t": wr.session(9)},
}


@dataclass
class Section:
    """What is said of windows that share slices."""

    windows: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    rest: dict[str, str] = field(default_factory=dict)
    stores: dict[str, list[str]] = field(default_factory=dict)


def read(text: str) -> list[Section]:
    """The sections of an explanation."""
    sections, part = [], ""
    for line in text.splitlines()[1:]:
        if line and not line.startswith(" "):
            part, _, said = line.partition(":")
            part = part.split(" (")[0]
            if part == "windows":
                sections.append(Section())
            sections[-1].rest[part] = said.strip()
        elif part == "windows" and re.match(r"  \S+ +.* (free|aware|session)$", line):
            sections[-1].windows.append(line.split()[0])
        elif part == "kept per slice and key" and line:
            label, size = re.match(r"  (.+?) +((?:\d+ x )?\d+ bytes.*?) for ", line).groups()
            sections[-1].kept[label] = size
        elif part == "store" and line and not line.startswith("  a window"):
            name, named = re.match(rf"  (.+?) +((?:{'|'.join(NAMES)}).*)", line).groups()
            sections[-1].stores[name] = [
                re.split(r" \d", each)[0] for each in re.split(r", (?:not )?", named)
            ]
    return sections


def fixed(size: str) -> int:
    """The bytes that each cell has, of a size that is said."""
    if "per event" in size and "+" not in size:
        return 0
    copies, bytes_ = re.match(r"(?:(\d+) x )?(\d+) bytes", size).groups()
    return int(copies or 1) * int(bytes_)


def per_event(size: str) -> int:
    found = re.search(r"(\d+) bytes per event", size)
    return int(found[1]) if found else 0


class Watched:
    """An operator whose state is looked at after each call."""

    def __init__(self, operator):
        self.operator = operator
        self.held: dict[frozenset, bool] = {}
        self.before: dict[frozenset, list[tuple]] = {}
        self.said = []

    def process(self, table):
        self.operator.process(table)
        self.look()

    def advance(self, watermark):
        self.operator.advance(watermark)
        self.look()
        for said, engine in zip(self.said, self.operator.engines, strict=True):
            most = re.match(r"at most about ([\d,]+) slices", said.rest.get("live per key", ""))
            assert bool(most) == isinstance(engine, Aligned)
            if most:
                live = int(np.count_nonzero(engine.slices.starts < watermark))
                assert live <= int(most[1].replace(",", "")), "more slices are alive than was said"

    def look(self):
        self.said = read(self.operator.explain())
        engines = self.operator.engines
        assert [set(said.windows) for said in self.said] == [set(e.query.windows) for e in engines]
        for engine, said in zip(engines, self.said, strict=True):
            name = frozenset(engine.query.windows)
            held, kept = holds_events(self.operator, engine), said.rest["single events"].startswith("kept")
            assert kept or not held, "single events are held"
            # Those that are said to be kept must be there at some time.
            self.held[name] = self.held.get(name, False) or held or not kept
            self.check_slices(name, engine, said)
            check_partials(engine, said)
            check_stores(self.operator, engine, said)

    def check_slices(self, name, engine, said):
        """No slice was split since the last look; and nobody said that one might be."""
        assert said.rest["slice splits"].startswith("never")
        assert said.rest["removal from slices"].startswith("never")
        now = slices_of(engine)
        for key, low, high, events in self.before.get(name, []):
            inside = [count for k, a, b, count in now if k == key and low <= a and b <= high]
            assert len(inside) < 2, "a slice was split"
            assert not inside or inside[0] >= events, "events were taken out of a slice"
        self.before[name] = now


def holds_events(operator, engine) -> bool:
    """Whether single events are there, whatever for."""
    held = engine.pending + sum(s.held for s in engine.binding.stores.values() if isinstance(s, Log))
    if operator.span_input is not None and operator.span_input.open is not None:
        held += len(operator.span_input.open)
    return held > 0


def slices_of(engine) -> list[tuple]:
    """Key, first and last instant of each slice, and how many events it has."""
    if isinstance(engine, Sessions):
        rows = engine.slices.in_order()
        columns = [engine.slices.table[name][rows].tolist() for name in ("lane", "first", "last")]
        return list(zip(*columns, engine.presence.n[rows].tolist(), strict=True))
    if isinstance(engine, Ordered):
        key, (*_, slot), (first, last) = engine.slices.all()
        columns = (key, first, last, engine.presence.n[slot])
        return [row for row in zip(*(c.tolist() for c in columns), strict=True) if row[1] < row[2]]
    counts = engine.presence.n.reshape(-1, engine.stride)[engine.slices.slots].sum(axis=1)
    times = zip(engine.slices.starts.tolist(), engine.slices.ends.tolist(), counts.tolist(), strict=True)
    return [(0, start, end, count) for start, end, count in times]


def check_partials(engine, said):
    """Each partial that is kept is named with its size, and no other."""
    assert said.rest["state"].startswith("aligned" if isinstance(engine, Aligned) else "per key")
    stores = engine.stores()
    assert sum(map(fixed, said.kept.values())) == sum(store.cell_bytes for store in stores)
    late = isinstance(engine, Aligned) and engine.settings.mode == "update"
    assert len(said.kept) == len(engine.binding.in_order) + late
    logs = [store for store in stores if isinstance(store, Log)]
    columns = [len(log.save(np.empty(0, np.int64), 0)) for log in logs]
    assert sorted(filter(None, map(per_event, said.kept.values()))) == sorted(8 * c for c in columns)
    several = [size for size in said.kept.values() if size.endswith("per different value")]
    values = [store for store in stores if isinstance(store, Multisets)]
    assert len(several) == len(values)


def check_stores(operator, engine, said):
    """Partials of some numbers are merged by one of the stores that are named, or by the one that was asked for."""
    merged = {}
    for (partial, _), store in engine.binding.stores.items():
        if isinstance(store, Numbers) and store.fields and engine.is_merged(store):
            merged[partial.name] = store.merging
    if isinstance(engine, Sessions) and not engine.passes_up:
        assert said.rest["store"] == "none, because a session is one slice"
        return
    if operator.settings.store != "auto" and merged:
        assert said.rest["store"].startswith(operator.settings.store + ",")
        assert {merging.store for merging in merged.values()} == {operator.settings.store}
        return
    if isinstance(engine, Aligned) and not len(engine.windows.every):
        return
    assert set(said.stores) == set(merged)
    for name, merging in merged.items():
        numbers = merging._numbers
        exact = all(dtype.kind == "i" for dtype in numbers.dtypes)
        assert set(said.stores[name]) == set(possible(numbers.spec, exact=exact))
        one = np.arange(1)
        assert merging.chosen(ClosedWindows(one, one, one + 1, one, one + 1), 1) == "lazy"


def run(operator, table, *changes):
    """Batches and watermarks; each of the changes takes place between two of them."""
    watched = Watched(operator)
    watermark = None
    for number, begin in enumerate(range(0, table.num_rows, 12)):
        watched.process(table.slice(begin, 12))
        if number < len(changes):
            changes[number](operator)
            watched.look()
        times = table["time"].slice(0, begin + 12).to_pylist()
        watermark = max(times) - 20 if watermark is None else max(watermark, max(times) - 20)
        watched.advance(watermark)
        if number == 2:
            watched.operator = operator = operator.query.restore(operator.snapshot())
    operator.finish()
    assert all(watched.held.values()), "single events are never held"


def query(windows, aggregates=None, *, time="time", ordered=False):
    return wr.query(time=time, key="key0", windows=windows, aggregates=aggregates or NUMBERS, ordered=ordered)


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("ordered", [False, True], ids=["disordered", "ordered"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_what_is_said_of_windows_is_so(windows, ordered, mode):
    asked = query(WINDOWS[windows], ordered=ordered)
    operator = asked.operator(mode=mode, lateness=5)
    run(operator, EVENTS.sort_by("time") if ordered else EVENTS)
    assert len(read(asked.explain(EVENTS.schema))) == len(operator.engines)


@pytest.mark.parametrize("ordered", [False, True], ids=["disordered", "ordered"])
@pytest.mark.parametrize("windows", ["aligned", "one session", "one rows window"])
@pytest.mark.parametrize("aggregates", AGGREGATES)
def test_what_is_said_of_aggregates_is_so(aggregates, windows, ordered):
    asked = query(WINDOWS[windows], AGGREGATES[aggregates], ordered=ordered)
    run(asked.operator(lateness=5), EVENTS.sort_by("time") if ordered else EVENTS)


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("windows", ["aligned", "with gaps", "one session", "time and sessions"])
@pytest.mark.parametrize("aggregates", AGGREGATES)
def test_what_is_said_of_events_that_last_is_so(aggregates, windows, mode):
    asked = query(WINDOWS[windows], AGGREGATES[aggregates], time=wr.span("time", "until", release=10))
    run(asked.operator(mode=mode, lateness=5), SPANS)


@pytest.mark.parametrize("contributes", ["start", "end", "prorated"])
@pytest.mark.parametrize("windows", ["aligned", "mixed"])
def test_what_is_said_of_each_contribution_is_so(windows, contributes):
    if windows == "mixed" and contributes == "prorated":
        windows = "with gaps"
    aggregates = {"n": wr.count(), "total": wr.sum("x"), "mean": wr.mean("y")}
    asked = query(WINDOWS[windows], aggregates, time=wr.span("time", "until", contributes=contributes))
    run(asked.operator(lateness=5), SPANS)


def test_events_that_are_open_are_said_to_be_kept():
    until = pa.array([None if i % 3 else t for i, t in enumerate(SPANS["until"].to_pylist())], pa.int64())
    table = SPANS.set_column(SPANS.column_names.index("until"), "until", until)
    run(query(WINDOWS["aligned"], time=wr.span("time", "until", id="id")).operator(lateness=5), table)


@pytest.mark.parametrize("store", ["flat_fat", "two_stacks_lite"])
def test_the_store_that_an_operator_was_asked_for_is_named(store):
    aggregates = {"n": wr.count(), "high": wr.max("x")}
    for windows in ("aligned", "mixed"):
        run(query(WINDOWS[windows], aggregates).operator(store=store), EVENTS)


CHANGES = {
    "of the same kind": [("a", wr.tumbling(7)), ("b", wr.sliding(14, every=2))],
    "a session to windows of time": [("a", wr.tumbling(7)), ("s", wr.session(4))],
    "three kinds": [
        ("a", wr.tumbling(7)),
        ("s", wr.session(4)),
        ("r", wr.tumbling(rows=3)),
        ("b", wr.tumbling(14)),
    ],
    "time to rows": [("r", wr.tumbling(rows=3)), ("a", wr.tumbling(7))],
    "rows to rows": [("r", wr.tumbling(rows=3)), ("q", wr.tumbling(rows=5))],
    "a session to sessions": [("s", wr.session(4)), ("t", wr.session(9))],
}


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_said_after_windows_were_added_is_so(change, mode):
    (name, window), *added = CHANGES[change]
    adding = [lambda operator, more=more: operator.add_window(*more) for more in added]
    operator = query({name: window}).operator(mode=mode, lateness=5)
    run(operator, EVENTS.sort_by("time"), *adding)


def test_three_kinds_of_windows_have_three_sets_of_slices():
    operator = query({"a": wr.tumbling(7)}).operator()
    operator.process(EVENTS)
    for name, window in (("s", wr.session(4)), ("r", wr.tumbling(rows=3)), ("b", wr.tumbling(14))):
        operator.add_window(name, window)
    text = operator.explain()
    assert [said.windows for said in read(text)] == [["a", "b"], ["s"], ["r"]]
    assert "set 3 of 3" in text
    assert "all share the same slices" not in text
    assert "set 3 of 3" in operator.query.explain(), "it would begin with as many"


@pytest.mark.parametrize("gone", [["r"], ["s"], ["r", "s"], ["s", "r"]], ids="-".join)
def test_what_is_said_after_windows_were_removed_is_so(gone):
    removing = [lambda operator, name=name: operator.remove_window(name) for name in gone]
    operator = query(WINDOWS["mixed"]).operator(lateness=5)
    watched = Watched(operator)
    watched.process(EVENTS.slice(0, 20))
    for remove in removing:
        remove(operator)
    watched = Watched(operator)
    waits = "r" not in gone
    watched.process(EVENTS.slice(20))
    assert [said.windows for said in watched.said] == [[n] for n in WINDOWS["mixed"] if n not in gone]
    for said in watched.said:
        assert said.rest["single events"].startswith("kept" if said.windows == ["r"] else "dropped")
    assert (operator.metrics().pending > 0) is waits


def test_aggregates_that_come_and_go_are_said_to():
    def come(operator):
        operator.add_aggregate("all", wr.collect("x"))

    def go(operator):
        operator.remove_aggregate("all")

    operator = query(WINDOWS["aligned"]).operator()
    operator.process(EVENTS)
    assert "all = collect(x)" not in operator.explain()
    come(operator)
    assert "all = collect(x)" in operator.explain()
    operator.process(EVENTS)
    check_partials(operator.engines[0], read(operator.explain())[0])
    assert (
        "kept, because aggregates read them again for each window that holds them (collect(x))"
        in operator.explain()
    )
    go(operator)
    assert "single events:        dropped" in operator.explain()
    assert not holds_events(operator, operator.engines[0])


@pytest.mark.parametrize("lateness", [0, 200])
@pytest.mark.parametrize("windows", ["aligned", "one slide of another"])
def test_as_many_slices_are_alive_as_is_said_where_every_slice_has_events(windows, lateness):
    asked = (
        {"a": wr.sliding(100, every=10), "b": wr.tumbling(7)} if windows != "aligned" else WINDOWS["aligned"]
    )
    operator = wr.query(time="t", windows=asked, aggregates={"n": wr.count()}).operator(lateness=lateness)
    most = 0
    for begin in range(0, 2_000, 50):
        operator.process(pa.table({"t": range(begin, begin + 50)}))
        operator.advance(begin + 50)
        most = max(most, operator.metrics().live_slices)
    said = re.search(r"at most about ([\d,]+) slices", operator.explain())
    assert most <= int(said[1].replace(",", "")) <= 2 * most + 5


def test_before_its_first_batch_an_operator_explains_its_query():
    asked = query(WINDOWS["mixed"])
    assert asked.operator().explain() == asked.explain()


@pytest.mark.parametrize("name", ALL)
def test_the_bytes_of_every_aggregate_are_those_of_its_store(name):
    aggregate, kinds = ALL[name]
    table = fixed_stream({"z": "bool", **kinds}, size=20, span=45, seed=1)
    operator = query(WINDOWS["aligned"], {"a": aggregate}).operator()
    operator.process(table)
    check_partials(operator.engines[0], read(operator.explain())[0])
