"""The plan of a query as a person would want to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from html import escape

from windrow.aggregates.base import Aggregate, Bound, Multiset, Scalars, Sequence, Sketch
from windrow.aggregates.count import Count
from windrow.expressions.building import shown
from windrow.planner import spanning
from windrow.planner.merging import estimates, possible, steady_load, width_of
from windrow.planner.plan import Part, Plan, placed
from windrow.planner.window_set import FEW, UNMERGED, WindowSet
from windrow.span import Learned, Span
from windrow.spec import QuerySpec

UNMERGED_PARTIALS = (
    "store: counts are differences of running totals; sorted values and events are read where they lie"
)
Exact = Callable[[Bound], bool]


class Explanation(str):
    """A plan in words, which in a notebook shows its picture, too."""

    plan: Plan

    @classmethod
    def of(cls, lines: Iterable[str], plan: Plan) -> Explanation:
        """Lines that say what a plan is."""
        explanation = cls("\n".join(lines))
        explanation.plan = plan
        return explanation

    @property
    def picture(self) -> str:
        """Windows, slices and what is shared, as SVG."""
        from windrow.planner.picture import picture

        return picture(self.plan)

    def _repr_html_(self) -> str:
        return f"{self.picture}<details><summary>in words</summary><pre>{escape(self)}</pre></details>"


def explain(plan: Plan, *, exact: Exact) -> Explanation:
    """A plan in words; `exact` says of an aggregate whether its partials can be taken out again without a trace."""
    query = plan.query
    time = query.time if isinstance(query.time, Span) else repr(shown(query.time))
    keys = f", per {', '.join(query.key)}" if query.key else ""
    windows, aggregates = _count(len(query.windows), "window"), _count(len(query.aggregates), "aggregate")
    lines = [f"{windows}, {aggregates}, one pass over {time}{keys}", *_computed(query)]
    for number, part in enumerate(plan.parts, 1):
        which = "all share the same slices"
        if len(plan.parts) > 1:
            which = f"set {number} of {len(plan.parts)}: these share slices"
        ticked = placed(part.query, part.schema)
        lines += _shared(part, ticked, which) + _kept(part, exact) + _spans(part, exact)
        lines += _sizes(part, ticked, exact) + _decisions(part)
    return Explanation.of(lines, plan)


def _computed(query: QuerySpec) -> list[str]:
    """What is computed of events before, and of results behind; columns of aggregates and windows say it themselves."""
    lines = [] if query.where is None else [f"  events    where {shown(query.where)}"]
    lines += [f"  key       {name} = {shown(source)}" for name, source in query.key_expressions.items()]
    return lines + [f"  result    {name} = {shown(source)}" for name, source in query.select.items()]


def _copies(part: Part, bound: Bound, exact: Exact) -> int:
    """How many partials a slice has for an aggregate: what begins in it, and the carry-over beside."""
    if not part.has_carry_over or part.keeps_events(bound.partial):
        return 1
    return 3 if exact(bound) else 2


def _presences(part: Part) -> int:
    """How many counts a slice has that tell which windows exist: of what begins, goes on and ends."""
    return 3 if part.has_spans else 1


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _shared(part: Part, windows: WindowSet | None, which: str) -> list[str]:
    query = part.query
    lines = ["", f"windows ({which})"]
    lines += [f"  {name:<12} {window!s:<40} {window.context}" for name, window in query.windows.items()]
    if part.kind == "sessions" and len(query.windows) > 1:
        lines.append(
            "  sessions of a larger gap are made of those of the next smaller one"
            if part.passes_up
            else "  each session window has slices of its own, because its sessions are not made of those of another"
        )
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
        event = "an event is folded once, and counts" if _presences(part) == 1 else "an instant lies"
        lines.append(f"  {event} in up to {windows.windows_per_event:,.0f} {which}windows")
    return lines


def _kept(part: Part, exact: Exact) -> list[str]:
    lines = ["", "kept per slice and key"]
    counts = [] if part.is_prorated else [f"{n} = {a}" for n, a, _ in part.bounds() if _is_count(a)]
    purpose = "which windows exist" + (f", {', '.join(counts)}" if counts else "")
    lines.append(f"  {'number of events':<26} {_times(_presences(part), 8):<10} for {purpose}")
    if part.options.mode == "update" and part.kind == "aligned":
        lines.append(f"  {'number of late events':<26} {_times(_presences(part), 8):<10} for revisions")
    for (what, columns), (names, bound) in _partials(part).items():
        label = f"{what} of {', '.join(map(str, columns))}" if columns else what
        label = label.replace(" of where ", " where ", 1)  # of events, and not of a column
        size = "by type" if bound is None else _size(part, bound, exact)
        lines.append(f"  {label:<26} {size:<10} for {', '.join(names)}")
    return lines


def _is_count(aggregate: Aggregate) -> bool:
    """Whether an aggregate counts events, whatever their values."""
    return isinstance(aggregate, Count) and not aggregate.columns


def _times(copies: int, size: int) -> str:
    return f"{size} bytes" if copies == 1 else f"{copies} x {size} bytes"


def _partials(part: Part) -> dict[tuple[str, tuple[str, ...]], tuple[list[str], Bound | None]]:
    """Each different partial, the aggregates that read it, and one of them with its types."""
    found: dict[tuple[str, tuple[str, ...]], tuple[list[str], Bound | None]] = {}
    for name, aggregate, bound in part.bounds():
        if _is_count(aggregate) and not part.is_prorated:
            continue
        what = str(aggregate) if bound is None else bound.partial.name
        found.setdefault((what, aggregate.columns), ([], bound))[0].append(f"{name} = {aggregate}")
    return found


def _size(part: Part, bound: Bound, exact: Exact) -> str:
    partial = bound.partial
    fixed = _fixed(part, partial)
    if not fixed:
        return f"{8 * ((4 if part.has_carry_over else 3) + len(bound.kinds))} bytes per event"
    if isinstance(partial, Multiset):
        return f"{fixed} bytes + 16 per different value"
    return _times(_copies(part, bound, exact), fixed)


def _fixed(part: Part, partial: Scalars | Sketch | Multiset | Sequence) -> int:
    """The size of what a cell always has of a partial."""
    if isinstance(partial, Sequence) or part.keeps_events(partial):
        return 0
    return 24 if isinstance(partial, Multiset) else cell_bytes(partial)


def cell_bytes(partial: Scalars | Sketch) -> int:
    """The size of one scalar or sketch partial, its count included."""
    return 8 + sum((1 if f.dtype == "u1" else 8) * (f.width or 1) for f in partial.fields)


def _spans(part: Part, exact: Exact) -> list[str]:
    """What happens with span events."""
    time = part.query.time
    if not isinstance(time, Span):
        return []
    lines = ["", f"span events, {time}: {spanning.CONTRIBUTIONS[time.contributes]}"]
    if part.has_carry_over:
        ways: dict[str, list[str]] = {}
        for _, aggregate, bound in part.bounds():
            way = "as its types allow"
            if bound is not None:
                way = spanning.way_of(bound.partial, exact=exact(bound))
            ways.setdefault(way, []).append(str(aggregate))
        lines += [f"  {', '.join(names):<26} {way}" for way, names in ways.items()]
    if isinstance(time.release, Learned):
        lines.append(
            f"  windows wait as long as {time.release.quantile:.1%} of the events seen have lasted at most"
        )
    elif time.release.magnitude:
        lines.append(f"  windows wait {time.release} for events that began in them and still last")
    return lines


def _is_own(bound: Bound) -> bool:
    return isinstance(bound.partial, Scalars) and bound.partial.own


def _sizes(part: Part, windows: WindowSet | None, exact: Exact) -> list[str]:
    if windows is None:
        return []
    if part.kind == "sessions":
        return ["", *_session_state(part, exact)]
    if part.kind == "ordered":
        return ["", *_ordered_state(), *_stores_when_due(part, exact)]
    measure, query = windows.measure, part.query
    late = float(measure.ticks(part.options.allowed_lateness, what="lateness"))
    if isinstance(query.time, Span) and not isinstance(query.time.release, Learned):
        late += float(measure.ticks(query.time.release, what="release"))
    reach = float(windows.longest) + late
    slices = float((reach / windows.periods.astype(float)).sum()) + len(windows.periods)
    slices += sum(reach / float(p.length) + 2 for _, p in windows.irregular)
    if not part.has_spans:
        spread = 1 + late / max(1.0, float(windows.longest))
        most = (UNMERGED + 1) * windows.windows_per_event * spread + FEW
        slices = most if windows.origins else min(slices, most)
    size = 8 * _presences(part) * (2 if part.options.mode == "update" else 1)
    size += sum(
        _copies(part, b, exact) * _fixed(part, b.partial)
        for _, b in _partials(part).values()
        if b is not None
    )
    ahead = ", and as many more as events reach ahead of it" if part.has_spans else ""
    return [
        "",
        f"live per key: at most about {slices:,.0f} slices up to the watermark (where there are events), "
        f"{windows.windows_per_event:,.0f} windows, {slices * size:,.0f} bytes of fixed size{ahead}",
        "state: aligned, one matrix of slices x keys per partial, because context-free windows cut every key alike",
        *_stores(part, windows, exact),
    ]


def _stores(part: Part, windows: WindowSet, exact: Exact) -> list[str]:
    """By which store each partial is merged where many windows are due at once, and what others would cost."""
    if not len(windows.every):
        return []
    load = steady_load(windows)
    lines = [
        "store: how slices are merged, in nanoseconds per window and key, where many windows are due at once"
    ]
    for partial, stores in _merged(part, exact):
        load = replace(load, width=width_of(partial))
        best, *others = estimates(load, stores)
        rest = ", ".join(f"{e.store} {e.nanoseconds / load.windows:,.0f}" for e in others)
        lines.append(f"  {partial.name:<26} {best.store} {best.nanoseconds / load.windows:,.0f}, not {rest}")
    if len(lines) == 1:
        return [UNMERGED_PARTIALS]
    if part.options.store != "auto":
        return [_asked_for(part)]
    return [*dict.fromkeys(lines), "  a window that is due by itself shares nothing, and is merged lazily"]


def _asked_for(part: Part) -> str:
    return f"store: {part.options.store}, because the operator was asked to merge slices by it"


def _stores_when_due(part: Part, exact: Exact) -> list[str]:
    """Which stores may merge each partial, where the number of slices of a window is not known beforehand."""
    found = dict.fromkeys(
        f"  {partial.name:<26} {', '.join(stores)}" for partial, stores in _merged(part, exact)
    )
    if not found:
        return [UNMERGED_PARTIALS]
    if part.options.store != "auto":
        return [_asked_for(part)]
    return ["store: chosen when windows are due, by how many they and their slices are", *found]


def _merged(part: Part, exact: Exact) -> Iterator[tuple[Scalars | Sketch, tuple[str, ...]]]:
    """The partials that are merged, of each aggregate that has one, and the stores that can do it."""
    for _, _, bound in part.bounds():
        partial = None if bound is None else bound.partial
        if bound is None or not isinstance(partial, (Scalars, Sketch)) or not partial.fields:
            continue
        if not part.keeps_events(partial):
            # Without a schema, nothing of the user's own is compiled to find out.
            sure = (part.schema is not None or not _is_own(bound)) and exact(bound)
            yield partial, possible(partial, exact=sure)


def _ordered_state() -> list[str]:
    """How windows that depend on the order of events are kept."""
    return [
        "state: per key, queues of slices and of events that wait, because these windows depend on the order of events",
        "order: events wait until the watermark less lateness has passed them, then enter slices in order; "
        "an event before that is late for these windows",
    ]


def _session_state(part: Part, exact: Exact) -> list[str]:
    """How sessions are kept, and which of them are merged of several slices."""
    lines = [
        "state: per key and window, a run of slices linked in the order of time, because sessions begin and end with events",
        "late:  an event is late for a session window if the session that it would be on its own is final",
    ]
    if part.passes_up:
        return lines + _stores_when_due(part, exact)
    return [*lines, "store: none, because a session is one slice"]


def _decisions(part: Part) -> list[str]:
    again = []
    for _, aggregate, bound in part.bounds():
        if bound is None:
            logged = not aggregate.algebra.commutative
        else:
            logged = part.keeps_events(bound.partial)
        if logged:
            again.append(str(aggregate))
    said = {
        "single events": single_events(part.query, again),
        "slice splits": splits(part.query),
        "removal from slices": removal(part.query),
    }
    return ["", *(f"{what + ':':<21} {decision}" for what, decision in said.items())]


# Scotty asks three questions before it processes a tuple (section 4, Figures 4, 5 and 6). Its trees keep tuples in slices, and
# then split, shift and recompute. Here events whose order matters wait until no earlier one can come, and enter slices in
# order; so nothing is ever split or taken out. Where a stream promises order, nothing waits.


def in_order(query: QuerySpec) -> str:
    """The windows that depend on the order of events, by name; "" if none does."""
    return ", ".join(name for name, window in query.windows.items() if window.layout == "ordered")


def single_events(query: QuerySpec, read_again: list[str]) -> str:
    """Figure 4: must single events be kept beside the partials? `read_again` are aggregates that read them anew."""
    reasons = []
    if in_order(query) and not query.ordered:
        reasons.append(
            f"windows depend on their order ({in_order(query)}): they wait until the watermark less lateness has passed them"
        )
    if read_again:
        reasons.append(
            f"aggregates read them again for each window that holds them ({', '.join(read_again)})"
        )
    if isinstance(query.time, Span) and query.time.id is not None:
        reasons.append("those without an end are open until it comes")
    if reasons:
        return f"kept, because {'; '.join(reasons)}"
    order = "events come in order" if in_order(query) else "no window depends on their order"
    return f"dropped, because {order}, and all aggregates are made of partials"


def splits(query: QuerySpec) -> str:
    """Figure 5: can a slice have to be split?"""
    if in_order(query):
        return "never, because events enter slices in order, when all edges before them are known"
    if all(w.layout == "aligned" for w in query.windows.values()):
        return "never, because all edges are known in advance"
    return "never, because a new slice only comes to lie between events, and parts none"


def removal(query: QuerySpec) -> str:
    """Figure 6: how are events taken out of a slice?"""
    counts = any(window.counts for window in query.windows.values())
    why = "events enter slices in order" if counts else "no window counts events"
    return f"never needed, because {why}, so none shifts from slice to slice"
