"""What every engine shares: a query bound to types, its keys, its stores, and how events are folded.

An engine answers the windows of one kind of a query. There are three kinds, which differ in the layout of their slices:

    Aligned     windows of time cut all keys at the same instants: pages, a row of partials for each slice
    Sessions    sessions and snapshot windows cut each key in its own places: linked runs
    Ordered     counts and windows that the data places, once the order of events is known: queues
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Scalars
from windrow.engine.arrays import different
from windrow.engine.binding import Answer, Binding, is_own
from windrow.engine.functions.user_functions import blame, named
from windrow.engine.intake.batches import EventBatch, PartialBatch
from windrow.engine.intake.columns import settled
from windrow.engine.intake.keys import Keys
from windrow.engine.partials import Log, Numbers, Store
from windrow.engine.results import result_schema
from windrow.engine.spanning.base import SpanState
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.errors import LimitError, QueryError, UserFunctionError
from windrow.measure import Measure, Tick
from windrow.options import OperatorOptions
from windrow.planner.plan import Part
from windrow.planner.window_set import FEW, WindowSet
from windrow.spec import QuerySpec
from windrow.triggers import Every
from windrow.windows.base import Window

# An engine without a slice does not hold on to more memory than this.
IDLE_BYTES = 1 << 16

Encoded = tuple[dict[str, np.ndarray], dict[str, np.ndarray | None]]
Merged = tuple[list[np.ndarray], np.ndarray]


@dataclass
class Foldable:
    """Events as partials take them: codes, times, arrival numbers if somebody needs them, and their rows in the batch
    that the user gave, if these are known."""

    encoded: Encoded
    times: np.ndarray
    stamps: np.ndarray
    rows: np.ndarray | None = None


class Engine(ABC):
    """The common part; see the module. Whoever makes a slice before it has an event says so."""

    may_have_empty_slices = False
    # What goes on across the starts of slices, where windows of time hold span events.
    spans: SpanState | None = None

    def __init__(self, part: Part, keys: Keys | None = None) -> None:
        self.part = part
        self.settings = settings = part.options
        self.binding = Binding(part)
        self.measure: Measure = self.binding.measure
        self.lateness = self.measure.ticks(settings.allowed_lateness, what="lateness")
        if settings.bound_ahead is not None:
            self.measure.ticks(settings.bound_ahead, what="max_ahead")
        if isinstance(settings.trigger, Every):
            self.measure.ticks(settings.trigger.period, what="emit: every")
        # The engines of an operator share their keys.
        self.keys = Keys(self.binding.key_schema) if keys is None else keys
        self.presence = self.binding.presence
        self.complete_from: dict[str, Tick] = {}
        self.watermark: Tick | None = None
        self.highest_time: Tick | None = None
        # Where the lateness was another one before: the watermark then, and the horizon that it had.
        self.final_until: tuple[Tick, Tick] | None = None
        self.windows = self.placed(part.query.windows)
        self.lowest: Tick
        self.highest: Tick
        self.set_reach()
        self._describe_results()

    def _describe_results(self) -> None:
        """Know the schema of the results."""
        self.result_schema = result_schema(self.binding, self.keys.schema, self.settings)
        self.no_rows = pa.Table.from_batches([], self.result_schema)

    @property
    def query(self) -> QuerySpec:
        """The windows that are answered here, and all aggregates."""
        return self.part.query

    def placed(self, windows: Mapping[str, Window]) -> WindowSet:
        """The context-free ones of these windows in ticks; an error names a window whose size is none."""
        for name, window in windows.items():
            for what, size in window.sizes.items():
                self.measure.ticks(size, what=f"window {name!r}: {what}")
        return WindowSet.of(windows, self.measure)

    # -- time ------------------------------------------------------------------------------------

    def set_reach(self) -> None:
        """The times whose windows, and the ends of which plus lateness, can be expressed."""
        self.lowest, high = self.reach()
        self.highest = high - self.lateness
        self._before_all, self._behind_all = self.lowest - 1, self.highest + self.windows.longest
        span = self.measure.highest - self.measure.lowest
        if not self.lowest < self.highest or self.lateness > span // 2:
            raise QueryError(
                f"the ends of windows plus a lateness of {self.settings.lateness} "
                f"overflow {self.measure.describe()}"
            )

    def reach(self) -> tuple[Tick, Tick]:
        """The first and the last time whose windows can be expressed."""
        return self.windows.reach

    def near(self, tick: Tick) -> Tick:
        """A tick that is before, at or after the same context-free windows, and safe for arithmetic."""
        if tick < self._before_all:
            return self._before_all
        return self._behind_all if tick > self._behind_all else tick

    def clamp(self, tick: Tick) -> Tick:
        """A tick that is before, at or after the same windows."""
        return self.near(tick)

    def horizon(self, watermark: Tick) -> Tick:
        """Windows that end at or before this are final."""
        horizon = self.clamp(watermark - self.lateness)
        if self.final_until is None:
            return horizon
        before, final = self.final_until
        return final if watermark <= before else max(final, horizon)

    def emission_point(self, watermark: Tick) -> Tick:
        """Windows that end at or before this have been given out, and perhaps others early."""
        waits = self.settings.mode == "append" or self.settings.is_early
        return self.horizon(watermark) if waits else self.clamp(watermark)

    # -- both phases of a watermark --------------------------------------------------------------

    @abstractmethod
    def due(self, watermark: Tick | None, *, look: bool = False) -> list[pa.RecordBatch]:
        """The rows of the windows that this watermark completes; `pass_to` or `abandon` comes next.

        With a `look`, those of open windows too that have changed since they were last given out; the watermark is that of now,
        or the next one, and None if there was none. If it fails, nothing has changed.
        """

    @abstractmethod
    def pass_to(self, watermark: Tick | None) -> None:
        """Go on to a watermark whose rows were given out, and let go of what is final."""

    @abstractmethod
    def abandon(self) -> None:
        """Take back what `due` has done."""

    def note_time(self, high: Tick) -> None:  # noqa: B027 - most engines need not
        """Know how far time has come, by an event that need not be in any window."""

    # -- events into partials --------------------------------------------------------------------

    def absent(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        """A mask of the events that lie in no window, or before these were added; None: nobody does."""
        return None

    def bad_values(self, batch: pa.RecordBatch) -> list[tuple[str, np.ndarray, str]]:
        """Rows that cannot be taken in because of a value: the column, a mask, the reason."""
        return self.binding.bad_values(batch)

    def stores(self) -> list[Store]:
        """Everything that lies in the arena."""
        return list(self.binding.in_order)

    def holders(self, store: Store) -> Sequence[Store]:
        """Everything that holds codes of the events of a store."""
        return (store,)

    def code_holders(self, column: str) -> list[tuple[Any, int]]:
        """Everything that holds codes of a column, and which of its columns that is."""
        return [
            (holder, position)
            for (_, columns), store in self.binding.stores.items()
            for position, name in enumerate(columns)
            if name == column
            for holder in self.holders(store)
        ]

    def encode(self, batch: pa.RecordBatch, staged: Staged | None = None) -> Encoded:
        """Codes of each column that is read, and the rows that are not null (None: all)."""
        codes: dict[str, np.ndarray] = {}
        present: dict[str, np.ndarray | None] = {}
        for name, coder in self.binding.coders.items():
            codes[name], present[name], moved = coder.encode(batch.column(name))
            if moved is not None:
                self._recode(name, moved)
                if staged is not None:
                    staged.on_rollback(partial(self._forget_strings, name, moved))
        for name in self.binding.uncoded:
            array = settled(batch.column(name))
            valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
            present[name] = None if valid is None else np.flatnonzero(valid)
        return codes, present

    def _forget_strings(self, column: str, known: np.ndarray) -> None:
        """Know these codes of a column alone."""
        self._recode(column, self.binding.coders[column].prune(known))

    def _recode(self, column: str, moved: np.ndarray) -> None:
        for holder, position in self.code_holders(column):
            holder.recode(position, moved)

    def fold(self, events: Foldable, segments: Any, *, own: bool, staged: Staged | None = None) -> None:
        """Fold events into the cells of their segments: into the user's `own` partials, which may fail, or all others.

        Cells are saved for a rollback if there is a `staged`; others are those of slices that nobody knows yet.
        """
        for columns, store in self.binding.own if own else self.binding.others:
            rows, inputs = inputs_of(events.encoded, columns)
            stamps: tuple[np.ndarray, ...] = ()
            if isinstance(store, Numbers) and store.timed:
                stamps = (events.times, events.stamps)
                stamps = stamps if rows is None else (events.times[rows], events.stamps[rows])
            for target, where in self.targets(store, segments):
                part = where if rows is None else where.only(rows)
                if own:
                    origin = events.rows
                    places = None if origin is None else origin if rows is None else origin[rows]
                    self._fold_own(target, part, inputs, stamps, places, staged)
                    continue
                if staged is not None:
                    staged.on_rollback(target.saved_for(part))
                target.fold(part, inputs, stamps)

    def _fold_own(
        self,
        target: Numbers,
        segments: Any,
        inputs: list[np.ndarray],
        stamps: tuple[np.ndarray, ...],
        places: np.ndarray | None,
        staged: Staged | None,
    ) -> None:
        """Fold by functions of the user's, and name the event that they fail on."""
        held = 0
        if staged is not None:
            cells = segments.touched(len(target.n))
            held = int(target.n[cells].sum())
            staged.on_rollback(target.saved(cells))
        try:
            target.fold(segments, inputs, stamps)
        except UserFunctionError:
            raise
        except Exception as problem:  # a user's function may raise anything
            done = int(target.n[segments.touched(len(target.n))].sum()) - held
            raise blame(target, segments, inputs, places, problem, done=done) from problem

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        """What the events of a store are folded into, and the segments of each."""
        return [] if isinstance(store, Log) else [(store, segments)]

    def is_merged(self, store: Store) -> bool:
        """Whether the store's windows are merged from partials of a few numbers."""
        return isinstance(store, Numbers)

    def answer(
        self, answer: Answer, due: ClosedWindows, slots: np.ndarray, rows: Any, decoders: Any
    ) -> pa.Array:
        """The answer column of output rows, a window and a key each, of a store that is not merged."""
        assert not isinstance(answer.store, Numbers)
        return answer.store.answer(answer.bound, due, slots, rows, decoders)

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Merged:
        """The partials of windows x keys, window by window, and how many values; good until the next call."""
        return store.merge(due, slots, keys)

    def join(self, cells: np.ndarray, parcel: PartialBatch, staged: Staged, *, fresh: bool) -> None:
        """Join the partials of slices onto these cells: the user's own now, as they may fail, and all others later.

        Nothing of `fresh` cells has to be saved.
        """
        for store, (n, fields) in zip(self.binding.in_order[1:], parcel.partials, strict=True):
            assert isinstance(store, Numbers)
            if not is_own(store.spec):
                staged.on_commit(partial(store.join, cells, fields, n))
                continue
            if not fresh:
                staged.on_rollback(store.saved(different(cells[cells >= 0], len(store.n))))
            try:
                store.join(cells, fields, n)
            except Exception as problem:  # a user's function may raise anything
                assert isinstance(store.spec, Scalars)
                raise named(store.spec, "combine", problem) from problem

    # -- both phases of a batch ------------------------------------------------------------------

    def stage(self, incoming: EventBatch | PartialBatch) -> Staged:
        """Do all of taking in a batch that can fail; if it does, nothing has changed."""
        staged = Staged()
        try:
            if not incoming.numbered:
                incoming.number(self.keys, staged)
            self.make_room_for_keys()
            if len(incoming):
                self._stage(incoming, staged)
        except BaseException:
            staged.rollback()
            raise
        return staged

    @abstractmethod
    def _stage(self, incoming: EventBatch | PartialBatch, staged: Staged) -> None:
        """As `stage`, step by step."""

    def make_room_for_keys(self) -> None:  # noqa: B027 - only pages have a column for each key
        """Have room for all keys that are known, though events of some may have come to other engines only."""

    # Whether a key can be forgotten once nothing of it is alive.
    forgets_keys = True

    def live_keys(self) -> np.ndarray:
        """A mask of the keys of which something is alive."""
        return np.ones(self.keys.count, bool)

    def renumber(self, live: np.ndarray) -> None:  # noqa: B027 - an engine that forgets no keys is not asked
        """Key live[i] becomes key i; nothing of the others is alive."""

    @property
    def owners(self) -> int:
        """By how many numbers the events of logs are told apart."""
        return self.keys.count

    def require_room(self, count: int) -> None:
        """A LimitError if `count` more events would be too many for what keeps them one by one."""
        limit = self.settings.max_slices
        for answer in self.binding.answers.values():
            store = answer.store
            if isinstance(store, Numbers):
                continue
            # How many of the new values are different from those that a multiset has is not known yet.
            held = store.held + (count if isinstance(store, Log) else 0)
            if held > limit:
                raise LimitError(
                    f"{held:,} values of {', '.join(map(str, answer.columns))} would be kept one by one, more than the limit "
                    f"of max_slices={limit:,}; nothing of this batch was taken: advance the watermark more often, "
                    "or raise max_slices"
                )

    def keep(self, events: Foldable, numbers: np.ndarray | None, inside: np.ndarray | None) -> None:
        """Keep the events themselves where an aggregate needs them; `inside` are rows in some window."""
        for columns, store in self.binding.logs:
            rows, inputs = inputs_of(events.encoded, columns)
            which = np.arange(len(events.times)) if rows is None else rows
            if inside is not None:
                here = np.isin(which, inside, assume_unique=True)
                which, inputs = which[here], [x[here] for x in inputs]
            owners = np.zeros(len(which), np.int64) if numbers is None else numbers[which]
            store.take([owners, events.times[which], events.stamps[which], *inputs])

    def absorb_own(self, into: np.ndarray, taken: np.ndarray, keys: int, staged: Staged) -> None:
        """Join slots `taken` onto slots `into`, of the user's own partials, which may fail."""
        for _, store in self.binding.own:
            slots = np.unique(into)
            staged.on_rollback(store.saved((slots[:, None] * store.stride + np.arange(keys)).ravel()))
            try:
                store.absorb(into, taken, keys)
            except Exception as problem:  # a user's function may raise anything
                assert isinstance(store.spec, Scalars)
                raise named(store.spec, "combine", problem) from problem

    def absorb_others(self, into: np.ndarray, taken: np.ndarray, keys: int) -> None:
        """The same of all other partials."""
        own = [store for _, store in self.binding.own]
        for store in self.stores():
            if store not in own:
                store.absorb(into, taken, keys)

    def absorb(self, into: np.ndarray, taken: np.ndarray, keys: int) -> bool:
        """Join slots `taken` onto slots `into`; if a user's `combine` fails, nothing is done, and that is not said."""
        staged = Staged()
        try:
            self.absorb_own(into, taken, keys, staged)
        except UserFunctionError:
            staged.rollback()
            return False
        self.absorb_others(into, taken, keys)
        return True

    def collect_strings(self) -> None:
        """Forget strings that no partial holds any more, once most are such."""
        for name, coder in self.binding.coders.items():
            if not coder.text or len(coder.dictionary) <= max(FEW, 2 * coder.kept):
                continue
            used = [holder.codes(position) for holder, position in self.code_holders(name)]
            alive = np.unique(np.concatenate(used))
            coder.kept = len(alive)
            if 2 * len(alive) <= len(coder.dictionary):
                self._recode(name, coder.prune(alive))

    # -- queries that change while they run ------------------------------------------------------

    def reconfigure(self, options: OperatorOptions) -> None:
        """Go on with other options; what is final stays final."""
        if self.watermark is not None and options.lateness != self.settings.lateness:
            self.final_until = self.watermark, self.horizon(self.watermark)
        self.lateness = self.measure.ticks(options.allowed_lateness, what="lateness")
        self.binding.merge_by(options.store, self.query.aggregates)
        self.settings = options
        self.part = replace(self.part, options=options)
        self.set_reach()
        self._describe_results()

    def learn(self, schema: pa.Schema) -> None:
        """Know columns that are new, which aggregates that are added may read."""
        self.part = replace(self.part, schema=schema)
        self.binding.learn(schema)

    def arrange(self, aggregates: Sequence[str]) -> None:
        """Give results the columns of the aggregates in this order."""
        self.part = self.part.with_aggregates({name: self.query.aggregates[name] for name in aggregates})
        self.binding.arrange(aggregates)
        self._describe_results()

    @abstractmethod
    def add_window(self, name: str, window: Window) -> Tick | None:
        """Answer one more window; its first complete start, None if all are."""

    def with_windows(self, windows: Mapping[str, Window]) -> None:
        """Answer these windows from now on; nothing changes if they cannot be placed."""
        old = self.part, self.windows
        self.part = self.part.with_windows(windows)
        try:
            self.windows = self.placed(self.query.windows)
            self.set_reach()
        except QueryError:
            self.part, self.windows = old
            self.set_reach()
            raise
        self.binding.read_windows(self.query)

    def add_aggregate(self, name: str, aggregate: Aggregate) -> Tick | None:
        """Compute one more aggregate; the first start of a window for which it is complete."""
        earlier = {a.key: n for n, a in self.binding.answers.items()}
        fresh = self.binding.add(name, self.part.computed(name, aggregate))
        self.part = self.part.with_aggregates({**self.query.aggregates, name: aggregate})
        self._describe_results()
        key = self.binding.answers[name].key
        if not fresh:
            start = self.complete_from.get("aggregate " + earlier[key]) if key in earlier else None
        else:
            start = self.make_store(self.binding.stores[key])
        if start is not None:
            self.complete_from["aggregate " + name] = start
        return start

    @abstractmethod
    def make_store(self, store: Store) -> Tick | None:
        """Give a new store its place; from which start on windows are complete in it."""

    def remove_aggregate(self, name: str) -> None:
        """Stop computing an aggregate."""
        rest = {n: a for n, a in self.query.aggregates.items() if n != name}
        self.part = self.part.with_aggregates(rest)
        self.binding.remove(name)
        self._describe_results()
        self.complete_from.pop("aggregate " + name, None)


def inputs_of(encoded: Encoded, columns: tuple[str, ...]) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """The rows without a null in these columns (None: all), and their codes."""
    codes, present = encoded
    rows = common_rows([present[c] for c in columns if present[c] is not None])
    return rows, [codes[c] if rows is None else codes[c][rows] for c in columns if c in codes]


def common_rows(masks: list[Any]) -> np.ndarray | None:
    """Rows that are in all of the given (sorted) lists; None if there are no lists."""
    if not masks:
        return None
    rows = masks[0]
    for other in masks[1:]:
        rows = np.intersect1d(rows, other, assume_unique=True)
    return rows
