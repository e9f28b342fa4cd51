"""Windows that depend on the events, by definition: one short function for each type.

The *sequence* of a key is its events in order of time, and of arrival where times are equal. Each
function takes a window spec, the measure and the whole sequence of one key, and gives every window
with the events in it:

    sequence      a1   b3   c3   d7   e9        tumbling(rows=2)
    stretches     |--------|                    start 1, end 4 (right after b), holds a, b
                            |--------|          start 3, end 8, holds c, d
                                      |---      open: begun, its end is not known

An open window ends at `finish`, right after the key's last event, and that is the `end` it is given
here. Nothing is incremental: whoever wants to know what a late event changes asks again.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.referee.events import Event
from tests.referee.placement import after, before, windows_of
from windrow.errors import UserFunctionError
from windrow.measure import Measure, Tick
from windrow.windows import Window
from windrow.windows.advancing import Advancing
from windrow.windows.delta import Delta
from windrow.windows.deterministic import Deterministic
from windrow.windows.landmark import Landmark
from windrow.windows.latest import Latest
from windrow.windows.nondeterministic import Nondeterministic
from windrow.windows.predicate import Predicate
from windrow.windows.punctuated import Punctuated
from windrow.windows.rows import Rows
from windrow.windows.session import Session
from windrow.windows.slide_by_rows import SlideByRows
from windrow.windows.threshold import Threshold
from windrow.windows.tumbling import Tumbling

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True)
class Stretch:
    """One window of one key: its edges and its events. `open` says that no event has ended it."""

    start: Tick
    end: Tick
    events: tuple[Event, ...]
    open: bool = False


def in_sequence(events: Iterable[Event]) -> list[Event]:
    """Events in order of time, and of arrival where times are equal."""
    return sorted(events, key=lambda event: (event.tick, event.arrival))


def is_sequential(window: Window) -> bool:
    """Whether the windows depend on the events, and not on the time alone."""
    return type(window) in SEQUENCES


def is_order_based(window: Window) -> bool:
    """Whether an event can change any window that ends after it: all but sessions and landmarks."""
    return is_sequential(window) and not isinstance(window, (Session, Landmark))


def windows_in(window: Window, measure: Measure, sequence: Sequence[Event]) -> list[Stretch]:
    """Every window that holds an event, over the whole sequence of one key."""
    return [s for s in SEQUENCES[type(window)](window, measure, list(sequence)) if s.events]


def _closed(events: Sequence[Event], end: Tick) -> Stretch:
    return Stretch(events[0].tick if events else end, end, tuple(events))


def _open(events: Sequence[Event], measure: Measure, last: Event) -> Stretch:
    return Stretch(events[0].tick, after(measure, last.tick), tuple(events), open=True)


def gap_of(window: Session, measure: Measure, event: Event) -> Tick | None:
    """How long the event keeps its session open, in ticks; None where its column has no such length."""
    if window.column is None:
        assert window.gap is not None
        return measure.ticks(window.gap, what="gap")
    gap: Tick | None = event.values[window.column]
    type_ = event.source.table.schema.field(window.column).type
    if gap is not None and pa.types.is_duration(type_):
        ticks, rest = divmod(gap * _NANOSECONDS[type_.unit], measure.tick_nanoseconds or 1)
        gap = ticks if rest == 0 else None
    return gap if gap is not None and math.isfinite(gap) and gap > 0 else None


def end_of_session(window: Session, measure: Measure, event: Event) -> Tick:
    """Where the session would end that held this event alone: a gap after its last instant."""
    gap = gap_of(window, measure, event)
    assert gap is not None
    last = event.tick if event.end is None else before(measure, event.end)
    return last + gap


def _session(window: Session, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """An event joins the session before it if it comes no later than that one's end."""
    held: list[Event] = []
    end: Tick = -math.inf
    for event in events:
        if held and event.tick > end:
            yield _closed(held, end)
            held, end = [], -math.inf
        held.append(event)
        end = max(end, end_of_session(window, measure, event))
    if held:
        yield _closed(held, end)


