"""What all techniques share: batches in, watermarks in, windows out, as the engine has it, and what was counted.

    Technique     what is called: process, advance, finish, counters
    Method        how windows are computed; made for the types of the first batch

A `Method` is an engine in the sense of `windrow.engine`, and the engine's operator drives it: bad rows are found,
late ones set aside and watermarks held in order by the same code for everybody. What is left to a method is its
idea: `insert` takes events in, `due` answers the windows that end in a stretch of time, `let_go` forgets. Where
sessions begin and end is followed for all methods alike (`sessions.py`): a method with sessions answers those that
are `over`, and one with buckets is told what goes where by `into_sessions`.

All of them work in append mode: a window is given out once, when no event can change it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.techniques.kept import kept_column
from benchmarks.techniques.partials import Partials
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.sessions import OpenSessions, Over, Placed, static_sessions
from windrow.aggregates.user import UserAggregate
from windrow.durations import DurationLike
from windrow.engine.binding import Answer
from windrow.engine.engine import Engine
from windrow.engine.intake.batches import EventBatch, PartialBatch
from windrow.engine.intake.columns import shown
from windrow.engine.operator import Operator
from windrow.engine.partials import Store
from windrow.engine.results import WINDOW_TYPE
from windrow.engine.staging import Staged
from windrow.engine.windows import first_open_start
from windrow.errors import DataError, QueryError, StateError, UserFunctionError, WindrowError
from windrow.measure import Tick
from windrow.options import OperatorOptions
from windrow.planner.plan import Part
from windrow.spec import QuerySpec
from windrow.windows.base import Window
from windrow.windows.cumulate import Cumulate
from windrow.windows.session import Session
from windrow.windows.sliding import Sliding
from windrow.windows.tumbling import Tumbling

MOST_CELLS = 100_000_000
# Why techniques that cut time by the windows alone cannot have sessions.
CUT_BEFOREHAND = (
    "it cuts time where the windows say beforehand, and where a session begins and ends the events say"
)


@dataclass(frozen=True)
class Counters:
    """`combines` since the beginning (lifts are not counted), and what is alive now."""

    combines: int
    partials: int
    tuples: int


class Method(Engine):
    """See the module. `combines` is added to by the loops."""

    # Whether events must come in the order of time.
    in_order: ClassVar[bool] = False

    def __init__(self, query: QuerySpec, settings: OperatorOptions, schema: pa.Schema) -> None:
        super().__init__(Part("aligned", query, schema, settings))
        self.partials = Partials(self.binding)
        self.combines = 0
        self.stride = 1
        self.threshold: Tick = self.lowest
        self.sessions = static_sessions(query.windows, self.measure)
        self.prepare()

    # -- for each technique to say ---------------------------------------------------------------

    def prepare(self) -> None:
        """Make room for the first events."""

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        """Take events in; `keys` are key numbers, None if there is no key; `ordered` if times ascend."""
        raise NotImplementedError

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        """The windows that end in (after, until]; no event before `watermark` is expected."""
        raise NotImplementedError

    def into_sessions(
        self,
        window: int,
        placed: Placed,
        times: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[np.ndarray, ...],
    ) -> None:
        """Take inserted events into buckets of the sessions of `self.sessions[window]`; a buffer has none."""

    def over(self, window: int, sessions: Over) -> Iterator[Rows]:
        """The answers of these sessions of `self.sessions[window]`."""
        raise NotImplementedError

    def let_go(self, horizon: Tick) -> None:
        """Forget what only windows needed that end at or before the horizon."""
        raise NotImplementedError

    def widen(self) -> None:
        """The first null has come: count values apart from events."""
        raise NotImplementedError

    def live(self) -> tuple[int, int]:
        """How many partials and how many tuples are alive."""
        raise NotImplementedError

    # -- time ------------------------------------------------------------------------------------

    def reach(self) -> tuple[Tick, Tick]:
        low, high = super().reach()
        gaps = [s.gap.item() for s in static_sessions(self.query.windows, self.measure)]
        return low, min([high, *(self.measure.highest - gap - 1 for gap in gaps)])

    def passed(self, watermark: Tick) -> Tick:
        """Sessions that end before this are over."""
        return min(max(watermark - self.lateness, self.lowest - 1), self.measure.highest)

    @property
    def needed(self) -> np.ndarray:
        """For each key, the first instant that a window which is not final may ask for."""
        found = np.full(max(1, self.keys.count), self.threshold, self.measure.dtype)
        for sessions in self.sessions:
            sessions.lower(found)
        return found

    # -- events in -------------------------------------------------------------------------------

    def too_late(self, load: EventBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events that no window takes any more, and of those among them that had one.

        Each window judges by itself. Sessions have a place for every event, so one that all windows refuse had one.
        """
        if self.in_order:
            self._require_order(load.batch, load.times)
            return None
        if self.sessions:
            if self.watermark is None:
                return None
            horizon = self.passed(self.watermark)
            late = load.times < self.threshold
            for sessions in self.sessions:
                late &= sessions.refuse(load.times, horizon)
            return late, late
        if load.scan[0] >= self.threshold:
            return None
        return self.windows.missed(load.times, load.times, self.threshold)

    def partly_late(self, load: EventBatch) -> np.ndarray | None:
        """Nobody asks how many events missed some of their windows."""
        return None

    def _require_order(self, batch: pa.RecordBatch, times: np.ndarray) -> None:
        floor = self.lowest if self.highest_time is None else self.highest_time
        floor = floor if self.watermark is None else max(floor, self.watermark)
        highest = np.maximum.accumulate(np.maximum(times, floor))
        late = np.flatnonzero(times < highest)
        if len(late):
            row = int(late[0])
            value = shown(batch.column(self.measure.column)[row])
            problem = "comes after a later event or watermark, and this technique takes events in order only"
            raise DataError(self.measure.column, row, value, problem)

    def _stage(self, load: EventBatch | PartialBatch, staged: Staged) -> None:
        """Take good events in; only keys can be forgotten again."""
        assert isinstance(load, EventBatch)
        self.take(load)

    def take(self, events: EventBatch) -> None:
        """Take good events in."""
        encoded = self.encode(events.batch)
        if not self.partials.masked and any(p is not None for p in encoded[1].values()):
            self.partials.masked = True
            self.widen()
        times = read_only(events.times)
        keys = None if events.numbers is None else events.numbers.astype(np.int64)
        arrival = events.arrival + np.arange(len(times) if self.partials.timed else 0)
        inputs = self.partials.inputs(encoded, times, arrival)
        columns = tuple(map(read_only, inputs))
        self.insert(times, keys, columns, events.scan[2])
        for window, sessions in enumerate(self.sessions):
            self._place(window, sessions, times, keys, columns)
        self.highest_time = events.high if self.highest_time is None else max(self.highest_time, events.high)

    def _place(
        self,
        window: int,
        sessions: OpenSessions,
        times: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[np.ndarray, ...],
    ) -> None:
        """Let sessions have those of the events that are not late for them."""
        known = self.keys.count
        if self.watermark is not None:
            late = sessions.refuse(times, self.passed(self.watermark))
            if late.any():
                sessions.pass_over(times[late], None if keys is None else keys[late], known)
                times, inputs = read_only(times[~late]), tuple(read_only(column[~late]) for column in inputs)
                keys = None if keys is None else keys[~late]
        if len(times):
            self.into_sessions(window, sessions.place(times, keys, known), times, keys, inputs)

    def _recode(self, column: str, moved: np.ndarray) -> None:
        self.recode(column, moved)

    def recode(self, column: str, moved: np.ndarray) -> None:
        """The codes of a column of strings have changed."""
        raise NotImplementedError

    @property
    def keyed(self) -> bool:
        return bool(self.query.key)

    # -- windows out -----------------------------------------------------------------------------

    @property
    def reached(self) -> Tick:
        """Up to where windows have been given out."""
        return self.clamp(self.lowest - 1) if self.watermark is None else self.horizon(self.watermark)

    def due(self, watermark: Tick | None, *, look: bool = False) -> list[pa.RecordBatch]:
        assert watermark is not None
        assert not look, "techniques give windows out when they have ended"
        horizon = self.horizon(watermark)
        rows = [self._batch(part) for part in self.ended(self.reached, horizon, self.clamp(watermark))]
        for window, sessions in enumerate(self.sessions):
            over = sessions.over(self.passed(watermark))
            rows += [self._batch(part) for part in self.over(window, over)] if len(over) else []
        return rows

    def abandon(self) -> None:
        """What is half done stays so: the operator goes on no more after an error."""

    def add_window(self, name: str, window: Window) -> Tick | None:
        raise QueryError(f"window {name!r} comes while the stream runs, which techniques do not know")

    def make_store(self, store: Store) -> Tick | None:
        raise QueryError("an aggregate comes while the stream runs, which techniques do not know")

    # A technique remembers every key.
    forgets_keys = False

    def collect_strings(self) -> None:
        """And every string."""

    def pass_to(self, watermark: Tick | None) -> None:
        assert watermark is not None
        horizon = self.horizon(watermark)
        self.watermark = watermark
        self.threshold = max(self.threshold, first_open_start(self.windows, horizon))
        self.let_go(horizon)

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        columns = [column.take(pa.array(rows.key)) for column in self.keys.columns]
        names = pa.array(self.windows.names, pa.string())
        spec = pa.array(rows.spec.astype(np.int32))
        columns.append(pa.DictionaryArray.from_arrays(spec, names, safe=False).cast(WINDOW_TYPE))
        columns += [self.measure.array(rows.start), self.measure.array(rows.end)]
        columns += [self.answers(name, self.binding.answers[name], rows) for name in self.query.aggregates]
        return pa.RecordBatch.from_arrays(columns, schema=self.result_schema)

    def answers(self, name: str, answer: Answer, rows: Rows) -> pa.Array:
        """The column of an aggregate."""
        if answer.key in self.partials.parts:
            return self.partials.lowered(name, answer, rows.cells)
        assert rows.kept is not None
        return kept_column(answer, rows.kept, len(rows.spec), answer.decoders)


