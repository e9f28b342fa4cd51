"""Windows merged from slices, by the store that costs least for the windows due.

    lazy                 combine the slices of each window one by one
    subtract_on_evict    running totals of all slices, then one `invert` per window
    flat_fat             joins of 2, 4, 8, .. slices, shared by all windows
    two_stacks_lite      the slices of one window after another in a queue

These four have loops that go through all keys of a slice at once. Any other store can be asked for; it takes
the keys one after another, as two-stacks lite does where there are few of them, or where partials are sketches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.aggregates.base import Sketch
from windrow.aggregates.count import COUNT
from windrow.compiling.tiers import times_more
from windrow.engine.functions.bound_kernels import compiled, operations_over
from windrow.engine.partials import loops
from windrow.engine.partials.arena import Arena
from windrow.engine.partials.queues import merge_queue
from windrow.engine.windows import ClosedWindows
from windrow.planner.merging import MANY_KEYS, Load, estimates, possible, width_of
from windrow.stores import STORES
from windrow.stores.base import Store

# So few cells are merged before it is found out which store would be the fastest.
FEW_CELLS = 4096

LOOPS: dict[str, Callable[..., Any]] = {
    "lazy": loops.merge_lazy,
    "subtract_on_evict": loops.merge_prefix,
    "flat_fat": loops.merge_tree,
    "two_stacks_lite": loops.merge_stacks,
}
# What merges the counts of values beside partials.
COUNTS = operations_over(COUNT, 0, (), ())


class Merging:
    """How the partials of one kind are merged; `store` is "auto", or the store that the user asks for."""

    def __init__(self, numbers: Arena) -> None:
        self.store = "auto"
        self._numbers = numbers
        self._scratch: dict[str, list[np.ndarray]] = {}

    def merge(self, due: ClosedWindows, slots: np.ndarray, keys: int) -> tuple[list[np.ndarray], np.ndarray]:
        """See `Numbers.merge`."""
        store = self.chosen(due, keys)
        try:
            return self._merged_by(store, due, slots, keys)
        except Exception:  # a user's function may raise anything
            if store == "lazy" or not getattr(self._numbers.spec, "own", False):
                raise
            # The others join slices that no window holds together, and what fails there is in no answer.
            return self._merged_by("lazy", due, slots, keys)

    def _merged_by(
        self, store: str, due: ClosedWindows, slots: np.ndarray, keys: int
    ) -> tuple[list[np.ndarray], np.ndarray]:
        numbers = self._numbers
        if numbers.fields and self._takes_keys_one_by_one(store, keys):
            return self._by_queue(STORES[store], due, slots, keys)
        loop = LOOPS.get(store, loops.merge_prefix)
        *out, count = self._results(len(due) * keys)
        ranges: tuple[Any, ...] = (due.first, due.last)
        work: tuple[Any, ...] = ()
        if loop is not loops.merge_lazy:
            low, high = due.span
            ranges = (*ranges, low, high)
            *fields, n = self._borrow("work", (2 if store == "flat_fat" else 1) * (high - low + 1) * keys)
            work = tuple(fields), n
            for column, identity in zip([*fields, n], [*numbers.identities, 0], strict=True):
                column[:keys] = identity
        numbers.run(
            loop, *ranges, slots, numbers.stride, keys, numbers.cells, numbers.n, *work, tuple(out), count
        )
        return out, count

    def _takes_keys_one_by_one(self, store: str, keys: int) -> bool:
        if isinstance(self._numbers.spec, Sketch):
            return store != "lazy"
        return store not in LOOPS or (store == "two_stacks_lite" and keys < MANY_KEYS)

    def chosen(self, due: ClosedWindows, keys: int) -> str:
        """The name of the store that answers these windows."""
        if self.store != "auto":
            return self.store
        more = times_more()
        if due.covered <= 2 * len(due) or more * due.covered * keys <= FEW_CELLS:
            return "lazy"
        spec = self._numbers.spec
        spread = due.span[1] - due.span[0]
        load = Load(
            more * len(due), more * due.covered, more * spread, more * due.queued, keys, width_of(spec)
        )
        exact = all(dtype.kind in "ib" for dtype in self._numbers.dtypes)
        return estimates(load, possible(spec, exact=exact))[0].store

    def _by_queue(
        self, store: Store, due: ClosedWindows, slots: np.ndarray, keys: int
    ) -> tuple[list[np.ndarray], np.ndarray]:
        numbers = self._numbers
        given = numbers.operations
        capacity = int((due.last - due.first).max())
        *out, count = self._results(len(due) * keys)
        compiled(merge_queue, store, given)(
            due.first,
            due.last,
            slots,
            numbers.stride,
            keys,
            numbers.cells,
            store.create(capacity, given.identity),
            given.cells(store.cells(capacity)),
            np.zeros(store.notes(capacity), np.int64),
            tuple(out),
        )
        low, high = due.span
        totals = np.zeros((high - low + 1) * keys, np.int64)
        loops.bound(loops.merge_prefix, COUNTS)(
            due.first, due.last, low, high, slots, numbers.stride, keys, (), numbers.n, (), totals, (), count
        )
        return out, count

    def _results(self, cells: int) -> list[np.ndarray]:
        """Room for partials and their counts; sketches are added to what is there, which is nothing."""
        numbers = self._numbers
        if isinstance(numbers.spec, Sketch):
            return [*(numbers.empty(i, cells) for i in range(len(numbers.fields))), np.zeros(cells, np.int64)]
        return self._borrow("out", cells)

    def _borrow(self, purpose: str, cells: int) -> list[np.ndarray]:
        """Room for `cells` partials and their counts, kept from call to call."""
        held = self._scratch.get(purpose)
        if held is None or len(held[-1]) < cells:
            held = [np.empty(cells, d) for d in (*self._numbers.dtypes, np.int64)]
            self._scratch[purpose] = held
        return [column[:cells] for column in held]

    def release(self) -> None:
        """Give back the room that is kept from call to call."""
        self._scratch.clear()

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for held in self._scratch.values() for column in held)
