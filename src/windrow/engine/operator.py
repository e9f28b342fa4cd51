"""The running operator: batches in, watermarks in, windows out.

    process(batch)       bad rows -> late rows -> keys -> cut -> fold            (nothing is emitted)
    advance(watermark)   windows due -> merge slices -> lower -> table, then let go of dead slices

Two instants follow the watermark w: windows that end at or before the *horizon* `w - lateness` are
final; windows that end at or before the *emission point* are given out (the horizon itself in append
mode, w in update mode). An error in either call leaves the operator as it was.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.aggregates.count import COUNT
from windrow.engine.binding import Binding, is_own
from windrow.engine.columns import batches, settled, shown, ticks_of
from windrow.engine.completeness import first_complete, next_after
from windrow.engine.cutting import Cells, Runs, cut, scan_times
from windrow.engine.edges import edges_around, edges_between, estimate, neighbours
from windrow.engine.emission import Emission, Ledger, empty_result, result_schema
from windrow.engine.keys import Keys
from windrow.engine.partials import Log, Multisets, Numbers, Store
from windrow.engine.partials.user import blame
from windrow.engine.settings import Counters, Metrics, Settings
from windrow.engine.slices import Slices
from windrow.engine.windows import Due, due_windows
from windrow.errors import DataError, LimitError, QueryError, UserFunctionError
from windrow.measure import Measure, Point, PointLike, Tick, parse_point
from windrow.planner.window_set import FEW, UNMERGED, WindowSet
from windrow.query import Query, refuse_name_clashes, require_named
from windrow.windows.base import Window

# Small batches make edges for so many batches ahead, as long as these are not too many.
AHEAD = 64
# An operator without a slice does not hold on to more memory than this.
IDLE_BYTES = 1 << 16
MOST_AHEAD = 10_000


class Operator:
    """A query at work on a stream. Made by `Query.operator` and `Query.restore`."""

    def __init__(self, query: Query, settings: Settings) -> None:
        self.query = query
        self.settings = settings
        self.counters = Counters()
        self.binding: Binding | None = None
        self._late: list[pa.RecordBatch] = []
        self._bad: list[pa.Table] = []
        self.early_watermark: Point | None = None
        self.keys: Keys
        self.result_schema: pa.Schema

    # -- data in ---------------------------------------------------------------------------------

    def process(self, events: Any) -> None:
        """Take in events: anything that speaks Arrow, or an iterator of such batches."""
        if isinstance(events, pa.Table):
            events = events.combine_chunks()
        for batch in batches(events):
            self._process(batch)

    def _process(self, batch: pa.RecordBatch) -> None:
        self.prepare(batch.schema)
        assert self.binding is not None
        times, missing = ticks_of(batch.column(self.query.time), self.binding.measure)
        before = replace(self.counters), len(self._late), len(self._bad), self.keys.count
        try:
            self._sort_out(batch, times, missing)
        except BaseException:  # a batch is taken whole or not at all, whatever stops it
            self._undo(*before)
            raise

    def _undo(self, counters: Counters, late: int, bad: int, keys: int) -> None:
        """As if the batch had not come: what was set aside of it, and its new keys, are forgotten."""
        self.counters = counters
        del self._late[late:], self._bad[bad:]
        if self.keys.count > keys:
            self.keys = self.keys.kept(np.arange(keys))

    def _sort_out(self, batch: pa.RecordBatch, times: np.ndarray, missing: np.ndarray | None) -> None:
        """Set bad and late rows aside, and take the rest in."""
        rows = np.arange(len(times)) if self.binding.has_own else None  # type: ignore[union-attr]
        scan = scan_times(times) if len(times) else None
        for setting_aside in (self._without_bad, self._without_late):
            if scan is None:
                return
            good = setting_aside(batch, times, scan, missing)
            if good is not None:
                batch, times, missing = batch.filter(pa.array(good)), times[good], None
                rows = None if rows is None else rows[good]
                scan = scan_times(times) if len(times) else None
        if scan is not None:
            self._take(batch, times, rows, *scan)
            self._count_partly_late(times, scan[0])

    def _count_partly_late(self, times: np.ndarray, low: Tick) -> None:
        if self.watermark is None or low >= self._horizon(self.watermark):
            return
        horizon = self._horizon(self.watermark)
        ends = self.windows.earliest_ends(times[times < horizon])
        self.counters.partly_late += int(np.count_nonzero(ends <= horizon))

    def prepare(self, schema: pa.Schema) -> None:
        """Fit the query to the types of a table, or check that these are the types it was fitted to."""
        if self.binding is not None:
            self.binding.require_same(schema)
            return
        self.bind(Binding(self.query, schema))

    def bind(self, binding: Binding) -> None:
        """Begin with empty state for these types."""
        measure = binding.measure
        self.windows = WindowSet.of(self.query.windows, measure)
        self.lateness = measure.ticks(self.settings.lateness, what="lateness")
        ahead = self.settings.max_ahead
        self.max_ahead = None if ahead is None else measure.ticks(ahead, what="max_ahead")
        self.keys = Keys(binding.key_schema)
        self.stride = max(1, self.keys.count)
        self.slices = Slices(measure.dtype)
        self.presence = binding.presence
        self.fresh = Numbers(COUNT, 0, measure.dtype)
        self.ledger = Ledger()
        self.complete_from: dict[str, Tick] = {}
        self.backlog: set[str] = set()
        self.watermark: Tick | None = None
        self.highest_time: Tick | None = None
        self.keys_after_collection = 0
        self.fresh_seen = False
        self._edges = np.empty(0, measure.dtype)
        self._set_reach(measure)
        self.threshold: Tick = self.lowest
        early = self.early_watermark
        watermark = None if early is None else measure.point(early, what="watermark")
        self.binding = binding
        self.result_schema = result_schema(self)
        if watermark is not None:
            self.advance_to(watermark)

    def _set_reach(self, measure: Measure) -> None:
        """The times whose windows, and the ends of which plus lateness, can be expressed."""
        self.lowest, high = self.windows.reach
        self.highest = high - self.lateness
        if not self.lowest < self.highest or self.lateness > (measure.highest - measure.lowest) // 2:
            raise QueryError(
                f"the ends of windows plus a lateness of {self.settings.lateness} overflow {measure.describe()}"
            )

    # -- rows that are set aside -----------------------------------------------------------------

    def _without_bad(
        self, batch: pa.RecordBatch, times: np.ndarray, scan: Any, missing: np.ndarray | None
    ) -> np.ndarray | None:
        """A mask of the rows that are good, None if all are; an error for a bad one unless diverted."""
        if missing is None and self._is_clean(batch, *scan):
            return None
        culprits = self._oversized(batch)
        bad = np.zeros(len(times), np.int64)
        bad[(times < self.lowest) | (times > self.highest)] = 2
        if missing is not None:
            bad[missing] = 1
        if self.max_ahead is not None and self.watermark is not None:
            bad[(bad == 0) & (times > self.watermark + self.max_ahead)] = 3
        for code, (_, wrong) in culprits.items():
            bad[wrong & (bad == 0)] = code
        if self.query.ordered:
            bad[(bad == 0) & (times < self._running_highest(times, bad))] = 4
        if not bad.any():
            return None
        rows = np.flatnonzero(bad)
        problems = self._problems(culprits)
        if self.settings.on_bad == "raise":
            row = int(rows[0])
            column, problem = problems[int(bad[row])]
            raise DataError(column, row, shown(batch.column(column)[row]), problem)
        reasons = [f"column {problems[b][0]!r}: {problems[b][1]}" for b in bad[rows].tolist()]
        table = pa.Table.from_batches([batch.take(pa.array(rows))])
        self._bad.append(table.append_column("bad_reason", pa.array(reasons, pa.string())))
        self.counters.bad += len(rows)
        return bad == 0

    def _oversized(self, batch: pa.RecordBatch) -> dict[int, tuple[str, np.ndarray]]:
        """Columns with values that do not fit in 64 bits: a problem number, the column, a mask."""
        assert self.binding is not None
        found = {}
        for position, (name, coder) in enumerate(self.binding.coders.items()):
            wrong = coder.oversized(batch.column(name))
            if wrong is not None:
                found[5 + position] = (name, wrong)
        return found

    def _is_clean(self, batch: pa.RecordBatch, low: Tick, high: Tick, ordered: bool) -> bool:
        """Whether no row can be bad: the common case, told from the extremes."""
        ahead = self.max_ahead is not None and self.watermark is not None
        if ahead and high > self.watermark + self.max_ahead:  # type: ignore[operator]
            return False
        if self.query.ordered and (
            not ordered or (self.highest_time is not None and low < self.highest_time)
        ):
            return False
        return bool(low >= self.lowest and high <= self.highest) and not self._oversized(batch)

    def _running_highest(self, times: np.ndarray, bad: np.ndarray) -> np.ndarray:
        floor = self.lowest if self.highest_time is None else self.highest_time
        return np.maximum.accumulate(np.where(bad > 0, floor, np.maximum(times, floor)))

    def _problems(self, culprits: dict[int, tuple[str, np.ndarray]]) -> dict[int, tuple[str, str]]:
        time = self.query.time
        found = {
            1: (time, "an event needs a time, and this one has none"),
            2: (time, "the edges of its windows would overflow the column's type, or leave the calendar"),
            3: (time, f"is more than {self.settings.max_ahead} ahead of the watermark"),
            4: (time, "comes after a later event, and the query promises ordered=True"),
        }
        return found | {k: (name, "does not fit in 64 bits") for k, (name, _) in culprits.items()}

    def _without_late(
        self, batch: pa.RecordBatch, times: np.ndarray, scan: Any, missing: np.ndarray | None
    ) -> np.ndarray | None:
        """A mask of the events with a window that is not final, None if all have; others go to `late()`."""
        if scan[0] >= self.threshold:
            return None
        early = times < self.threshold
        late = early
        if self.windows.may_leave_gaps:
            late = early.copy()
            late[early] = self.windows.covers(times[early])
        self.counters.late += int(late.sum())
        self.counters.events += int(early.sum()) - int(late.sum())
        if late.any():
            self._late.append(batch.filter(pa.array(late)))
        return ~early

    # -- events into slices ----------------------------------------------------------------------

    def _take(
        self,
        batch: pa.RecordBatch,
        times: np.ndarray,
        rows: np.ndarray | None,
        low: Tick,
        high: Tick,
        ordered: bool,
    ) -> None:
        """Cut good events into slices and fold them; `rows` are their places in the batch given."""
        edges = self.slices.reconcile(self._edges_for(times, low, high))
        found = cut(times, edges, ordered=ordered)
        starts, ends = edges[found.slices], edges[found.slices + 1]
        inside = self.windows.covers(starts) if self.windows.may_leave_gaps else None
        if inside is not None:
            # The first edge may be a sentinel far below; a slice before every window has no cover.
            starts, ends = starts[inside], ends[inside]
        numbers = self.keys.numbers(batch)
        at, there = self.slices.find(starts)
        self._make_room(len(starts) - int(np.count_nonzero(there)))
        slots, fresh = self.slices.resolve(starts, ends, at, there)
        for store in self.stores() if len(fresh) else ():
            store.reset(fresh)
        base = slots * self.stride
        if inside is not None:
            base = np.full(len(inside), -1)
            base[inside] = slots * self.stride
        segments = found.place(base, numbers, len(times))
        try:
            self._fold(batch, times, rows, segments)
        except BaseException:
            # A slice that exists holds an event.
            self.slices.forget(fresh)
            raise
        if numbers is None:
            inside = base >= 0
            self.presence.n[base[inside]] += found.sizes[inside]
        else:
            self.presence.fold(segments, [], ())
        self._note_fresh(times, segments)
        self.counters.events += len(times)
        self.highest_time = high if self.highest_time is None else max(self.highest_time, high)

    def _edges_for(self, times: np.ndarray, low: Tick, high: Tick) -> np.ndarray:
        """Edges that enclose all times; small batches take them from a stretch that was made before."""
        known = self._edges
        if not (len(known) and known[0] <= low and high < known[-1]):
            beyond = min(high + AHEAD * (high - low), self._clamp(self.highest))
            if estimate(self.windows, low, beyond) <= MOST_AHEAD:
                known = edges_between(self.windows, low, beyond)
                self._edges = known
            elif estimate(self.windows, low, high) > 8 * len(times) + 1_000_000:
                return edges_around(self.windows, times)
            else:
                return edges_between(self.windows, low, high)
        first, last = np.searchsorted(known, [low, high], side="right")
        return known[first - 1 : last + 1]

    def stores(self) -> list[Store]:
        """Everything that lies in the arena."""
        assert self.binding is not None
        late = [self.fresh] if self.settings.mode == "update" else []
        return [*late, *self.binding.in_order]

    def _make_room(self, need: int) -> None:
        """Room for `need` more slices and for all keys that are known."""
        stride = self.stride
        if self.keys.count > stride or self.presence.stride == 0:
            stride = max(self.keys.count, stride + stride // 2 if self.presence.stride else 1)
        cells = (len(self.slices) + need) * self.keys.count
        if cells > self.settings.max_slices:
            raise LimitError(
                f"{len(self.slices) + need:,} slices of {self.keys.count:,} keys are {cells:,} live slices, "
                f"more than the limit of max_slices={self.settings.max_slices:,}; nothing of this batch was taken"
            )
        capacity = self.slices.room(need, tight=stride > FEW)
        if stride != self.stride or capacity != self.slices.capacity or self.presence.stride == 0:
            self.resize(capacity, stride, slice(0, self.keys.count))

    def resize(self, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """Move all stores to an arena of `capacity` slots of `stride` keys."""
        for store in self.stores():
            store.repack(self.slices.slots, capacity, stride, keys)
        self.slices.repack(capacity)
        self.ledger.repack(stride, keys)
        self.stride = stride

    def _fold(
        self, batch: pa.RecordBatch, times: np.ndarray, origin: np.ndarray | None, segments: Runs | Cells
    ) -> None:
        assert self.binding is not None
        needs_arrival = self.binding.needs_arrival
        arrival = self.counters.events + np.arange(len(times)) if needs_arrival else times[:0]
        codes, present = self._encode(batch)
        undo: list[tuple[Numbers, list[np.ndarray], np.ndarray]] = []
        for partial, columns, store in self.binding.folded:
            rows = _common_rows([present[c] for c in columns if present[c] is not None])
            part = segments if rows is None else segments.only(rows)
            inputs = [codes[c] if rows is None else codes[c][rows] for c in columns if c in codes]
            stamps = (times, arrival) if rows is None or not needs_arrival else (times[rows], arrival[rows])
            if not is_own(partial) or isinstance(store, Log):
                store.fold(part, inputs, stamps)
                continue
            assert isinstance(store, Numbers)
            undo.append((store, [f.copy() for f in store.fields], store.n.copy()))
            try:
                store.fold(part, inputs, stamps)
            except Exception as problem:  # a user's function may raise anything
                for changed, fields, n in undo:
                    changed.fields, changed.n = fields, n
                if isinstance(problem, UserFunctionError):
                    raise
                assert origin is not None
                raise blame(partial, inputs, origin if rows is None else origin[rows], problem) from problem

    def _encode(self, batch: pa.RecordBatch) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray | None]]:
        """Codes of each column that is read, and the rows that are not null (None: all)."""
        assert self.binding is not None
        codes: dict[str, np.ndarray] = {}
        present: dict[str, np.ndarray | None] = {}
        for name, coder in self.binding.coders.items():
            codes[name], present[name], moved = coder.encode(batch.column(name))
            if moved is not None:
                self._recode(name, moved)
        for name in self.binding.uncoded:
            array = settled(batch.column(name))
            valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
            present[name] = None if valid is None else np.flatnonzero(valid)
        return codes, present

    def _recode(self, column: str, moved: np.ndarray) -> None:
        assert self.binding is not None
        for (_, columns), store in self.binding.stores.items():
            for position, name in enumerate(columns):
                if name == column:
                    store.recode(position, moved)

    def _note_fresh(self, times: np.ndarray, segments: Runs | Cells) -> None:
        """Count the events that may revise a window already emitted (update mode)."""
        if self.settings.mode != "update" or self.watermark is None:
            return
        rows = np.flatnonzero(times < self.watermark)
        if len(rows):
            self.fresh.fold(segments.only(rows), [], ())
            self.fresh_seen = True

    # -- watermarks and results ------------------------------------------------------------------

    def advance(self, watermark: PointLike) -> pa.Table:
        """Say that no event before `watermark` is expected any more; the windows that this completes."""
        if self.binding is None:
            self._remember(parse_point(watermark, what="watermark"))
            return empty_result(self.query, self.settings.mode)
        return self.advance_to(self.binding.measure.point(watermark, what="watermark"))

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
        if self.binding is None:
            self._remember(Point(number=math.inf))
            return empty_result(self.query, self.settings.mode)
        return self.advance_to(self.binding.measure.highest)

    def advance_to(self, watermark: Tick) -> pa.Table:
        """As `advance`, with the watermark in ticks."""
        assert self.binding is not None
        measure = self.binding.measure
        if self.watermark is not None and watermark < self.watermark:
            raise QueryError(
                f"the watermark went back from {measure.scalar(self.watermark)} to {measure.scalar(watermark)}"
            )
        bottom = self._clamp(self.lowest - 1)
        old_point = bottom if self.watermark is None else self._emission_point(self.watermark)
        emission = Emission(self)
        if self.fresh_seen and self.watermark is not None:
            emission.revise(self._only(self._due(self._horizon(self.watermark), old_point), backlog=False))
        if self.backlog:
            emission.emit(self._only(self._due(bottom, old_point), backlog=True))
        emission.emit(self._due(old_point, self._emission_point(watermark)))
        table = emission.table()
        emission.commit()
        self.watermark = watermark
        self.backlog.clear()
        self._let_go()
        return table

    def _clamp(self, tick: Tick) -> Tick:
        """A tick that is before, at or after the same windows, and near enough for safe arithmetic."""
        return min(max(tick, self.lowest - 1), self.highest + self.windows.longest)

    def _horizon(self, watermark: Tick) -> Tick:
        """Windows that end at or before this are final."""
        return self._clamp(watermark - self.lateness)

    def _emission_point(self, watermark: Tick) -> Tick:
        """Windows that end at or before this have been given out."""
        return self._horizon(watermark) if self.settings.mode == "append" else self._clamp(watermark)

    def _due(self, after: Tick, until: Tick) -> Due:
        due = due_windows(self.windows, self.slices, after, until)
        if self.complete_from and len(due):
            names = self.windows.names
            floor = np.array(
                [self.complete_from.get("window " + n, self.lowest - self.windows.longest) for n in names]
            )
            keep = due.start >= floor[due.spec]
            if not keep.all():
                due = due.where(keep)
        return due

    def _only(self, due: Due, *, backlog: bool) -> Due:
        """Of windows that ended before, those that were just added, or all others."""
        if not self.backlog:
            return due
        added = np.array([name in self.backlog for name in self.windows.names])
        return due.where(added[due.spec] == backlog)

    # -- letting go ------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """Drop what no window needs any more: slices, events, keys, strings, memory."""
        assert self.binding is not None and self.watermark is not None
        horizon = self._horizon(self.watermark)
        # It never goes back: a window that was added later asks for no slices that are gone.
        self.threshold = max(self.threshold, self.windows.first_open_start(horizon))
        evicted = self.slices.evict_before(self.threshold)
        if self.fresh_seen:
            self.fresh.n[:] = 0
            self.fresh_seen = False
        self.ledger.forget(horizon)
        for store in self.binding.stores.values():
            if isinstance(store, Log):
                store.evict_before(self.threshold)
            elif isinstance(store, Multisets) and len(evicted):
                store.reset(evicted)
        self._coalesce(horizon)
        if len(evicted):
            self._collect_keys()
            self._collect_strings()
            idle = not len(self.slices) and sum(s.nbytes for s in self.stores()) > IDLE_BYTES
            if idle or self.slices.capacity > 4 * len(self.slices) + 64:
                self.resize(2 * len(self.slices) + 8, self.stride, slice(0, self.keys.count))

    def _coalesce(self, horizon: Tick) -> None:
        """Join slices between which no live window begins (they were cut for windows now final)."""
        finished = int(np.searchsorted(self.slices.ends, horizon, side="right"))
        if finished <= UNMERGED * self.windows.windows_per_event + FEW:
            return
        slices = copy(self.slices)
        joined = slices.coalesce(self._live_starts(horizon), horizon)
        if joined is None:
            return
        assert self.binding is not None
        own = [s for partial, _, s in self.binding.folded if is_own(partial) and isinstance(s, Numbers)]
        undo = [(s, [f.copy() for f in s.fields], s.n.copy()) for s in own]
        try:
            for store in own:
                store.absorb(*joined, self.keys.count)
        except Exception:  # the user's combine failed: it will be named when a window needs it
            for store, fields, n in undo:
                store.fields, store.n = fields, n
            return
        self.slices = slices
        for other in self.stores():
            if other not in own:
                other.absorb(*joined, self.keys.count)

    def _live_starts(self, horizon: Tick) -> np.ndarray:
        """The starts, up to `horizon`, of windows that end after it."""
        found = [np.array([self.threshold], self.slices.starts.dtype)]
        windows = self.windows
        for every, offset, whole, rest in zip(
            windows.every, windows.offset, windows.whole, windows.rest, strict=True
        ):
            last = int(np.floor_divide(horizon - offset, every)) + 1
            first = int(np.floor_divide(horizon - offset - rest, every)) - int(whole) - 1
            found.append(offset + np.arange(first, last + 1) * every)
        for _, placement in windows.irregular:
            found.append(placement.windows(horizon, horizon)[0])
        return np.unique(np.concatenate(found))

    def _collect_keys(self) -> None:
        """Forget keys without a live slice, once most are such."""
        count = self.keys.count
        if not self.query.key or count <= FEW:
            return
        if len(self.slices) and count <= 2 * self.keys_after_collection:
            return
        cells = self.presence.n.reshape(-1, self.stride)[self.slices.slots, :count]
        live = np.flatnonzero(cells.any(axis=0))
        self.keys_after_collection = max(len(live), FEW)
        if 2 * len(live) <= count:
            kept = self.keys.kept(live)
            self.resize(2 * len(self.slices) + 8, max(1, len(live)), live)
            self.keys = kept

    def _collect_strings(self) -> None:
        """Forget strings that no partial holds any more, once most are such."""
        assert self.binding is not None
        for name, coder in self.binding.coders.items():
            if not coder.text or len(coder.dictionary) <= max(FEW, 2 * coder.kept):
                continue
            used = [
                store.codes(position)
                for (_, columns), store in self.binding.stores.items()
                for position, column in enumerate(columns)
                if column == name
            ]
            alive = np.unique(np.concatenate(used))
            coder.kept = len(alive)
            if 2 * len(alive) <= len(coder.dictionary):
                self._recode(name, coder.prune(alive))

    # -- side outputs and counters ---------------------------------------------------------------

    def late(self) -> pa.Table:
        """The events that came too late for all of their windows, since the last call."""
        late, self._late = [pa.Table.from_batches([batch]) for batch in self._late], []
        return self._together(late, self.binding.schema if self.binding else pa.schema([]))

    def bad(self) -> pa.Table:
        """The rows that were diverted as bad, with `bad_reason`, since the last call."""
        bad, self._bad = self._bad, []
        schema = self.binding.schema if self.binding else pa.schema([])
        return self._together(bad, schema.append(pa.field("bad_reason", pa.string())))

    def _together(self, tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
        """Rows of several batches, which may differ in columns that the query does not read."""
        return pa.concat_tables(tables or [schema.empty_table()], promote_options="permissive")

    def set_aside(self) -> dict[str, pa.Table]:
        """Late and bad rows that were not fetched yet, without forgetting them."""
        late, bad = self.late(), self.bad()
        self.put_aside(late, bad)
        return {"late": late, "bad": bad}

    def put_aside(self, late: pa.Table, bad: pa.Table) -> None:
        """Keep these rows until `late` and `bad` are called."""
        self._late = late.to_batches()
        self._bad = [bad] if bad.num_rows else []

    def metrics(self) -> Metrics:
        """Counters and sizes."""
        seen = self.counters
        if self.binding is None:
            return Metrics(
                **vars(seen), live_slices=0, keys=0, bytes=0, partial_bytes=0, watermark=self.early_watermark
            )
        stores = self.stores()
        cells = len(self.slices) * self.keys.count
        shown = None if self.watermark is None else self.binding.measure.scalar(self.watermark)
        return Metrics(
            **vars(seen),
            live_slices=len(self.slices),
            keys=self.keys.count if self.query.key else 0,
            bytes=sum(s.nbytes for s in stores) + self.keys.nbytes + self.slices.nbytes,
            partial_bytes=cells * sum(s.cell_bytes for s in self.binding.stores.values()),
            watermark=shown,
        )

    def snapshot(self) -> bytes:
        """The whole state as bytes; `Query.restore` of the same query goes on from here."""
        from windrow.engine.snapshot import save

        return save(self)

    # -- queries that change while they run ------------------------------------------------------

    def add_window(self, name: str, window: Window) -> Any:
        """Answer one more window from now on, and from existing slices as far back as they go.

        Returns the start of its first complete window; windows from there on are emitted, those that
        have ended already with the next `advance`. None means that all of its windows are complete.
        """
        require_named(name, window, Window, self.query.windows, what="window")
        query = replace(self.query, windows=MappingProxyType({**self.query.windows, name: window}))
        if self.binding is None:
            self.query = query
            return None
        alone = WindowSet.of({name: window}, self.binding.measure)
        floor = self.threshold if self.watermark is not None else None
        if self.windows.may_leave_gaps and self.highest_time is not None:
            # Events in gaps were not kept: nothing before the newest event is complete.
            newest = next_after(self.highest_time)
            floor = newest if floor is None else max(floor, newest)
        self._change_windows(query)
        if self.highest_time is not None and len(self.slices):
            point = np.array([self.highest_time], self.binding.measure.dtype)
            self.slices.shorten_last(neighbours(self.windows, point)[1][0], self.highest_time)
        self.backlog.add(name)
        start = first_complete(alone, self.slices, floor)
        if start is None:
            return None
        self.complete_from["window " + name] = start
        return self.binding.measure.scalar(start)

    def remove_window(self, name: str) -> None:
        """Stop answering a window; slices that only it needed go as the watermark passes."""
        self._require("window", name, self.query.windows)
        rest = {n: w for n, w in self.query.windows.items() if n != name}
        query = replace(self.query, windows=MappingProxyType(rest))
        if self.binding is None:
            self.query = query
        else:
            self._change_windows(query)
            self.complete_from.pop("window " + name, None)
            self.backlog.discard(name)
            self.ledger.drop(name)

    def _change_windows(self, query: Query) -> None:
        assert self.binding is not None
        old = self.query, self.windows
        self.query = query
        try:
            self.windows = WindowSet.of(query.windows, self.binding.measure)
            self._set_reach(self.binding.measure)
        except QueryError:
            self.query, self.windows = old
            self._set_reach(self.binding.measure)
            raise
        self._edges = self._edges[:0]
        if len(self.slices):
            self.slices.mix(self.slices.ends[-1])
        if self.watermark is not None:
            self.threshold = max(self.threshold, self.windows.first_open_start(self._horizon(self.watermark)))

    def add_aggregate(self, name: str, aggregate: Aggregate) -> Any:
        """Compute one more aggregate from now on.

        Returns the start of the first window for which it is complete; it is null in windows that
        begin earlier. None means that it is complete everywhere: nothing was seen yet, or the partials
        it needs were kept already.
        """
        require_named(name, aggregate, Aggregate, self.query.aggregates, what="aggregate")
        together = {**self.query.aggregates, name: aggregate}
        refuse_name_clashes(self.query.key, together)
        query = replace(self.query, aggregates=MappingProxyType(together))
        if self.binding is None:
            self.query = query
            return None
        earlier = {a.key: n for n, a in self.binding.answers.items()}
        fresh = self.binding.add(name, aggregate)
        self.query = query
        self.result_schema = result_schema(self)
        key = self.binding.answers[name].key
        if not fresh:
            start = self.complete_from.get("aggregate " + earlier[key]) if key in earlier else None
        else:
            store = self.binding.stores[key]
            store.repack(self.slices.slots[:0], self.slices.capacity, self.stride, slice(0, 0))
            start = self.slices.ends[-1] if len(self.slices) else None
        if start is None:
            return None
        self.complete_from["aggregate " + name] = start
        return self.binding.measure.scalar(start)

    def remove_aggregate(self, name: str) -> None:
        """Stop computing an aggregate; its partials go unless another aggregate reads them."""
        self._require("aggregate", name, self.query.aggregates)
        rest = {n: a for n, a in self.query.aggregates.items() if n != name}
        self.query = replace(self.query, aggregates=MappingProxyType(rest))
        if self.binding is not None:
            self.binding.remove(name)
            self.result_schema = result_schema(self)
            self.complete_from.pop("aggregate " + name, None)

    def _require(self, what: str, name: str, known: Any) -> None:
        if name not in known:
            raise QueryError(f"there is no {what} {name!r}; there are: {', '.join(known)}")
        if len(known) == 1:
            raise QueryError(f"{name!r} is the only {what} of the query and cannot be removed")


def _common_rows(masks: list[Any]) -> np.ndarray | None:
    """Rows that are in all of the given (sorted) lists; None if there are no lists."""
    if not masks:
        return None
    rows = masks[0]
    for other in masks[1:]:
        rows = np.intersect1d(rows, other, assume_unique=True)
    return rows