def read_only(column: np.ndarray) -> np.ndarray:
    """The same numbers as one type for the compiler, whether Arrow owns them or not."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


class Running(Operator):
    """The engine's operator around a method."""

    def __init__(self, query: QuerySpec, settings: OperatorOptions, method: Callable[..., Method]) -> None:
        super().__init__(query, settings)
        self._method = method

    def _engines(self, query: QuerySpec, schema: pa.Schema) -> Any:
        return [self._method(query, self.settings, schema)]


class Technique:
    """A query answered with one technique. Results are those of `Query.operator()`; the order of rows is free."""

    method: ClassVar[type[Method]]
    # Whether events are kept until windows end, as quantiles and lists need them.
    keeps_tuples: ClassVar[bool] = False
    # Whether the order of events is restored where they come out of order.
    restores_order: ClassVar[bool] = True
    # Why it cannot have sessions; empty if it can.
    no_sessions: ClassVar[str] = "it takes periodic windows of time"

    def __init__(self, query: QuerySpec, lateness: DurationLike = 0) -> None:
        self.query = query
        self._ended_by: BaseException | None = None
        for name, window in query.windows.items():
            self._require_window(name, window)
        for name, aggregate in query.aggregates.items():
            if aggregate.algebra.kind == "holistic" and not self.keeps_tuples:
                self._refuse(f"aggregate {name!r}", "its partial grows with the events, and no event is kept")
            if not aggregate.algebra.commutative and not self.restores_order:
                self._refuse(f"aggregate {name!r}", "it depends on the order of events, and none is kept")
        settings = OperatorOptions(lateness=lateness, max_slices=MOST_CELLS)
        self._operator = self._running(settings)

    def _running(self, settings: OperatorOptions) -> Running:
        """What drives the method, for a query whose time it can read."""
        if not isinstance(self.query.time, str):
            self._refuse(
                f"the span {self.query.time}",
                "it takes events that happen at an instant; benchmarks.techniques.spanning has those for span events",
            )
        return Running(self.query, settings, self.method)

    def _require_window(self, name: str, window: Window) -> None:
        if isinstance(window, (Tumbling, Sliding, Cumulate)):
            return
        if not isinstance(window, Session):
            others = "" if self.no_sessions else " and sessions"
            self._refuse(
                f"window {name!r}", f"it takes periodic windows of time{others}, and this is {window}"
            )
        elif self.no_sessions:
            self._refuse(f"window {name!r}", f"{self.no_sessions}, and this is {window}")
        elif window.gap is None:
            self._refuse(
                f"window {name!r}",
                f"the gap of a session must be the same for all events, and this is {window}",
            )

    def _refuse(self, what: str, why: str) -> None:
        raise QueryError(f"{what} cannot be answered by {type(self).__name__}: {why}")

    def process(self, events: Any) -> None:
        """Take in events: anything that speaks Arrow, or an iterator of such batches."""
        with self._whole_or_ended((WindrowError,)):
            self._operator.process(events)

    def advance(self, watermark: Any) -> pa.Table:
        """Say that no event before `watermark` is expected any more; the windows that this completes."""
        with self._whole_or_ended((QueryError,)):
            return self._operator.advance(watermark)

    def finish(self) -> pa.Table:
        """Say that no event is expected any more; everything that is left."""
        with self._whole_or_ended(()):
            return self._operator.finish()

    @contextmanager
    def _whole_or_ended(self, refusals: tuple[type[WindrowError], ...]) -> Iterator[None]:
        """Techniques cannot take back what is half done: after an error that is no refusal, nothing goes on."""
        if self._ended_by is not None:
            raise StateError(f"this operator ended with an error, and cannot go on: {self._ended_by}")
        try:
            yield
        except refusals:
            raise
        except WindrowError as problem:
            self._ended_by = problem
            raise
        except BaseException as problem:
            self._ended_by = problem
            own = [a.name for a in self.query.aggregates.values() if isinstance(a, UserAggregate)]
            if not own or not isinstance(problem, Exception):
                raise
            what = f"a function of {' or '.join(map(repr, own))} raised {type(problem).__name__}"
            raise UserFunctionError(f"{what}: {problem}") from problem

    def late(self) -> pa.Table:
        """The events that came too late for all of their windows, since the last call."""
        return self._operator.late()

    @property
    def counters(self) -> Counters:
        """What was done so far, and what is alive."""
        if not self._operator.engines:
            return Counters(0, 0, 0)
        method: Any = self._operator.engines[0]
        return Counters(method.combines, *method.live())
