"""Plane sweeping: endpoints of events in the order of time, read as far as the window that is released.

    starts     1   2     4   6   9               read up to the window's end: who has come
    ends         3   5         7   8   12        read up to the window's begin: who has gone
    window           |-------|

Cumulative functions keep one partial of the events that are active: it gains an event at its start and loses it at its
end, so they must be invertible. Selective functions keep the active events in a heap. The work depends on how many
events there are, not on how long they last or how windows overlap. The paper's other index, of the endpoints of
windows, is arithmetic here.

    order       any: an endpoint that comes late is read with the next window
    windows     periodic windows of time, each with a sweep of its own
    aggregates  invertible ones (count, sum and mean of whole numbers), and those that select one event
    time        O(log n) per event for the indexes, n being how many are alive; 2 combines per event and cumulative
                function, O(log n) comparisons per event and selective function
    space       every event that is alive, with two endpoints
    paper       Piatov and Helmer, Sweeping-based temporal aggregation, SSTD 2017; for streams: Suzanne, Raschia,
                Martinez and Tassetti, Slicing techniques for temporal aggregation in spanning event streams,
                Information and Computation 2021, section 5.3.3
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.techniques.aggregate_buckets import first_open
from benchmarks.techniques.fragments import BLOCK
from benchmarks.techniques.partials import Partials
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.spanning.active import Cumulative, Selective
from benchmarks.techniques.spanning.base import Spanning, SpanTechnique
from benchmarks.techniques.spanning.endpoints import enlist, sweep
from benchmarks.techniques.wheel import number_at
from benchmarks.techniques.wheeled import NO_KEYS
from windrow.aggregates.base import Scalars
from windrow.durations import DurationLike
from windrow.engine.windows import first_ending_after
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.spec import QuerySpec
from windrow.stores.operations import lift, put

FIRST_ROOM = 64


def keep(inputs, nodes, cells):
    """The partial of each event to the cell of its node."""
    for e in range(nodes.shape[0]):
        if nodes[e] >= 0:
            put(cells, nodes[e], lift(inputs, e))


class Sweep:
    """The sweep of one placement: nodes of events, their endpoints, and what each group keeps of them."""

    def __init__(self, groups: list[Cumulative | Selective], dtype: np.dtype) -> None:
        self.groups = groups
        self.free = np.zeros(1, np.int64)
        self.owner = np.zeros(0, np.int64)
        self.started, self.ended = ((np.zeros(0, dtype), np.zeros(0, np.int64)) for _ in range(2))
        self.counts = np.zeros(2, np.int64)
        self.keys = 0
        self.low = self.high = dtype.type(0)

    @property
    def alive(self) -> int:
        """How many events have a node."""
        return len(self.owner) - int(self.free[0])

    @property
    def idle(self) -> bool:
        """Whether no event is active, and some have not started yet."""
        return bool(self.counts[0] == self.counts[1] > 0)

    def take(
        self,
        starts: np.ndarray,
        lasts: np.ndarray,
        keys: np.ndarray,
        inputs: tuple[tuple[np.ndarray, ...], ...],
        floor: Tick,
    ) -> None:
        """Take in the span events whose last instant is `floor` or later."""
        nodes = np.empty(len(starts), np.int64)
        before = self.alive
        enlist(
            starts, lasts, keys, starts.dtype.type(floor), self.free, self.owner, self.started, self.ended,
            self.counts, nodes,
        )  # fmt: skip
        low, high = starts.min(), lasts.max()
        self.low, self.high = (low, high) if not before else (min(self.low, low), max(self.high, high))
        for group, read in zip(self.groups, inputs, strict=True):
            group.partials.loop(keep)(read, nodes, group.cells)

    def make_room(self, count: int, keys: int) -> None:
        """Have nodes for so many more events, and for so many keys."""
        had, short = len(self.owner), count - int(self.free[0])
        more = max(short, had, FIRST_ROOM) if short > 0 else 0
        if keys > self.keys:
            self.keys = max(keys, self.keys + self.keys // 2)
        for group in self.groups:
            group.grow(had + more, self.keys)
        if more:
            spare, self.free = self.free, np.empty(1 + had + more, np.int64)
            there = int(spare[0])
            self.free[1 : 1 + there] = spare[1 : 1 + there]
            self.free[1 + there : 1 + there + more] = np.arange(had + more - 1, had - 1, -1)
            self.free[0] = there + more
            self.owner = np.append(self.owner, np.zeros(more, np.int64))
            self.started, self.ended = (
                (np.append(ticks, np.zeros(more, ticks.dtype)), np.append(nodes, np.zeros(more, np.int64)))
                for ticks, nodes in (self.started, self.ended)
            )

    def read(self, begins: np.ndarray, finishes: np.ndarray) -> tuple[np.ndarray, ...]:
        """Who enters and who leaves on the way along these windows, and how many at each of them."""
        entered, left = np.empty(self.counts[0], np.int64), np.empty(self.counts[1], np.int64)
        upto = np.empty((2, len(begins)), np.int64)
        came, went = sweep(begins, finishes, self.started, self.ended, self.counts, entered, left, upto)
        return entered[:came], left[:went], upto

    def forget(self, nodes: np.ndarray) -> None:
        """These events have left all windows."""
        there = int(self.free[0])
        self.free[1 + there : 1 + there + len(nodes)] = nodes
        self.free[0] = there + len(nodes)
        for group in self.groups:
            group.cells[group.partials.fields][nodes] = 0

    def clear(self) -> None:
        """Forget all events."""
        self.free = np.append(len(self.owner), np.arange(len(self.owner)))
        self.counts[:] = 0
        for group in self.groups:
            group.clear()


class _Sweeping(Spanning):
    def prepare(self) -> None:
        self._groups = [self._partials(names) for names in self._split()]
        self._sweeps = [
            Sweep([self._kept(partials) for partials in self._groups], self.measure.dtype)
            for _ in self.windows.every
        ]
        self._floor = np.full(len(self.windows.every), self.lowest, self.measure.dtype)

    @property
    def groups(self) -> tuple[Partials, ...]:
        return tuple(self._groups)

    def _split(self) -> list[list[str]]:
        """Names of aggregates that are swept together: the cumulative ones, and each selective one by itself."""
        cumulative: list[str] = []
        selective: dict[object, list[str]] = {}
        for name, answer in self.binding.answers.items():
            partial = answer.bound.partial
            if isinstance(partial, Scalars) and partial.invert is not None:
                cumulative.append(name)
            elif isinstance(partial, Scalars) and partial.selects:
                selective.setdefault(answer.key, []).append(name)
            else:
                raise QueryError(
                    f"aggregate {name!r} cannot be answered by PlaneSweeping: an event that ends is taken back out, and "
                    f"{partial.name} is neither exactly invertible nor does it select one of the events"
                )
        return [*([cumulative] if cumulative else []), *selective.values()]

    def _partials(self, names: list[str]) -> Partials:
        answers = {name: self.binding.answers[name] for name in names}
        partial = answers[names[0]].bound.partial
        selects = isinstance(partial, Scalars) and partial.invert is None
        return Partials(self.binding, answers, "beats" if selects else "invert")

    def _kept(self, partials: Partials) -> Cumulative | Selective:
        return Selective(partials) if partials.further == "beats" else Cumulative(partials)

    def insert_spans(
        self,
        starts: np.ndarray,
        lasts: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[tuple[np.ndarray, ...], ...],
    ) -> None:
        numbers = NO_KEYS if keys is None else keys
        for sweep_, floor in zip(self._sweeps, self._floor, strict=True):
            sweep_.make_room(len(starts), max(1, self.keys.count))
            sweep_.take(starts, lasts, numbers, inputs, floor)

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        w, keys = self.windows, max(1, self.keys.count)
        size = max(1, BLOCK // keys)
        for i, sweep_ in enumerate(self._sweeps):
            if not sweep_.alive:
                continue
            every, offset, whole, rest = w.every[i], w.offset[i], w.whole[i], w.rest[i]
            tick = every.dtype.type
            k = first_ending_after(max(tick(after), sweep_.low), every, offset, whole, rest)
            last = first_ending_after(tick(until), every, offset, whole, rest)
            last = min(last, number_at(sweep_.high, every, offset) + 1)
            while k < last:
                number = np.arange(k, min(k + size, last))
                start, end = offset + number * every, offset + (number + whole) * every + rest
                yield self._rows(sweep_, int(w.owner[i]), start, end, keys)
                k += size
                if sweep_.idle:
                    k = max(k, first_ending_after(sweep_.started[0][0], every, offset, whole, rest))

    def _rows(self, sweep_: Sweep, owner: int, start: np.ndarray, end: np.ndarray, keys: int) -> Rows:
        entered, left, upto = sweep_.read(start, end)
        found = []
        for group in sweep_.groups:
            out = group.partials.cells(len(start) * keys)
            self.combines += group.release((entered, left, upto), sweep_.owner, keys, out)
            found.append(out)
        sweep_.forget(left)
        there = np.flatnonzero(found[0][self._groups[0].fields])
        cells = tuple(column[there] for out in found for column in out)
        at = there // keys
        return Rows(np.full(len(there), owner), start[at], end[at], there % keys, cells)

    def let_go(self, horizon: Tick) -> None:
        w = self.windows
        self._floor = np.maximum(self._floor, w.starts(first_open(w, horizon)))
        for sweep_, floor in zip(self._sweeps, self._floor, strict=True):
            if sweep_.alive and sweep_.high < floor:
                sweep_.clear()

    def widen(self) -> None:
        for sweep_ in self._sweeps:
            for group in sweep_.groups:
                group.widen()

    def recode(self, column: str, moved: np.ndarray) -> None:
        for sweep_ in self._sweeps:
            for group in sweep_.groups:
                group.recode(column, moved)

    def live(self) -> tuple[int, int]:
        partials = sum(group.live for sweep_ in self._sweeps for group in sweep_.groups)
        return partials, sum(sweep_.alive for sweep_ in self._sweeps)


class PlaneSweeping(SpanTechnique):
    """See the module."""

    method = _Sweeping

    def __init__(self, query: QuerySpec, lateness: DurationLike = 0) -> None:
        for name, aggregate in query.aggregates.items():
            algebra = aggregate.algebra
            if not algebra.invertible and not (algebra.selective and algebra.idempotent):
                self._refuse(
                    f"aggregate {name!r}",
                    "an event that ends is taken back out, and it is neither invertible nor does it select one event",
                )
        super().__init__(query, lateness)
