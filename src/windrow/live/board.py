"""An operator that is watched: it gets what the stream gives, and between two calls the windows that readers want."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from windrow.durations import DurationLike
from windrow.errors import QueryError
from windrow.live.store import Store
from windrow.planner.plan import placed
from windrow.windows.base import Window
from windrow.windows.tumbling import tumbling

if TYPE_CHECKING:
    from windrow.engine.operator import Operator
    from windrow.spec import QuerySpec

# How often counters are read, in seconds; what windows are called that readers want, and how many there may be.
EVERY = 0.2
ZOOM = "zoom "
MOST_ZOOMS = 12
# Lengths of windows that a person can read, in nanoseconds.
_SECOND = 1_000_000_000
LENGTHS = [
    n * unit
    for unit, numbers in (
        (1_000_000, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (_SECOND, (1, 2, 5, 10, 15, 30)),
        (60 * _SECOND, (1, 2, 5, 10, 15, 30)),
        (3_600 * _SECOND, (1, 2, 3, 6, 12)),
        (86_400 * _SECOND, (1, 2, 7, 14, 28, 91, 182, 364)),
    )
    for n in numbers
]


class Server(Protocol):
    """What serves the page."""

    url: str

    def stop(self) -> None: ...


@dataclass(frozen=True)
class State:
    """What is told of an operator: a value, replaced as a whole by the thread of the stream."""

    query: QuerySpec
    picture: str
    events: int = 0
    late: int = 0
    bad: int = 0
    keys: int = 0
    slices: int = 0
    bytes: int = 0
    rate: float = 0.0
    watermark: Any = None
    newest: Any = None
    runs: int = 1
    # From where on windows that were added for readers are complete; None is from the beginning.
    complete_from: tuple[tuple[str, Any], ...] = ()
    # Windows of the query that are for readers alone.
    zooms: frozenset[str] = frozenset()


class Dashboard:
    """An operator in a browser, made by `windrow.dashboard`: give it what you would give the operator."""

    def __init__(self, operator: Operator, *, title: str) -> None:
        self.title = title
        self.store = Store()
        self.server: Server | None = None
        self._operator = operator
        self._wanted: dict[object, frozenset[str]] = {}
        self._lock = threading.Lock()
        self._lengths: dict[str, Any] = {}
        self._zooms: dict[str, Any] = {}
        # Windows of the operator that are for readers from the beginning, so that slices are as fine as these.
        self._always = {name for name, window in operator.query.windows.items() if _is_finest(name, window)}
        self._refused: set[str] = set()
        self.least = _finest_slices(operator.query)
        self._read_at, self._events_then = time.monotonic(), 0
        self.state = State(operator.query, operator.explain().picture, zooms=frozenset(self._always))

    # -- the stream's side ---------------------------------------------------------------------------

    @property
    def operator(self) -> Operator:
        """The operator that is watched; it has the windows that readers want, too."""
        return self._operator

    def process(self, events: Any) -> pa.Table:
        """As `Operator.process`."""
        self._serve()
        rows = self._shown(self._operator.process(events))
        self._read()
        return rows

    def advance(self, watermark: Any) -> pa.Table:
        """As `Operator.advance`."""
        self._serve()
        rows = self._shown(self._operator.advance(watermark))
        self._read()
        return rows

    def tick(self) -> pa.Table:
        """As `Operator.tick`."""
        self._serve()
        rows = self._shown(self._operator.tick())
        self._read()
        return rows

    def finish(self) -> pa.Table:
        """As `Operator.finish`."""
        self._serve()
        rows = self._shown(self._operator.finish())
        self._read(now=True)
        return rows

    def attach(self, operator: Operator) -> None:
        """Go on with another operator: the one that was restored after the stream has failed."""
        self._operator = operator
        self._zooms = {name: None for name in self._zooms if name in operator.query.windows}
        self._events_then = operator.metrics().events
        picture = operator.explain().picture
        self.state = replace(
            self.state, query=operator.query, picture=picture, runs=self.state.runs + 1, zooms=self._hidden
        )
        self._serve()
        self._read(now=True)

    def _shown(self, rows: pa.Table) -> pa.Table:
        """All rows go to the store, and those of the stream's own windows to the stream."""
        self.store.put(rows)
        hidden = self._hidden
        if not hidden or not len(rows):
            return rows
        names = pa.array(sorted(hidden))
        return rows.filter(pc.invert(pc.is_in(rows["window"].cast(pa.string()), names)))

    @property
    def _hidden(self) -> frozenset[str]:
        """The windows of the operator that are for readers alone."""
        return frozenset({*self._zooms, *self._always})

    def _serve(self) -> None:
        """Add the windows that readers want, and remove those that nobody looks at."""
        wanted = self._wanted_now() - self._always - self._refused
        if wanted == self._zooms.keys():
            return
        for name in [name for name in self._zooms if name not in wanted]:
            self._operator.remove_window(name)
            self.store.forget(name)
            del self._zooms[name]
        for name in sorted(wanted - self._zooms.keys()):
            try:
                self._zooms[name] = self._operator.add_window(name, tumbling(self._lengths[name]))
            except QueryError:
                # It cannot be, such as half a second where times are whole seconds: the chart stays as it is.
                self._refused.add(name)
        complete = tuple((name, start) for name, start in self._zooms.items() if start is not None)
        picture = self._operator.explain().picture
        self.state = replace(
            self.state,
            query=self._operator.query,
            picture=picture,
            complete_from=complete,
            zooms=self._hidden,
        )

    def _wanted_now(self) -> set[str]:
        with self._lock:
            return set().union(*self._wanted.values()) if self._wanted else set()

    def _read(self, *, now: bool = False) -> None:
        """Counters, not too often."""
        moment = time.monotonic()
        passed = moment - self._read_at
        if passed < EVERY and not now:
            return
        metrics = self._operator.metrics()
        newest = self._operator.highest_time
        self.state = replace(
            self.state,
            events=metrics.events,
            late=metrics.late,
            bad=metrics.bad,
            keys=metrics.keys,
            slices=metrics.live_slices,
            bytes=metrics.bytes,
            rate=(metrics.events - self._events_then) / max(passed, 1e-9),
            watermark=metrics.watermark,
            newest=None if newest is None else self._operator.measure.scalar(newest),
        )
        self._read_at, self._events_then = moment, metrics.events

    # -- the readers' side -----------------------------------------------------------------------------

    def want(self, reader: object, lengths: dict[str, Any]) -> None:
        """A reader wants windows of these lengths, by their names, and none that it wanted before."""
        with self._lock:
            others = set().union(*(w for r, w in self._wanted.items() if r is not reader), set())
            new = [name for name in lengths if name in others]
            new += [name for name in lengths if name not in others][: max(0, MOST_ZOOMS - len(others))]
            self._lengths.update(lengths)
            if new:
                self._wanted[reader] = frozenset(new)
            else:
                self._wanted.pop(reader, None)

    def leave(self, reader: object) -> None:
        """A reader has gone."""
        self.want(reader, {})

    # -- its life -----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        assert self.server is not None
        return self.server.url

    def stop(self) -> None:
        """Close the page; the operator is as it was, without the windows of readers."""
        if self.server is not None:
            self.server.stop()
            self.server = None
        with self._lock:
            self._wanted.clear()
        self._serve()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def finest(length: DurationLike) -> tuple[str, Window]:
    """A window that a query has from the beginning, so that readers can zoom in to windows of multiples of its length."""
    return f"{ZOOM}{length}", tumbling(length)


