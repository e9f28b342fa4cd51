"""The running operator: batches in, watermarks in, windows out.

    process(batch)       bad rows -> late rows -> the engines take the rest          (nothing is emitted, unless in order)
    advance(watermark)   the engine gives the windows that are due, and lets go of what is final

Two instants follow the watermark w: windows that end at or before the *horizon* `w - lateness` are
final; windows that end at or before the *emission point* are given out (the horizon itself in append
mode, w in update mode). An error in either call leaves the operator as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from time import time_ns
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import Aggregate
from windrow.engine.completeness import next_after
from windrow.engine.engines import engines_for
from windrow.engine.functions.store_compatibility import has_exact_inverse, require_pairings
from windrow.engine.intake.bad_rows import Bounds, Intake
from windrow.engine.intake.batches import EventBatch, PartialBatch
from windrow.engine.intake.columns import batches, ticks_of, viewless_schema
from windrow.engine.intake.projection import REASON, Projection, projection_of, rows_of
from windrow.engine.metrics import Metrics
from windrow.engine.operator_state import OperatorState
from windrow.engine.results import FINAL, empty_result, joined, with_selected
from windrow.engine.staging import Staged
from windrow.errors import QueryError, StateError
from windrow.expressions.building import sources_of
from windrow.measure import Point, PointLike, Tick, parse_point
from windrow.options import OperatorOptions, replaced
from windrow.planner.plan import Plan
from windrow.planner.window_set import FEW
from windrow.span import Span
from windrow.spec import QuerySpec, refuse_name_clashes, require_ends, require_for_spans, require_named
from windrow.triggers import CLOSE, Every, EveryRows, Trigger, When
from windrow.watermarks import NOW, NOW_TYPE, Now, Watermark, watermark
from windrow.windows.base import Window
from windrow.wording import choices

if TYPE_CHECKING:
    from windrow.engine.engines import AnyEngine
    from windrow.engine.spanning.lifespans import BadRowReasons
    from windrow.engine.spanning.span_input import SpanInput
    from windrow.planner.explain import Explanation


class Operator(OperatorState):
    """A query at work on a stream. Made by `Query.operator` and `Query.restore`."""

    def __init__(
        self,
        query: QuerySpec,
        settings: OperatorOptions,
        follows: Watermark | None = None,
        clock: Callable[[], int] = time_ns,
    ) -> None:
        require_ends(query.windows)
        require_pairings(settings.store, query.aggregates.values())
        _require_looks(query, settings)
        _require_unfollowed(query, follows)
        if isinstance(query.time, Now):
            follows = watermark()
        # Where events come in order, none is late, and nothing waits for one.
        settings = replace(settings, lateness=0) if query.ordered else settings
        super().__init__(query, settings, follows, clock)
        self._intake = Intake(query.time_columns[0], settings, ordered=query.ordered)
        self._keys_kept = 0

    @classmethod
    def restored(
        cls,
        query: QuerySpec,
        snapshot: bytes,
        *,
        emit: str | Trigger = CLOSE,
        clock: Callable[[], int] = time_ns,
    ) -> Operator:
        """The operator that a snapshot is of, which goes on with `query` once it is told to `change`.

        A condition of early rows is not in the snapshot: it is that of `emit`.
        """
        from windrow.engine.snapshot import restore

        return restore(query, snapshot, partial(cls, clock=clock), emit)

    def reconfigure(self, settings: OperatorOptions) -> None:
        """Go on with other options: what is final stays final, and in "update" mode the changelog begins anew."""
        require_pairings(settings.store, self.query.aggregates.values())
        _require_looks(self.query, settings)
        settings = replace(settings, lateness=0) if self.query.ordered else settings
        if settings.mode != self.settings.mode:
            self._require_other_mode(settings)
        for i, engine in enumerate(self.engines):
            if settings.changelog != self.settings.changelog and engine.part.kind == "ordered":
                from windrow.engine.ordered.engine import Ordered
                from windrow.engine.snapshot import in_other_mode

                assert isinstance(engine, Ordered)

                self.engines[i] = in_other_mode(engine, settings)
            self.engines[i].reconfigure(settings)
        begins_anew = settings.changelog != self.settings.changelog
        self.settings = settings
        if self.engines and begins_anew:
            self.open_gate()
        self._intake = Intake(self.query.time_columns[0], settings, ordered=self.query.ordered)
        self._fit_unfetched()

    def _require_other_mode(self, options: OperatorOptions) -> None:
        """An error unless what is held can be given out in the other mode, that of these options."""
        if self.span_input is not None:
            raise StateError(
                f"the mode was {self.settings.mode}, is {options.mode}: with events of {self.query.time} it stays"
            )
        parts = [engine.part for engine in self.engines]
        made = [part for part in parts if replace(part, options=options).passes_up and not part.passes_up]
        if made:
            raise StateError(
                f"the mode was update, is append: with the windows {', '.join(made[0].query.windows)} it stays, as sessions are made of "
                "each other in append mode"
            )

    def _fit_unfetched(self) -> None:
        """Give rows that nobody has got yet the columns of now; null where they were not computed."""
        for i, rows in enumerate(self.unfetched):
            fields = self.engines[0].result_schema
            known = set(rows.column_names)
            columns = [
                rows.column(f.name) if f.name in known else pa.nulls(len(rows), f.type) for f in fields
            ]
            self.unfetched[i] = pa.Table.from_arrays(columns, schema=fields)

    def _fit_set_aside(self) -> None:
        """Give late and bad rows that nobody has got yet the columns that are read now; null where they had none."""
        assert self.schema is not None
        read = dict.fromkeys(name for engine in self.engines for name in engine.binding.columns)
        fields = [self.schema.field(name) for name in read]
        self.put_aside(*(_with_fields(rows, fields) for rows in self.set_aside().values()))

    # -- data in ---------------------------------------------------------------------------------

    def process(self, events: Any) -> pa.Table:
        """Take in events: anything that speaks Arrow, or an iterator of such batches.

        Returns the windows that are complete then. Without `ordered=True` that is for watermarks to say (`advance`), and there are
        no rows, but early ones where it is time for them (the option `emit`). With `ordered=True` the watermark follows the events: no event earlier than the newest one is expected. If a
        function of the user's own fails on a window that is complete, the events are in, and the window comes with the next
        call; if one of several batches fails, the windows of those before it do.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}, ordered=True)
        >>> q.operator().process(pa.table({"ts": [1, 2, 7]})).to_pylist()
        [{'window': 'w', 'start': 0, 'end': 5, 'n': 2}]
        """
        if not self.query.ordered:
            self.take_events(events)
            return self._follow()
        for batch in batches(events):
            self._process(batch)
            newest = self.highest_time
            if newest is not None and (self.watermark is None or newest > self.watermark):
                self._keep(self.complete_to(newest))
        return self._fetched(self.look())

    def _follow(self) -> pa.Table:
        """What is due by a watermark that follows the events, and early rows."""
        mark = None if self.following is None else self.following.watermark()
        before = self.watermark if self.span_input is None else self.span_input.said
        return (
            self.look() if mark is None or (before is not None and mark <= before) else self.advance_to(mark)
        )

    def tick(self) -> pa.Table:
        """The windows that are due by the clock, where no events come: of an operator with a watermark of its own.

        To be called from time to time; it costs next to nothing where nothing is due.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> from datetime import datetime
        >>> from windrow.policies import VirtualClock
        >>> clock = VirtualClock()
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling("1 minute")}, aggregates={"n": wr.count()})
        >>> op = q.operator(watermark=wr.watermark(idle="30 seconds"), clock=clock.now)
        >>> op.process(pa.table({"ts": [datetime(2026, 1, 1, 12, 0, 40)]})).num_rows
        0
        >>> clock.advance("30 seconds")
        >>> op.tick()["n"].to_pylist()
        [1]
        """
        if self.follows is None:
            raise QueryError(
                "tick asks the clock, and this operator is told its watermark by advance: operator(watermark=wr.watermark(..)) "
                "has one that follows the events"
            )
        return self._follow() if self.engines else self._nothing()

    def look(self) -> pa.Table:
        """Early rows, where it is time for them."""
        return self.complete_to(self.watermark) if self._is_time_to_look() else self._nothing()

    def _is_time_to_look(self) -> bool:
        """Whether the trigger of early rows says so."""
        trigger = self.settings.trigger
        if trigger is None or self.counters.events == self.looked_events or self.highest_time is None:
            return False
        if not isinstance(trigger, Every):
            rows = trigger.rows if isinstance(trigger, EveryRows) else 1
            return self.counters.events - self.looked_events >= rows
        assert self.looked_to is not None
        period = self.measure.ticks(trigger.period, what="emit: every")
        return bool(self.highest_time // period > self.looked_to // period)

    def _fetched(self, *more: pa.Table) -> pa.Table:
        """All rows that nobody has got yet, and these."""
        if not self.engines:
            return self._nothing()
        self._keep(*more)
        rows = [with_selected(self.query.select, each) for each in self.unfetched]
        self.unfetched = []
        return joined(rows) if rows else self._nothing()

    def _keep(self, *more: pa.Table) -> None:
        """Rows that nobody has got yet, as the engines know them."""
        names = self.engines[0].result_schema.names
        self.unfetched += [rows.select(names) for rows in more]

    def take_events(self, events: Any) -> None:
        """As `process`, and the watermark stays where it is."""
        for batch in batches(events):
            self._process(batch)

    def _nothing(self) -> pa.Table:
        """A result without rows."""
        if not self.engines:
            return empty_result(self.query, self.settings)
        return with_selected(self.query.select, self.engines[0].no_rows)

    def _process(self, batch: pa.RecordBatch) -> None:
        if isinstance(self.query.time, Now):
            batch = self._stamped(batch)
        projection = self.projection
        if projection is None and REASON in batch.schema.names:
            projection = Projection(self.query)
        if projection is None:
            self._take(batch)
            return
        projection.require_new_names(batch.schema)
        made = projection(batch, on_bad=self.settings.on_bad)
        with rows_of(made.rows):
            self._take(made.batch, made.bad)

    def _take(self, batch: pa.RecordBatch, bad: pa.Table | None = None) -> None:
        """Take in a batch of which everything is computed; `bad` are rows of which something could not be."""
        self._fit_to(batch.schema)
        if bad is not None or batch.num_rows:
            self._whole(lambda: self._sort_out_all(batch, bad))

    def _sort_out_all(self, batch: pa.RecordBatch, bad: pa.Table | None) -> None:
        self.put_bad_aside(bad)
        if batch.num_rows:
            self._sort_out(*self._read(batch))

    def put_bad_aside(self, rows: pa.Table | None) -> None:
        """Bad rows, with their reasons, for `bad()`."""
        if rows is not None:
            self._bad.append(rows)
            self.counters.bad += rows.num_rows

    def _stamped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Events with the time of now."""
        if NOW in batch.schema.names:
            raise QueryError(f"events are stamped in a column {NOW!r}, and have one already: rename it")
        stamps = pa.array(np.full(len(batch), self.clock() // 1000), pa.int64()).cast(NOW_TYPE)
        return batch.append_column(pa.field(NOW, NOW_TYPE), stamps)

    def _read(self, batch: pa.RecordBatch) -> tuple[EventBatch, np.ndarray | None, BadRowReasons]:
        """The events of a batch, rows without a time, and rows that are bad for another reason of time."""
        # All engines compute the same aggregates.
        rows = np.arange(batch.num_rows) if self.engines[0].binding.has_own else None
        arrival = self.counters.arrivals
        if self.span_input is None:
            times, missing = ticks_of(batch.column(self.query.time_columns[0]), self.measure)
            return EventBatch(batch, times, arrival, rows), missing, []
        bounds = Bounds.of(self.engines, self.settings, self.watermark, None)
        return self.span_input.read(batch, rows, arrival, bounds)

    def instants(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray | None]:
        """The times by which events are sorted, and a mask of the rows that have none."""
        self.prepare(batch.schema)
        events, missing, culprits = self._read(batch)
        for _, wrong, _ in culprits:
            missing = wrong if missing is None else missing | wrong
        return events.times, missing

    def take_slices(self, batch: pa.RecordBatch) -> None:
        """As `process`, of events that became slices elsewhere: a batch that `exchange.slices_of` gives.

        The operator must have been `prepare`d with the schema of the events. Late slices are counted and
        not kept: there is no event to show.
        """
        if not self.engines:
            raise QueryError(
                "slices do not tell the types of their events: prepare the operator with the events' schema"
            )
        from windrow.engine.exchange import obstacle_of
        from windrow.engine.intake.slice_batches import read_slices

        why = obstacle_of(self.query, self.engines[0].binding)
        if why is not None:
            raise QueryError(f"slices that were made elsewhere cannot be taken: {why}")
        parcel = read_slices(batch, self.engines[0])
        if len(parcel):
            self._whole(lambda: self._hand_over(parcel))

    def _whole(self, take: Callable[[], None]) -> None:
        """Take a batch whole or not at all, whatever stops it."""
        counted = vars(self.counters).copy()
        times = self.lowest_time, self.highest_time, self.looked_to
        late, bad = len(self._late), len(self._bad)
        try:
            take()
        except BaseException:
            vars(self.counters).update(counted)
            self.lowest_time, self.highest_time, self.looked_to = times
            del self._late[late:], self._bad[bad:]
            raise

    def prepare(self, schema: pa.Schema) -> None:
        """Fit the query to the types of a table, or check that these are the types it was fitted to."""
        schema = viewless_schema(schema)
        if self.projection is not None:
            self.projection.require_new_names(schema)
            schema = self.projection.schema(schema)
        self._fit_to(schema)

    def _fit_to(self, schema: pa.Schema) -> None:
        """The same for a table of which everything is computed."""
        if self.engines:
            if not schema.equals(self.schema):
                for engine in self.engines:
                    engine.binding.require_same(schema)
                if self.following is not None:
                    self.following.require_same(schema)
            return
        engines = self._engines(self.query, schema)
        measure, early = engines[0].measure, self.early_watermark
        watermark = None if early is None else measure.point(early, what="watermark")
        self.fit(engines, schema)
        if watermark is not None:
            self.advance_to(watermark)

    def _engines(self, query: QuerySpec, schema: pa.Schema) -> list[AnyEngine]:
        """Empty engines that answer a query together."""
        plan = Plan.of(query, schema, self.settings)
        return engines_for(plan, self.engines[0].keys if self.engines else None)

    def sift(self, batch: pa.RecordBatch) -> tuple[np.ndarray, pa.Table] | None:
        """Bad rows as `process` would find them in the first batch; nothing is taken in.

        A mask of the good rows and a table of the bad ones; None if all are good.
        """
        if self.projection is not None and not self.projection.is_done(batch.schema):
            made = self.projection(batch, on_bad=self.settings.on_bad)
            with rows_of(made.rows):
                return self._sifted(made.batch)
        return self._sifted(batch)

    def _sifted(self, batch: pa.RecordBatch) -> tuple[np.ndarray, pa.Table] | None:
        self._fit_to(batch.schema)
        if not batch.num_rows:
            return None
        if REASON in batch.schema.names and batch.column(REASON).null_count < len(batch):
            why = batch.column(REASON)
            good = why.is_null().to_numpy(zero_copy_only=False)
            return good, pa.Table.from_batches([batch.filter(why.is_valid())])
        events, missing, culprits = self._read(batch)
        bounds = Bounds.of(self.engines, self.settings, None, None)
        judged = self._intake.judged(
            self.engines, bounds, batch, events.times, events.scan, missing, culprits
        )
        return self._intake.refuse(batch, *judged)

    def _sort_out(self, events: EventBatch, missing: np.ndarray | None, culprits: BadRowReasons) -> None:
        """Set bad and late rows aside, and let the engines take the rest."""
        floor = self.highest_time if self.query.ordered else None
        if self.query.ordered and floor is None:
            floor = self.engines[0].lowest
        bounds = Bounds.of(self.engines, self.settings, self.watermark, floor)
        batch, times = events.batch, events.times
        bad, reasons = self._intake.judged(self.engines, bounds, batch, times, events.scan, missing, culprits)
        spans = self.span_input
        if spans is not None:
            bad, reasons = spans.judged(events, bad, reasons)
        refused = self._intake.refuse(batch, bad, reasons)
        if refused is not None:
            good, rows = refused
            self.put_bad_aside(rows)
            events = events.where(good)
        if not len(events):
            return
        if spans is None or spans.open is None:
            self._hand_over(events)
        else:
            self._open_and_close(events, spans)
        if spans is not None:
            spans.release.note(events.lengths)
        if self.following is not None:
            self.following.note(events)

    def _open_and_close(self, events: EventBatch, spans: SpanInput) -> None:
        """Take in rows that may open or close an event."""
        folded, late = spans.take(events, self.engines[0])
        if late.any():
            self._late.append(events.batch.filter(pa.array(late)))
        self.counters.late += int(late.sum())
        self.counters.arrivals += len(events)
        self.counters.events += folded
        self._note_time(events.scan[0], events.high)

    def _note_time(self, low: Tick, high: Tick) -> None:
        if self.looked_to is None:
            self.looked_to = low
        self.lowest_time = low if self.lowest_time is None else min(self.lowest_time, low)
        self.highest_time = high if self.highest_time is None else max(self.highest_time, high)

    def _hand_over(self, incoming: EventBatch | PartialBatch) -> None:
        low, high, count = incoming.scan[0], incoming.high, incoming.count()
        lates = [engine.too_late(incoming) for engine in self.engines]
        late_events = missed = 0
        if lates.count(None) < len(lates):
            gone, late_events = self._set_late_aside(incoming, lates)
            if gone.any():
                incoming = incoming.where(~gone)
                lates = [None if late is None else (late[0][~gone], late[1][~gone]) for late in lates]
        staged: list[Staged] = []
        try:
            if len(incoming):
                staged.append(Staged())
                incoming.number(self.engines[0].keys, staged[0])
                for engine, late in zip(self.engines, lates, strict=True):
                    here = incoming if late is None or not late[0].any() else incoming.where(~late[0])
                    staged.append(engine.stage(here))
                missed = self._partly_late(incoming, lates)
        except BaseException:
            for each in reversed(staged):
                each.rollback()
            raise
        self.counters.partly_late += missed
        for each in staged:
            each.commit()
        for engine in self.engines:
            engine.note_time(high)
        self.counters.arrivals += count
        self.counters.events += count - late_events
        self._note_time(low, high)

    def _partly_late(self, incoming: EventBatch | PartialBatch, lates: list[Any]) -> int:
        """How many events have missed some of their windows, but not all; `lates` are what engines say of all of theirs."""
        known = [late[1] for late in lates if late is not None]
        for engine in self.engines:
            part = engine.partly_late(incoming)
            if part is not None:
                known.append(part)
        return incoming.count(np.logical_or.reduce(known)) if known else 0

    def _set_late_aside(
        self, incoming: EventBatch | PartialBatch, lates: list[Any]
    ) -> tuple[np.ndarray, int]:
        """Events that are too late for every window that would hold them go to `late()`: a mask of events that no window takes,
        and how many of them are late."""
        gone, late = np.ones(len(incoming), bool), np.zeros(len(incoming), bool)
        for engine, found in zip(self.engines, lates, strict=True):
            absent = engine.absent(incoming)
            gone &= (False if found is None else found[0]) | (False if absent is None else absent)
            late |= False if found is None else found[1]
        late &= gone
        if late.any() and isinstance(incoming, EventBatch):
            self._late.append(incoming.batch.filter(pa.array(late)))
        self.counters.late += incoming.count(late)
        return gone, incoming.count(late)

    # -- watermarks and results ------------------------------------------------------------------

    def advance(self, watermark: PointLike) -> pa.Table:
        """Say that no event before `watermark` is expected any more; the windows that this completes."""
        if self.follows is not None:
            raise QueryError(
                "the watermark of this operator follows its events, and cannot be told: tick() asks the clock"
            )
        if not self.engines:
            self._remember(parse_point(watermark, what="watermark"))
            return self._nothing()
        return self.advance_to(self.measure.point(watermark, what="watermark"))

    def _remember(self, point: Point) -> None:
        """A watermark that comes before the first batch has told what time is."""
        old = self.early_watermark
        if old is not None and point.number != math.inf:
            if (old.number is None) != (point.number is None):
                raise QueryError("the watermark was a number and is now a moment, or the other way round")
            if (point.number or point.nanoseconds or 0) < (old.number or old.nanoseconds or 0):
                before, now = (p.number if p.nanoseconds is None else p.nanoseconds for p in (old, point))
                raise QueryError(f"the watermark went back from {before} to {now}")
        self.early_watermark = point

    def finish(self) -> pa.Table:
        """Say that no event is expected any more; everything that is left."""
        if not self.engines:
            self._remember(Point(number=math.inf))
            return self._nothing()
        rows = self._fetched(self.complete_to(self.measure.highest))
        self.said = self.measure.highest
        return rows

    def finish_filled(self, rows: list[pa.Table]) -> pa.Table:
        """As `finish`, behind these rows, but of all of them those alone whose windows the events fill.

        These begin with the first event or later, and have ended when time goes on past the last one.
        """
        if self.lowest_time is None or self.highest_time is None:
            return joined([*rows, self.finish()])
        found = joined([*rows, self.complete_to(next_after(self.highest_time))])
        first = self.measure.array(np.array([self.lowest_time], self.measure.dtype))[0]
        return found.filter(pc.greater_equal(found["start"], first))

    def advance_to(self, watermark: Tick) -> pa.Table:
        """As `advance`, with the watermark in ticks."""
        if self.query.ordered:
            if self.said is not None and watermark < self.said:
                raise self._went_back(self.said, watermark)
            ahead = self.watermark is None or watermark > self.watermark
            rows = self._fetched(*([self.complete_to(watermark)] if ahead else []))
            self.said = watermark
            return rows
        if self.span_input is None or watermark >= self.measure.highest:
            return self.complete_to(watermark)
        said = self.span_input.said
        if said is not None and watermark < said:
            raise self._went_back(said, watermark)
        rows = self.complete_to(self.span_input.released(watermark, self.watermark, self.measure.lowest))
        self.span_input.said = watermark
        return rows

    def complete_to(self, watermark: Tick | None) -> pa.Table:
        """Say that all windows that end at or before `watermark` are complete, whatever their release delay; None: as before.

        With early rows, where it is time for them.
        """
        if self.watermark is not None and watermark is not None and watermark < self.watermark:
            raise self._went_back(self.watermark, watermark)
        asked: list[AnyEngine] = []
        carried = Staged()
        look, pass_gate = self._is_time_to_look(), None
        try:
            if self.span_input is not None and watermark is not None:
                carried = self.span_input.carry_on(self.engines[0], watermark, self.highest_time)
            rows = []
            for engine in self.engines:
                rows += engine.due(watermark, look=look)
                asked.append(engine)
            schema = self.engines[0].result_schema
            told = joined(rows, schema) if rows else self.engines[0].no_rows
            if self.gate is not None:
                told, pass_gate = self.gate.sift(told)
            told = with_selected(self.query.select, told)
        except BaseException:
            for engine in asked:
                engine.abandon()
            carried.rollback()
            raise
        for engine in self.engines:
            engine.pass_to(watermark)
            engine.collect_strings()
        self._forget_keys()
        if watermark is not None:
            self.watermark = watermark
        if look:
            self.looked_events, self.looked_to = self.counters.events, self.highest_time
        if pass_gate is not None:
            pass_gate()
        return told

    def _forget_keys(self) -> None:
        """Forget keys of which nothing is alive in any engine, once most are such."""
        keys = self.engines[0].keys
        if not self.query.key or keys.count <= FEW or not all(engine.forgets_keys for engine in self.engines):
            return
        if any(len(engine.slices) for engine in self.engines) and keys.count <= 2 * self._keys_kept:
            return
        live = np.flatnonzero(np.logical_or.reduce([engine.live_keys() for engine in self.engines]))
        self._keys_kept = max(len(live), FEW)
        if 2 * len(live) <= keys.count:
            for engine in self.engines:
                engine.renumber(live)
            keys.keep(live)

    def _went_back(self, before: Tick, now: Tick) -> QueryError:
        shown = (self.measure.scalar(tick) for tick in (before, now))
        return QueryError("the watermark went back from {} to {}".format(*shown))

    # -- what it tells of itself ----------------------------------------------------------------------

    def at(self, points: Any) -> pa.Table:
        """The aggregates at points in time, from what the operator holds now; nothing changes.

        Of the windows that hold a point, the one that ends first is asked, as far as the point: `[start, t)`. Slices are not divided: a
        point lies behind all events that have come, or at an edge of windows.

        Parameters
        ----------
        points
            A table with the key and the time of the query, in any order, and any other columns.

        Returns
        -------
        pa.Table
            The rows of `points`, in their order, with a column for each window and aggregate, as `Query.at` has them.

        Raises
        ------
        QueryError
            If a window is not one of time, no event has come, or each look takes away what it gives out (discarding=True).
        DataError
            If a window has begun before what is held, or a point divides a slice.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> op = wr.query(time="ts", windows={"w": wr.sliding(10, every=5)}, aggregates={"n": wr.count()}).operator()
        >>> _ = op.process(pa.table({"ts": [1, 2, 7]}))
        >>> op.at(pa.table({"ts": [5, 8, 11]}))["n"].to_pylist()
        [2, 3, 1]
        """
        from windrow.engine.at.running import at_running

        trigger = self.settings.trigger
        if trigger is not None and trigger.discarding:
            raise QueryError(
                f"an operator with rows that add up ({trigger}, discarding) holds only what came since its last look, and cannot be asked "
                "at points: ask one without discarding=True"
            )
        return at_running(self.query, self.engines, points)

    def metrics(self) -> Metrics:
        """Counters and sizes."""
        seen = {name: value for name, value in vars(self.counters).items() if name != "arrivals"}
        if not self.engines:
            return Metrics(**seen, live_slices=0, keys=0, bytes=0, partial_bytes=0, pending=0, watermark=None)
        engines = self.engines
        return Metrics(
            **seen,
            live_slices=sum(len(e.slices) for e in engines),
            keys=engines[0].keys.count if self.query.key else 0,
            bytes=sum(e.nbytes for e in engines) + engines[0].keys.nbytes,
            partial_bytes=sum(
                e.cells * sum(s.cell_bytes for s in e.binding.stores.values()) for e in engines
            ),
            pending=sum(e.pending for e in engines),
            watermark=None if self.watermark is None else self.measure.scalar(self.watermark),
        )

    def _repr_html_(self) -> str:
        counted = vars(self.metrics()).items()
        cells = "".join(
            f"<td>{'-' if value is None else escape(f'{value:,}' if isinstance(value, int) else str(value))}</td>"
            for _, value in counted
        )
        heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name, _ in counted)
        return f"<table><tr>{heads}</tr><tr>{cells}</tr></table>{self.explain()._repr_html_()}"

    def explain(self) -> Explanation:
        """What is shared and kept now, and why: as `Query.explain`, of windows and aggregates that came and went.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> op = q.operator()
        >>> _ = op.process(pa.table({"ts": [1, 2, 7]}))
        >>> op.add_window("s", wr.session(3))
        11
        >>> print(*(line for line in op.explain().splitlines() if line.startswith("windows")), sep="\\n")
        windows (set 1 of 2: these share slices)
        windows (set 2 of 2: these share slices)
        """
        from windrow.planner.explain import explain

        plan = Plan.of(self.query, self.schema, self.settings)
        if self.engines:
            plan = replace(plan, parts=tuple(engine.part for engine in self.engines))
        return explain(plan, exact=has_exact_inverse)

    def snapshot(self) -> bytes:
        """The whole state as bytes; `Query.restore` goes on from here, of the same query or of one that has changed."""
        from windrow.engine.snapshot import save

        return save(self)

    # -- queries that change while they run ------------------------------------------------------

    def change(self, query: QuerySpec, *, schema: pa.Schema | None = None, **options: Any) -> None:
        """Answer another query from here on; what both have goes on as if nothing had happened.

        Windows and aggregates are the same if their names and all that they are made of are. New ones are added as by
        `add_window` and `add_aggregate`, and `complete_from` says from when on they are complete; others are removed.

        Parameters
        ----------
        query
            Of the same key and time.
        schema
            The columns of events from here on; needed only if a new aggregate or window reads one that events have not had.
        options
            Those of `Query.operator` that change: `lateness`, `mode`, `on_bad`, `max_slices`, `max_ahead` and `store`. What is
            final stays final. From "append" to "update" the changelog begins with the windows that are not final; from
            "update" to "append" these are given out once more, when they are.

        Raises
        ------
        StateError
            If a window, an aggregate, the key or the time is another one under the same name, with the exact difference.
            The operator is as it was.

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> old = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
        >>> new = wr.query(time="ts", windows={"w": wr.tumbling(5), "long": wr.tumbling(10)}, aggregates={"n": wr.count()})
        >>> op = old.operator()
        >>> _ = op.process(pa.table({"ts": [1, 2, 7]}))
        >>> op.change(new, lateness=2)
        >>> op.finish().select(["window", "n"]).to_pylist()
        [{'window': 'w', 'n': 2}, {'window': 'w', 'n': 1}, {'window': 'long', 'n': 3}]
        """
        from windrow.engine.snapshot.description import described, require_compatible

        settings = replaced(self.settings, options)
        # Queries that differ in 0 and 0.0 are equal.
        require_compatible(described(self), query)
        if settings.mode != self.settings.mode:
            self._require_other_mode(settings)
        if not self.engines:
            self.query = query
            self.reconfigure(settings)
            return
        known = self._with_columns_of(schema)
        known = _all_columns(query, known)
        Operator(query, settings)._fit_to(known)  # what cannot be is refused before anything changes
        if known is not self.schema:
            for engine in self.engines:
                engine.learn(known)
            self.schema = known
        if query != self.query:
            self._go_over(query)
        if settings != self.settings:
            self.reconfigure(settings)
        self._fit_set_aside()

    def _go_over(self, query: QuerySpec) -> None:
        """Answer another query, which is compatible with the one of now."""
        old = self.query
        try:
            for name in [n for n in query.windows if n not in old.windows]:
                self.add_window(name, query.windows[name])
            for name in [n for n in query.aggregates if n not in old.aggregates]:
                self.add_aggregate(name, query.aggregates[name])
        except BaseException:
            for name in [n for n in self.query.windows if n not in old.windows]:
                self.remove_window(name)
            for name in [n for n in self.query.aggregates if n not in old.aggregates]:
                self._drop_aggregate(name)
            raise
        for name in [n for n in old.windows if n not in query.windows]:
            self.remove_window(name)
        for name in [n for n in old.aggregates if n not in query.aggregates]:
            self._drop_aggregate(name)
        if list(self.query.aggregates) != list(query.aggregates):
            for engine in self.engines:
                engine.arrange(list(query.aggregates))
            self._fit_unfetched()
        self.query = query

    def complete_from(self) -> dict[str, Any]:
        """From which start on windows and aggregates that came later are complete, by "window NAME" and "aggregate NAME".

        Examples
        --------
        >>> import windrow as wr, pyarrow as pa
        >>> op = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}).operator()
        >>> _ = op.process(pa.table({"ts": [1, 2, 7], "x": [1, 1, 1]}))
        >>> _ = op.add_aggregate("sum", wr.sum("x"))
        >>> op.complete_from()
        {'aggregate sum': 10}
        """
        starts: dict[str, Tick] = {}
        for engine in self.engines:
            for name, start in engine.complete_from.items():
                starts[name] = max(start, starts.get(name, start))
        return {name: self.measure.scalar(start) for name, start in sorted(starts.items())}

    def _with_columns_of(self, schema: pa.Schema | None) -> pa.Schema:
        """The columns of events until now, and those of a schema that they have not had."""
        assert self.schema is not None
        if schema is None or schema.equals(self.schema):
            return self.schema
        read = {name for engine in self.engines for name in engine.binding.columns}
        later = {field.name: field for field in schema}
        for name in sorted(read & later.keys()):
            old, new = self.schema.field(name).type, later[name].type
            if old != new:
                raise StateError(f"the state cannot go on: column {name!r} was {old}, is {new}")
        known = set(self.schema.names)
        columns = [later.get(field.name, field) for field in self.schema]
        return pa.schema([*columns, *(field for field in schema if field.name not in known)])

    def add_window(self, name: str, window: Window) -> Any:
        """Answer one more window from now on, and from existing slices as far back as they go.

        Returns the start of its first complete window; windows from there on are emitted, those that
        have ended already with the next `advance`. None means that all of its windows are complete.
        A session is answered from those of the next smaller gap; the smallest one, and a window that depends on the order
        of events, see events from now on.
        """
        require_named(name, window, Window, self.query.windows, what="window")
        require_ends({name: window})
        if isinstance(self.query.time, Span):
            require_for_spans(self.query.time, name, window)
        _require_adding_up({name: window}, self.settings)
        query = replace(self.query, windows=MappingProxyType({**self.query.windows, name: window}))
        if not self.engines:
            self.query = query
            return None
        self._know_columns_of(query)
        host = next((e for e in self.engines if e.part.kind == window.layout), None)
        if host is not None:
            start = host.add_window(name, window)
        else:
            start = self._begin(name, window)
        self.query = query
        return None if start is None else self.measure.scalar(start)

    def _know_columns_of(self, query: QuerySpec) -> None:
        """Know the columns that a query computes."""
        if self.engines and self.schema is not None:
            known = _all_columns(query, self.schema)
            if known is not self.schema:
                for engine in self.engines:
                    engine.learn(known)
                self.schema = known

    def _begin(self, name: str, window: Window) -> Tick | None:
        """Answer a window by an engine of its own, which sees events from now on."""
        assert self.schema is not None
        alone = replace(self.query, windows=MappingProxyType({name: window}))
        (engine,) = self._engines(alone, self.schema)
        engine.final_until = self.engines[0].final_until
        start = None
        if self.highest_time is not None:
            start = engine.begin_after(self.highest_time)
            engine.complete_from["window " + name] = start
        if self.watermark is not None:
            engine.due(self.watermark)
            engine.pass_to(self.watermark)
            floor = next_after(self.watermark)
            if start is None:
                start = engine.complete_from["window " + name] = floor
        self.engines.append(engine)
        return start

    def remove_window(self, name: str) -> None:
        """Stop answering a window; slices that only it needed go as the watermark passes.

        What it asked of events ends with it: if no other window depends on order, events wait no longer.
        """
        self._require("window", name, self.query.windows)
        if self.gate is not None:
            self.gate.drop(name)
        for engine in self.engines:
            if name in engine.query.windows and len(engine.query.windows) > 1:
                engine.remove_window(name)
        rest = {n: w for n, w in self.query.windows.items() if n != name}
        self.query = replace(self.query, windows=MappingProxyType(rest))
        self.engines = [e for e in self.engines if name not in e.query.windows]

    def add_aggregate(self, name: str, aggregate: Aggregate) -> Any:
        """Compute one more aggregate from now on.

        Returns the start of the first window for which it is complete; it is null in windows that
        begin earlier. None means that it is complete everywhere: nothing was seen yet, or the partials
        it needs were kept already.
        """
        require_named(name, aggregate, Aggregate, self.query.aggregates, what="aggregate")
        together = {**self.query.aggregates, name: aggregate}
        refuse_name_clashes(self.query.key, together)
        require_pairings(self.settings.store, [aggregate])
        if self.span_input is not None:
            self.span_input.require_columns(name, aggregate)
        self._know_columns_of(replace(self.query, aggregates=MappingProxyType(together)))
        starts = [engine.add_aggregate(name, aggregate) for engine in self.engines]
        if self.span_input is not None:
            self.span_input.introduce(self.engines[0])
        self.query = replace(self.query, aggregates=MappingProxyType(together))
        self._fit_unfetched()
        known = [start for start in starts if start is not None]
        return self.measure.scalar(max(known)) if known else None

    def remove_aggregate(self, name: str) -> None:
        """Stop computing an aggregate; its partials go unless another aggregate reads them."""
        self._require("aggregate", name, self.query.aggregates)
        trigger = self.settings.trigger
        if isinstance(trigger, When) and name in trigger.columns:
            raise QueryError(
                f"aggregate {name!r} cannot be removed: rows come early {trigger}. Change emit first"
            )
        for column, source in self.query.select.items():
            if name in sources_of(source):
                raise QueryError(
                    f"aggregate {name!r} cannot be removed: column {column!r} of the result is computed of it"
                )
        self._drop_aggregate(name)

    def _drop_aggregate(self, name: str) -> None:
        """Stop computing an aggregate that nothing reads any more."""
        rest = {n: a for n, a in self.query.aggregates.items() if n != name}
        self.query = replace(self.query, aggregates=MappingProxyType(rest))
        for engine in self.engines:
            engine.remove_aggregate(name)
        self._fit_unfetched()

    def _require(self, what: str, name: str, known: Any) -> None:
        if name not in known:
            raise QueryError(f"there is no {what} {name!r}{choices(name, known)}")
        if len(known) == 1:
            raise QueryError(f"{name!r} is the only {what} of the query and cannot be removed")


def _all_columns(query: QuerySpec, schema: pa.Schema) -> pa.Schema:
    """The columns of events and those that a query computes of them."""
    projection = projection_of(query)
    return schema if projection is None else projection.schema(schema)


def _require_looks(query: QuerySpec, settings: OperatorOptions) -> None:
    """An error if windows of this query cannot be given out early as the options say."""
    if settings.trigger is None:
        return
    if isinstance(query.time, Span) and not query.time.is_point:
        raise QueryError(
            f"early rows ({settings.trigger}) of events of {query.time} are not possible: an event that is not over would be in windows "
            "that it may never reach"
        )
    if settings.is_early:
        for name in [n for n in (*query.key, *query.aggregates) if n == FINAL.name]:
            raise QueryError(
                f"with early rows a column {name!r} says whether a row can still change: give yours another name"
            )
    _require_adding_up(query.windows, settings)


def _require_unfollowed(query: QuerySpec, follows: Watermark | None) -> None:
    """An error if a watermark can follow the events of this query only in one way, which is another."""
    if follows is None:
        return
    if query.ordered:
        raise QueryError("with ordered=True the watermark follows the newest event: leave out watermark=")
    if isinstance(query.time, Now):
        raise QueryError("with time=wr.now() the watermark is the clock: leave out watermark=")
    if isinstance(query.time, Span) and query.time.id is not None:
        raise QueryError(
            f"when an event of {query.time} is over is not known before: tell the watermark by advance"
        )


def _require_adding_up(windows: Mapping[str, Window], settings: OperatorOptions) -> None:
    """An error if parts of a window would have to add up where later events may place it elsewhere."""
    if settings.trigger is None or not settings.trigger.discarding:
        return
    for name, window in windows.items():
        if window.layout != "aligned" or window.since is not None:
            raise QueryError(
                f"window {name!r} ({window}) has no rows that add up: where it is depends on events to come, or it has an event in its "
                "last step alone; discarding=True is for windows that time places"
            )


def _with_fields(rows: pa.Table, fields: list[pa.Field]) -> pa.Table:
    """Rows with columns of these types; null where there was none, or one of another type."""
    for field in fields:
        place = rows.schema.get_field_index(field.name)
        if place < 0:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
        elif rows.schema.field(place).type != field.type:
            rows = rows.set_column(place, field, pa.nulls(len(rows), field.type))
    return rows
