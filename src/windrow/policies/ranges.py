"""Aggregates of windows that are ranges: sliding ones, and all whose aggregates need the values themselves.

Each row has a place in `order`, and a window is a range of places of its partition. Partials of fixed size lie beside
`order`, and are combined as two stacks for each partition (`stacks`): each row is combined twice in its life, and no
partial is ever taken back out of another.

Where single rows are not needed, a place holds a *slice* of them (section 4.1.8 of the paper: a tumbling window that feeds
a sliding one). `count(n), count(m)` has slices of gcd(n, m) rows; `time(p), time(q)` has slices between the instants
at which a trigger is due or a row has just become too old for one.

Aggregates that need the values themselves (medians, lists) keep a column of codes beside `order`. Values are counted
by place only where that is not the number of places: in slices, and from the first null of a column on.

    place     0   1   2   3   4        own    1   0   3   1   1
    rows      x   -   xxx x   x        upto   1   1   4   5   6        places 1 .. 3 have 5 - 1 + 0 = 4 values
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Scalars
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Runs
from windrow.engine.functions.bound_kernels import Operations, compiled_with, operations_of
from windrow.engine.functions.user_functions import lift_failed, named
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.policies.events import BEFORE_FLUSH, TRIGGER
from windrow.policies.folding import Folding
from windrow.policies.inputs import BoundAggregate, Inputs, blaming
from windrow.policies.layout import FROM, KIND, OF_PARTITION, OF_ROW, UPTO, of
from windrow.policies.spec import Count, Sliding, Spec, Time, TupleCount
from windrow.policies.stacks import answer, put_rows
from windrow.policies.steps import NOWHERE
from windrow.policies.window_state import WindowState
from windrow.rolling.codes import recoded
from windrow.rolling.ranges import Log
from windrow.stores import operations


@jit
def count_values(position, numbers, present, low, high, counted, upto, own):  # type: ignore[no-untyped-def]
    """Count values by place: `own` ones in it, and how many came in its partition `upto` its end."""
    for i in range(low, high):
        place = position[i]
        if place == NOWHERE:
            continue
        value = 1 if present.shape[0] == 0 or present[i] else 0
        counted[numbers[i]] += value
        if place >= 0:
            own[place] = value
        else:
            place = -1 - place
            own[place] += value
        upto[place] = counted[numbers[i]]


@jit
def values_between(low, high, upto, own, out):  # type: ignore[no-untyped-def]
    """How many values there are in ranges of places."""
    for k in range(low.shape[0]):
        out[k] = 0
        if low[k] < high[k]:
            out[k] = upto[high[k] - 1] - upto[low[k]] + own[low[k]]


class Overwritten:
    """What touched partitions had beside `order` before a batch, as far as the batch overwrites it; see `undo`.

    Rows of a batch have places of their own. Only two things before the tail change: the last place, where it is a
    slice that rows join; and what lies behind the middle of the stacks, where a window has passed it.
    """

    def __init__(self, state: WindowState, touched: np.ndarray) -> None:
        self._touched = touched
        self._head, self._tail = (state.partitions.table[touched, column] for column in (of.HEAD, of.TAIL))
        self._kept: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        self._keep(state, self._tail[self._head < self._tail] - 1)

    def _keep(self, state: WindowState, places: np.ndarray) -> None:
        if len(places):
            self._kept.append((places, {name: array[places] for name, array in state.regions.arrays.items()}))

    def keep_overwritten(self, state: WindowState, middle: np.ndarray) -> None:
        """Windows are about to be answered, from stacks with this middle."""
        table = state.partitions.table
        low = np.maximum(middle[self._touched] - table[self._touched, of.SHIFT], self._head)
        passed = np.flatnonzero((table[self._touched, of.HEAD] > low) & (low < self._tail))
        self._keep(state, Runs(low[passed], self._tail[passed], passed).located()[0])

    def back(self, state: WindowState) -> None:
        """Bring it all back; what was kept first counts."""
        for places, arrays in reversed(self._kept):
            for name, array in arrays.items():
                state.regions.arrays[name][places] = array


class Ranges(Folding):
    """Aggregates over ranges of places; several that share a partial share its stacks."""

    def __init__(self, aggregates: list[BoundAggregate], inputs: Inputs) -> None:
        super().__init__(aggregates, inputs)
        self._parts: dict[Any, str] = {}
        self._columns: dict[tuple[str, ...], str] = {}
        self._operations: dict[str, dict[bool, Operations]] = {}
        self._arrived = 0
        for one in aggregates:
            self._columns.setdefault(one.columns, f"n{len(self._columns)}")
            key = one.key
            if key not in self._parts:
                name = self._parts[key] = f"part{len(self._parts)}"
                if one.fixed and one.bound.partial.fields:  # type: ignore[union-attr]
                    self._operations[name] = {m: operations_of(one.bound, masked=m) for m in (False, True)}
        self._before: Overwritten | None = None
        self._sliced = False
        self._loops: dict[tuple[int, Any], Any] = {}
        self._counting: set[str] = set()

    # -- what is kept ------------------------------------------------------------------------------

    def columns(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        for one in self._aggregates:
            name = self._parts[one.key]
            if name in self._operations:
                cells = self._operations[name][False].cells(0)
                arrays |= {f"{name} f{i}": cell for i, cell in enumerate(cells)}
            elif not one.fixed:
                arrays[f"{name} codes"] = np.zeros(0, np.float64 if one.bound.kinds[0] == "f" else np.int64)
        if not arrays:  # something must have places
            self._counting = set(self._columns.values())
            arrays = {name: np.zeros(0, np.int64) for name in self._counts(self._counting)}
        return arrays

    def _counts(self, names: set[str]) -> list[str]:
        return [f"{name} {what}" for name in sorted(names) for what in ("upto", "own")]

    def expect(self, regions: dict[str, np.ndarray], has: Callable[[str], bool]) -> None:
        found = {name for name in self._columns.values() if has(f"place {name} upto")}
        regions |= {name: np.zeros(0, np.int64) for name in self._counts(found - self._counting)}
        self._counting |= found

    def _begin_counting(self, state: WindowState, name: str) -> None:
        """Until now there was a value in each place."""
        self._counting.add(name)
        regions, partitions = state.regions.arrays, state.partitions
        capacity = max(len(array) for array in regions.values())
        regions[f"{name} upto"] = np.arange(1, capacity + 1)
        regions[f"{name} own"] = np.ones(capacity, np.int64)
        partitions.arrays[f"{name} counted"][:] = partitions.table[:, of.TAIL]

    def partition_columns(self) -> dict[str, np.dtype[Any]]:
        whole = np.dtype(np.int64)
        types: dict[str, np.dtype[Any]] = {f"{name} counted": whole for name in self._columns.values()}
        for name, given in self._operations.items():
            types |= {f"{name} middle": whole, f"{name} end": whole}
            for i, cell in enumerate(given[False].cells(0)):
                types[f"{name} back{i}"] = np.dtype((cell.dtype, cell.shape[1:]))
        return types

    def choose_slices(self, spec: Spec, settings: np.ndarray) -> None:
        if not isinstance(spec, Sliding) or isinstance(spec.partition_eviction, TupleCount):
            return
        if not all(one.fixed for one in self._aggregates):
            return
        if isinstance(spec.eviction, Count) and isinstance(spec.trigger, Count) and spec.eviction.size:
            rows = math.gcd(spec.eviction.size, spec.trigger.size)
            if rows > 1:
                settings[of.SLICE], settings[of.SIZE] = rows, spec.eviction.size // rows
        elif isinstance(spec.eviction, Time) and isinstance(spec.trigger, Time):
            settings[of.SLICE] = 1
        self._sliced = bool(settings[of.SLICE])

    # -- rows in -----------------------------------------------------------------------------------

    def saved(self, state: WindowState, touched: np.ndarray) -> Callable[[], None]:
        before = self._before = Overwritten(state, touched)
        arrived = self._arrived

        def back() -> None:
            self._arrived = arrived
            before.back(state)

        return back

    def settle(self, state: WindowState) -> None:
        """As the base does; and nulls may have come, or slices, so that values must be counted from now on."""
        self._before = None
        for columns, name in self._columns.items():
            uneven = self._sliced or self._inputs.present(columns) is not None
            if uneven and name not in self._counting:
                self._begin_counting(state, name)
        super().settle(state)

    def _codes(self, state: WindowState, column: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The arrays that hold codes of a column, by place and by partition."""
        by_place, by_partition = [], []
        for one in {one.key: one for one in self._aggregates}.values():
            name = self._parts[one.key]
            fields = list(enumerate(getattr(one.bound.partial, "fields", ())))
            for position in (p for p, read in enumerate(one.inputs) if read == column):
                if not one.fixed:
                    by_place.append(state.regions.arrays[f"{name} codes"])
                for i in (i for i, field in fields if field.code == position):
                    by_place.append(state.regions.arrays[f"{name} f{i}"])
                    by_partition.append(state.partitions.arrays[f"{name} back{i}"])
        return by_place, by_partition

    def _recode(self, state: WindowState, column: str, moved: np.ndarray) -> None:
        for arrays in self._codes(state, column):
            for array in arrays:
                array[:] = recoded(array, moved)

    def _held_codes(self, state: WindowState, column: str) -> np.ndarray:
        """The codes of a column that windows may still need, and a few other numbers."""
        live = state.partitions.live()
        low, high = (state.partitions.table[live, end] for end in (of.HEAD, of.TAIL))
        places = Runs(low, high, live).located()[0]
        by_place, by_partition = self._codes(state, column)
        found = np.concatenate([*(a[places] for a in by_place), *(a[live] for a in by_partition)])
        known = self._inputs.strings(column)
        return found[(found >= 0) & (found < known)].astype(np.int64)

    def fold(self, state: WindowState, low: int, high: int) -> None:
        position, arrays, by_partition = state.position, state.regions.arrays, state.partitions.arrays
        everything = np.empty(0, np.bool_)
        for columns, name in self._columns.items():
            if name not in self._counting:
                continue
            present = self._inputs.present(columns)
            counts = by_partition[f"{name} counted"], arrays[f"{name} upto"], arrays[f"{name} own"]
            mask = everything if present is None else present
            count_values(position, state.rows.numbers, mask, low, high, *counts)
        first, self._arrived = self._arrived - low, self._arrived + high - low
        for one in {one.key: one for one in self._aggregates}.values():
            name = self._parts[one.key]
            if not one.fixed:
                kept = position[low:high] >= 0
                codes = self._inputs.codes(one.inputs)[0]
                arrays[f"{name} codes"][position[low:high][kept]] = codes[low:high][kept]
            elif name in self._operations:
                self._lift(state, one, name, first, low, high)

    def _lift(
        self, state: WindowState, one: BoundAggregate, name: str, first: int, low: int, high: int
    ) -> None:
        present = self._inputs.present(one.columns)
        inputs = self._inputs.codes(one.inputs)
        if isinstance(one.bound.partial, Scalars) and one.bound.partial.timed:
            inputs += [np.arange(first, first + high)] * 2
        if present is not None:
            inputs.append(present)
        given = self._operations[name][present is not None]
        cells = self._cells(state, name)
        try:
            self._call(given, put_rows, tuple(inputs), state.position, low, high, NOWHERE, cells)
        except Exception as problem:  # a user's function may raise anything
            if not one.own:
                raise
            rows = np.arange(low, high) if present is None else low + np.flatnonzero(present[low:high])
            codes = [codes[rows] for codes in self._inputs.codes(one.inputs)]
            spec = one.bound.partial
            raise lift_failed(spec, codes, rows) or named(spec, "combine", problem) from problem  # type: ignore[arg-type]

    def _cells(self, state: WindowState, name: str) -> tuple[np.ndarray, ...]:
        fields = range(len(self._operations[name][False].dtypes))
        return tuple(state.regions.arrays[f"{name} f{i}"] for i in fields)

    def _call(self, given: Operations, loop: Any, *arguments: Any) -> None:
        # To find a loop by the source of its functions takes longer than a small batch in it.
        found = self._loops.get((id(given), loop))
        if found is None:
            known = {getattr(operations, role): function for role, function in given.functions}
            found = self._loops[id(given), loop] = compiled_with(known, loop, given)
        found(*arguments)

    # -- answers out -------------------------------------------------------------------------------

    def answers(self, state: WindowState, events: np.ndarray) -> pa.Table | None:
        is_due = (events[KIND] == TRIGGER) | (events[KIND] == BEFORE_FLUSH)
        due = np.compress(is_due, events, axis=1)
        partition, low, high = due[OF_PARTITION], due[FROM], due[UPTO]
        columns = dict(zip(state.partitions.by, state.partitions.columns(partition), strict=True))
        return pa.table(columns | self._answers(state, partition, low, high, due[OF_ROW]))

    def _answers(
        self, state: WindowState, partition: np.ndarray, low: np.ndarray, high: np.ndarray, row: np.ndarray
    ) -> dict[str, pa.Array]:
        made: dict[str, tuple[np.ndarray, ...]] = {}
        found = {}
        for one in self._aggregates:
            part, arrays = self._parts[one.key], state.regions.arrays
            counts = self._columns[one.columns]
            n = high - low
            if counts in self._counting:
                values_between(low, high, arrays[f"{counts} upto"], arrays[f"{counts} own"], n)
            if not one.fixed:
                found[one.name] = self._from_codes(state, one, part, low, high)
                continue
            if part not in made:
                made[part] = self._combined(state, one, part, partition, low, high)
            decoders = self._inputs.decoders(one.columns)
            found[one.name] = one.lowered(list(made[part]), n, decoders, state, partition, row)
        return found

    def _combined(
        self,
        state: WindowState,
        one: BoundAggregate,
        part: str,
        partition: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        if part not in self._operations:
            return ()
        given, by_partition = self._operations[part][False], state.partitions.arrays
        out = given.cells(len(partition))
        back = tuple(by_partition[f"{part} back{i}"] for i in range(len(out)))
        stacks = by_partition[f"{part} middle"], by_partition[f"{part} end"], back
        table, cells = state.partitions.table, self._cells(state, part)
        if self._before is not None:
            self._before.keep_overwritten(state, by_partition[f"{part} middle"])
        ranges = partition, low, high, table, of.SHIFT
        with blaming(one.own, partial(named, one.bound.partial, "combine")):  # type: ignore[arg-type]
            self._call(given, answer, *ranges, cells, *stacks, given.identity, out)
        return out

    def _from_codes(
        self, state: WindowState, one: BoundAggregate, part: str, low: np.ndarray, high: np.ndarray
    ) -> pa.Array:
        codes, counts = state.regions.arrays[f"{part} codes"], self._columns[one.columns]
        log = Log(codes.dtype.kind == "f")
        log.codes = codes
        own = state.regions.arrays.get(f"{counts} own")
        if own is not None and len(own) and own.min() == 0:  # places of nulls, or of nothing
            before = np.concatenate([[0], np.cumsum(own > 0)])
            log.codes, low, high = codes[own > 0], before[low], before[high]
        return log.answers(one.bound, low, high, self._inputs.decoders(one.columns))

    def summary(self, state: WindowState, number: int) -> dict[str, Any]:
        table = state.partitions.table
        ends = np.array([table[number, of.HEAD]]), np.array([table[number, of.TAIL]])
        found = self._answers(state, np.array([number]), *ends, np.array([-1]))
        return {name: column[0].as_py() for name, column in found.items()}

    def save(self, state: WindowState, writer: Writer) -> None:
        writer.array("arrived", np.array([self._arrived]))
        self._inputs.save(writer)

    def load(self, state: WindowState, reader: Reader) -> None:
        self._arrived = int(reader.array("arrived", np.int64)[0])
        self._inputs.load(reader)
