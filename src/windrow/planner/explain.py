"""The plan of a query as a person would want to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Multiset, Scalars, Sequence, Sketch, guessed
from windrow.aggregates.count import Count
from windrow.durations import DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.planner import spanning
from windrow.planner.decisions import Characteristics, keep_tuples, removal, splits
from windrow.planner.merging import estimates, possible, steady_load, width_of
from windrow.planner.window_set import FEW, UNMERGED, WindowSet
from windrow.query import Query
from windrow.schema import require_columns
from windrow.span import Learned, Span
from windrow.windows.layout import is_aligned, needs_order
from windrow.windows.session import Session

UNMERGED_PARTIALS = (
    "store: counts are differences of running totals; sorted values and events are read where they lie"
)
Exact = Callable[[Bound], bool]


def explain(query: Query, schema: pa.Schema | None, *, lateness: DurationLike, exact: Exact) -> str:
    """See `Query.explain`; `exact` says of an aggregate whether its partials can be taken out again without a trace."""
    lines = [
        f"{_count(len(query.windows), 'window')}, {_count(len(query.aggregates), 'aggregate')}, one pass"
    ]
    lines[0] += f" over {query.time if isinstance(query.time, Span) else repr(query.time)}" + (
        f", per {', '.join(query.key)}" if query.key else ""
    )
    windows = _placed(query, schema)
    lines += _shared(query, windows) + _kept(query, schema) + _lasting(query, schema, exact)
    lines += _sizes(query, schema, windows, lateness, exact) + _decisions(query)
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _placed(query: Query, schema: pa.Schema | None) -> WindowSet | None:
    """The windows in ticks: of the schema's time column, or of nanoseconds or plain numbers."""
    if schema is not None:
        read = [c for a in query.aggregates.values() for c in a.columns]
        read += [c for w in query.windows.values() for c in w.columns]
        require_columns(schema, (*query.time_columns, *query.key, *read))
        return WindowSet.of(
            query.windows, Measure(query.time_columns[0], schema.field(query.time_columns[0]).type)
        )
    for type_ in (pa.timestamp("ns", "UTC"), pa.int64(), pa.float64()):
        try:
            return WindowSet.of(query.windows, Measure(query.time_columns[0], type_))
        except QueryError:
            continue
    return None


def _shared(query: Query, windows: WindowSet | None) -> list[str]:
    lines = ["", "windows (all share the same slices)"]
    lines += [f"  {name:<12} {window!s:<40} {window.context}" for name, window in query.windows.items()]
    gaps = [w for w in query.windows.values() if isinstance(w, Session)]
    if len(gaps) > 1:
        lines.append("  sessions are cut by the smallest gap; larger ones are made of the same slices")
    if windows is not None and (len(windows.periods) or windows.irregular):
        fused = windows.unfused - len(windows.periods)
        lines.append(
            f"  edges from {_count(len(windows.periods), 'progression')}"
            + (
                f"; {_count(fused, 'progression')} fused away, all their edges are edges of others"
                if fused
                else ""
            )
            + (f"; {_count(len(windows.irregular), 'irregular window')}" if windows.irregular else "")
        )
        which = "" if len(windows.owner) == len(windows.names) else "context-free "
        lines.append(
            f"  an event is folded once, and counts in up to {windows.windows_per_event:,.0f} {which}windows"
        )
    return lines


def _kept(query: Query, schema: pa.Schema | None) -> list[str]:
    lines = ["", "kept per slice and key"]
    counts = [f"{n} = {a}" for n, a in query.aggregates.items() if isinstance(a, Count) and not a.columns]
    purpose = "which windows exist" + (f", {', '.join(counts)}" if counts else "")
    lines.append(f"  {'number of events':<26} 8 bytes    for {purpose}")
    for (what, columns), (names, bytes_) in _partials(query, schema).items():
        label = f"{what} of {', '.join(columns)}" if columns else what
        lines.append(f"  {label:<26} {bytes_:<10} for {', '.join(names)}")
    return lines


def _partials(
    query: Query, schema: pa.Schema | None
) -> dict[tuple[str, tuple[str, ...]], tuple[list[str], str]]:
    """Each different partial, the aggregates that read it, and its size."""
    found: dict[tuple[str, tuple[str, ...]], tuple[list[str], str]] = {}
    for name, aggregate in query.aggregates.items():
        if isinstance(aggregate, Count) and not aggregate.columns:
            continue
        bound = _bound(aggregate, schema)
        if bound is None:
            what, size = str(aggregate), "by type"
        else:
            what, size = bound.partial.name, _size(bound)
        found.setdefault((what, aggregate.columns), ([], size))[0].append(f"{name} = {aggregate}")
    return found


def _bound(aggregate: Aggregate, schema: pa.Schema | None) -> Bound | None:
    if schema is None:
        return guessed(aggregate)
    return aggregate.bind(tuple(schema.field(c).type for c in aggregate.columns))


def _size(bound: Bound) -> str:
    partial = bound.partial
    if isinstance(partial, Multiset):
        return "24 bytes + 16 per different value"
    if isinstance(partial, Sequence) or (isinstance(partial, Scalars) and partial.ordered):
        return f"{8 * (3 + len(bound.kinds))} bytes per event"
    return f"{cell_bytes(partial)} bytes"


def cell_bytes(partial: Scalars | Sketch) -> int:
    """The size of one scalar or sketch partial, its count included."""
    return 8 + sum((1 if f.dtype == "u1" else 8) * (f.width or 1) for f in partial.fields)