def _rows(window: Rows, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """Window k holds the events of rank k*every up to k*every + length."""
    for first in range(0, len(events), window.every):
        held = events[first : first + window.length]
        if len(held) == window.length:
            yield _closed(held, after(measure, held[-1].tick))
        else:
            yield _open(held, measure, events[-1])


def _advancing(window: Advancing, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """Windows [offset + k*every, offset + k*every + length) of the highest reading so far."""
    highest = [max(event.values[window.column] for event in events[: i + 1]) for i in range(len(events))]
    if not events:
        return
    k = int((highest[0] - window.offset) // window.every)
    while window.offset + (k - 1) * window.every + window.length > highest[0]:
        k -= 1
    while window.offset + k * window.every <= highest[-1]:
        low = window.offset + k * window.every
        held = [e for e, m in zip(events, highest, strict=True) if low <= m < low + window.length]
        beyond = [e for e, m in zip(events, highest, strict=True) if m >= low + window.length]
        if held and beyond:
            yield _closed(held, beyond[0].tick)
        elif held:
            yield _open(held, measure, events[-1])
        k += 1


def _punctuated(window: Punctuated, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """A mark ends a window and begins the next; or a window runs from a start mark to an end mark."""
    held: list[Event] = []
    for event in events:
        if window.where is not None:
            if held and event.holds(window.where):
                yield _closed(held, event.tick)
                held = []
            held.append(event)
            continue
        assert window.start is not None
        assert window.end is not None
        if held or event.holds(window.start):
            held.append(event)
            if event.holds(window.end):
                yield _closed(held, after(measure, event.tick))
                held = []
    if held:
        yield _open(held, measure, events[-1])


def _delta(window: Delta, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """From one boundary to the `moves`-th after it; a boundary lies where the value has moved enough."""
    boundaries: list[int] = []
    value: Any = None
    for rank, event in enumerate(events):
        reading = event.values[window.column]
        if reading is None or math.isnan(reading):
            continue
        if value is None or abs(reading - value) > window.by:
            boundaries.append(rank)
            value = reading
    for number, first in enumerate(boundaries):
        if number + window.moves < len(boundaries):
            last = boundaries[number + window.moves]
            yield _closed(events[first:last], events[last].tick)
        else:
            yield _open(events[first:], measure, events[-1])


def _threshold(window: Threshold, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """The longest runs of events for which the predicate holds, if they are long enough."""
    runs: list[Stretch] = []
    held: list[Event] = []
    for event in events:
        if event.holds(window.where):
            held.append(event)
        elif held:
            runs.append(_closed(held, event.tick))
            held = []
    if held:
        runs.append(_open(held, measure, events[-1]))
    for run in runs:
        if window.at_least is not None:
            least = measure.ticks(window.at_least, what="at_least")
            if run.end - run.start < least:
                continue
        if window.at_least_rows is None or len(run.events) >= window.at_least_rows:
            yield run


def step_of_landmark(window: Landmark, measure: Measure, tick: Tick) -> int | None:
    """The number k (from 1) of the step [since + (k-1)*every, since + k*every) that holds the tick."""
    since = measure.point(window.since, what="since")
    every = measure.ticks(window.every, what="every")
    if tick < since:
        return None
    k = int((tick - since) // every) + 1
    while tick >= since + k * every:
        k += 1
    while tick < since + (k - 1) * every:
        k -= 1
    return k


def end_of_landmark(window: Landmark, measure: Measure, k: int) -> Tick:
    """Where the k-th window ends."""
    every = measure.ticks(window.every, what="every")
    return measure.point(window.since, what="since") + k * every


def _landmark(window: Landmark, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """The k-th window holds the steps up to k; there is one where its last step holds an event.

    An event counts in those windows that were not final when it came.
    """
    steps = [(event, step_of_landmark(window, measure, event.tick)) for event in events]
    for k in sorted({step for _, step in steps if step is not None}):
        end = end_of_landmark(window, measure, k)
        held = [(e, step) for e, step in steps if step is not None and step <= k and e.horizon < end]
        if any(step == k for _, step in held):
            start = measure.point(window.since, what="since")
            yield Stretch(start, end, tuple(event for event, _ in held))


def _slide_by_rows(window: SlideByRows, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """At every n-th event, all events in (t - length, t]."""
    length = measure.ticks(window.length, what="length")
    moments = {e.tick for rank, e in enumerate(events) if (rank + 1) % window.every_rows == 0}
    for moment in sorted(moments):
        start, end = after(measure, moment - length), after(measure, moment)
        yield Stretch(start, end, tuple(e for e in events if start <= e.tick < end))


def _latest(window: Latest, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """At every T = offset + k*every before which an event has come since the T before: the last few."""
    looks = {look_at(window, measure, event.tick) for event in events}
    for look in sorted(looks):
        yield _closed([e for e in events if e.tick < look][-window.rows :], look)


def look_at(window: Latest, measure: Measure, tick: Tick) -> Tick:
    """The first T after the tick."""
    ((_, look),) = windows_of(Tumbling(window.every, window.offset), measure, tick)
    return look


def _deterministic(window: Deterministic, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """At each event the function says how many open windows end before it, and how many begin."""
    state: Any = window.state[0] if window.bare else window.state
    begun: list[int] = []
    for rank, event in enumerate(events):
        if (
            begun
            and window.at_watermark is not None
            and event.tick >= (end := _end(window, measure, state, events[rank - 1]))
        ):
            for first in begun:
                yield _closed(events[first:rank], end)
            state, begun = window.state[0] if window.bare else window.state, []
        arguments = [_argument(event, column, measure) for column in window.columns]
        state, begins, ends = _called(window, window.step, event, state, *arguments)
        if begins < 0 or not 0 <= ends <= len(begun):
            why = f": {begins} begin and {ends} end, but {len(begun)} are open"
            raise UserFunctionError(str(window), event.row, why)
        for first in begun[:ends]:
            yield _closed(events[first:rank], event.tick)
        begun = begun[ends:] + [rank] * begins
    for first in begun:
        if window.at_watermark is None:
            yield _open(events[first:], measure, events[-1])
        else:
            yield _closed(events[first:], _end(window, measure, state, events[-1]))


def _end(window: Deterministic, measure: Measure, state: Any, last: Event) -> Tick:
    """When open windows end if no event comes: behind the last event of theirs."""
    assert window.at_watermark is not None
    return max(_called(window, window.at_watermark, last, state), after(measure, last.tick))


def _nondeterministic(window: Nondeterministic, measure: Measure, events: list[Event]) -> Iterator[Stretch]:
    """Each event joins; old ones are evicted; if the trigger says so, what is left is a window."""
    state: Any = window.state[0] if window.bare else window.state
    held: list[Event] = []
    for event in events:
        held.append(event)
        while held and (leaving := _asked(window, window.evict, measure, event, state, held)):
            if not 0 < leaving <= len(held):
                why = f": {leaving} of {len(held)} events cannot leave"
                raise UserFunctionError(str(window), event.row, why)
            held = held[leaving:]
        if held and _asked(window, window.trigger, measure, event, state, held):
            yield _closed(held, after(measure, event.tick))
        if window.update is not None:
            state = _asked(window, window.update, measure, event, state, held)


def _asked(
    window: Nondeterministic,
    function: Callable[..., Any],
    measure: Measure,
    event: Event,
    state: Any,
    held: list[Event],
) -> Any:
    """Call a function with what its parameters name."""
    columns = zip(window.parameters, window.columns, strict=True)
    values = {parameter: _argument(event, column, measure) for parameter, column in columns}
    values |= {"state": state, "rows": len(held), "oldest": held[0].tick if held else event.tick}
    return _called(
        window, function, event, *[values[name] for name in inspect.signature(function).parameters]
    )


def _argument(event: Event, column: str, measure: Measure) -> Any:
    return event.tick if column == measure.column else event.values[column]


def _called(window: Window, function: Callable[..., Any], event: Event, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as problem:
        raise UserFunctionError(str(window), event.row, f": {problem}") from problem


def problem_of(window: Window, measure: Measure, event: Event) -> tuple[str, Any, str] | None:
    """Why the window cannot take this event (column, value, reason), or None."""
    for predicate in _predicates(window):
        event.holds(predicate)
    for column in window.columns:
        value = event.values[column]
        if isinstance(window, Session) and gap_of(window, measure, event) is None:
            return column, value, "the gap of a session is a length greater than zero"
        if isinstance(window, Advancing) and (value is None or not math.isfinite(value)):
            return column, value, "a window on a column needs a finite number"
        if isinstance(window, (Deterministic, Nondeterministic)) and value is None:
            return column, value, "a function of the user's cannot read null"
    low, high = _reach(window, measure, event)
    if low < measure.lowest or high > measure.highest:
        return measure.column, event.tick, "a window does not fit"
    return None


def _predicates(window: Window) -> tuple[Predicate, ...]:
    return tuple(window.predicates.values())


def _reach(window: Window, measure: Measure, event: Event) -> tuple[Tick, Tick]:
    """The furthest edges that a window gets from this event."""
    if isinstance(window, Session):
        return event.tick, end_of_session(window, measure, event)
    if isinstance(window, Landmark):
        k = step_of_landmark(window, measure, event.tick)
        return event.tick, event.tick if k is None else end_of_landmark(window, measure, k)
    if isinstance(window, Latest):
        return event.tick, look_at(window, measure, event.tick)
    if isinstance(window, SlideByRows):
        start = after(measure, event.tick - measure.ticks(window.length, what="length"))
        return start, after(measure, event.tick)
    return event.tick, after(measure, event.tick)


SEQUENCES: dict[type[Window], Callable[[Any, Measure, list[Event]], Iterator[Stretch]]] = {
    Advancing: _advancing,
    Delta: _delta,
    Deterministic: _deterministic,
    Landmark: _landmark,
    Latest: _latest,
    Nondeterministic: _nondeterministic,
    Punctuated: _punctuated,
    Rows: _rows,
    Session: _session,
    SlideByRows: _slide_by_rows,
    Threshold: _threshold,
}