def _is_finest(name: str, window: Window) -> bool:
    """Whether `finest` made this window: the query may have others that begin with the same word."""
    return name.startswith(ZOOM) and str(window) == f"tumbling {name.removeprefix(ZOOM)}"


def _finest_slices(query: QuerySpec) -> float:
    """How long slices are at most, in milliseconds or as a number; 0 if no window of time says it."""
    windows = placed(query, None)
    if windows is None or not len(windows.every):
        return 0.0
    unit = windows.measure.tick_nanoseconds
    return float(windows.every.min()) * (1.0 if unit is None else unit / 1e6)


def zoom(length: float, *, is_time: bool) -> tuple[str, Any]:
    """The name and the length of the window that is shown where one should be about so long (milliseconds, or a number)."""
    if not is_time:
        power = 10.0 ** math.floor(math.log10(length))
        nice = next(power * step for step in (1, 2, 5, 10) if power * step >= length * (1 - 1e-9))
        nice = max(1.0, nice)
        return f"{ZOOM}{nice:g}", int(nice) if nice == int(nice) else nice
    nanoseconds = length * 1e6
    nice = next((n for n in LENGTHS if n >= nanoseconds * (1 - 1e-9)), LENGTHS[-1])
    text = _in_words(nice)
    return ZOOM + text, text


def _in_words(nanoseconds: int) -> str:
    """A length as `tumbling` takes it.

    >>> _in_words(300_000_000_000), _in_words(86_400_000_000_000)
    ('5 minutes', '1 day')
    """
    for unit, size in (
        ("day", 86_400 * _SECOND),
        ("hour", 3_600 * _SECOND),
        ("minute", 60 * _SECOND),
        ("second", _SECOND),
    ):
        if nanoseconds % size == 0:
            count = nanoseconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{nanoseconds // 1_000_000} milliseconds"