def _lasting(query: Query, schema: pa.Schema | None, exact: Exact) -> list[str]:
    """What becomes of an event that lasts."""
    if not isinstance(query.time, Span):
        return []
    lines = ["", f"events that last, {query.time}: {spanning.CONTRIBUTIONS[query.time.contributes]}"]
    if query.time.contributes == "whole":
        ways: dict[str, list[str]] = {}
        for aggregate in query.aggregates.values():
            bound = _bound(aggregate, schema)
            # What a function of the user's own returns depends on the types that it is given.
            unknown = bound is None or (schema is None and _is_own(bound))
            way = "as its types allow"
            if bound is not None and not unknown:
                way = spanning.way_of(bound.partial, exact=exact(bound))
            ways.setdefault(way, []).append(str(aggregate))
        lines += [f"  {', '.join(names):<26} {way}" for way, names in ways.items()]
    release = query.time.release
    if isinstance(release, Learned):
        lines.append(
            f"  windows wait as long as {release.quantile:.1%} of the events seen have lasted at most"
        )
    elif release.magnitude:
        lines.append(f"  windows wait {release} for events that began in them and still last")
    return lines


def _is_own(bound: Bound) -> bool:
    return isinstance(bound.partial, Scalars) and bound.partial.own


def _sizes(
    query: Query, schema: pa.Schema | None, windows: WindowSet | None, lateness: DurationLike, exact: Exact
) -> list[str]:
    if windows is None:
        return []
    if not all(map(is_aligned, query.windows.values())):
        return ["", *_keyed_state(query), *_stores_when_due(query, schema, exact)]
    late = float(windows.measure.ticks(parse_duration(lateness), what="lateness"))
    reach = float(windows.longest) + late
    slices = float((reach / windows.periods.astype(float)).sum()) + len(windows.periods)
    slices += sum(reach / float(p.length) + 2 for _, p in windows.irregular)
    spread = 1 + late / max(1.0, float(windows.longest))
    slices = min(slices, (UNMERGED + 1) * windows.windows_per_event * spread + FEW)
    kept = {(b.partial, a.columns) for a in query.aggregates.values() if (b := _bound(a, schema)) is not None}
    fixed = 8 + sum(
        cell_bytes(partial) for partial, columns in kept if isinstance(partial, (Scalars, Sketch)) and columns
    )
    return [
        "",
        f"live per key: at most about {slices:,.0f} slices (where there are events), "
        f"{windows.windows_per_event:,.0f} windows, {slices * fixed:,.0f} bytes of fixed size",
        "state: aligned, one matrix of slices x keys per partial, because context-free windows cut every key alike",
        *_stores(query, schema, windows, exact),
    ]


def _stores(query: Query, schema: pa.Schema | None, windows: WindowSet, exact: Exact) -> list[str]:
    """By which store each partial is merged where many windows are due at once, and what others would cost."""
    if not len(windows.every):
        return []
    load = steady_load(windows)
    lines = [
        "store: how slices are merged, in nanoseconds per window and key, where many windows are due at once"
    ]
    for partial, stores in _merged(query, schema, exact):
        load = replace(load, width=width_of(partial))
        best, *others = estimates(load, stores)
        rest = ", ".join(f"{e.store} {e.nanoseconds / load.windows:,.0f}" for e in others)
        lines.append(f"  {partial.name:<26} {best.store} {best.nanoseconds / load.windows:,.0f}, not {rest}")
    if len(lines) == 1:
        return [UNMERGED_PARTIALS]
    return [*dict.fromkeys(lines), "  a window that is due by itself shares nothing, and is merged lazily"]


def _stores_when_due(query: Query, schema: pa.Schema | None, exact: Exact) -> list[str]:
    """Which stores may merge each partial, where nobody knows beforehand how many slices a window has."""
    found = dict.fromkeys(
        f"  {partial.name:<26} {', '.join(stores)}" for partial, stores in _merged(query, schema, exact)
    )
    if not found:
        return [UNMERGED_PARTIALS]
    return ["store: chosen when windows are due, by how many they and their slices are", *found]


def _merged(
    query: Query, schema: pa.Schema | None, exact: Exact
) -> Iterator[tuple[Scalars | Sketch, tuple[str, ...]]]:
    """The partials that are merged, of each aggregate that has one, and the stores that can do it."""
    for aggregate in query.aggregates.values():
        bound = _bound(aggregate, schema)
        partial = None if bound is None else bound.partial
        if bound is None or not isinstance(partial, (Scalars, Sketch)) or not partial.fields:
            continue
        if isinstance(partial, Sketch) or not partial.ordered:
            # Without a schema, nothing of the user's own is compiled to find out.
            sure = (schema is not None or not _is_own(bound)) and exact(bound)
            yield partial, possible(partial, exact=sure)


def _keyed_state(query: Query) -> list[str]:
    """How slices are kept that are cut for each key in its own places."""
    lines = [
        "state: per key, flat columns of slices sorted by key and time, because some window depends on more "
        "than time",
    ]
    if any(map(needs_order, query.windows.values())):
        lines.append(
            "order: events wait until the watermark less lateness has passed them, then enter slices in order; "
            "an event before that is late for every window"
        )
    elif any(isinstance(w, Session) for w in query.windows.values()):
        lines.append(
            "late:  an event is taken as long as the session that it would be on its own is not final"
        )
    return lines


def _decisions(query: Query) -> list[str]:
    c = Characteristics.of(query)
    rows = (
        ("single events", keep_tuples(c)),
        ("slice splits", splits(c)),
        ("removal from slices", removal(c)),
    )
    lines = [f"{what + ':':<21} {d.answer}, because {d.reason}" for what, d in rows]
    if any(map(needs_order, query.windows.values())):
        lines.append(
            "in practice:          events wait until the horizon has passed them and enter slices in order, so nothing "
            "is ever split or removed; the lines above say what it would take otherwise"
        )
    return ["", *lines]
