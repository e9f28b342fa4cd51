"""Where the slices of all keys live: their columns, and a slot each for their partials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from windrow.engine.engine import IDLE_BYTES, Engine
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.partials import Multisets
from windrow.errors import LimitError


class Arena:
    """Slices and their slots; the stores themselves belong to the engine."""

    def __init__(self, engine: Engine, dynamic: int, *, ranked: bool) -> None:
        self._engine = engine
        self.slices = KeyedSlices.empty(engine.measure.dtype, dynamic, ranked=ranked)
        self.capacity = 0
        self._free = np.empty(0, np.int64)

    def new(
        self, key: np.ndarray, first: np.ndarray, last: np.ndarray, edge: np.ndarray, reach: np.ndarray
    ) -> KeyedSlices:
        """Slices with empty partials, each with a slot of its own; they are not among the others yet."""
        ranked = np.zeros((len(self.slices.ranked), len(key)), np.int64)
        closed = np.zeros(len(key), np.int64)
        return KeyedSlices(key, first, last, edge, closed, self._places(len(key)), reach, ranked)

    def _places(self, need: int) -> np.ndarray:
        """Free slots, emptied."""
        live, limit = len(self.slices), self._engine.settings.max_slices
        if live + need > limit:
            raise LimitError(
                f"{live + need:,} live slices would be more than the limit of max_slices={limit:,}; "
                "the operator is as it was before"
            )
        if need > len(self._free):
            self.resize(live + need + (live + need) // 2 + 8)
        slots, self._free = self._free[:need], self._free[need:]
        for store in self._engine.stores():
            store.reset(slots)
        return slots

    def give_back(self, slots: np.ndarray) -> None:
        """These slots are free again."""
        self._free = np.concatenate([self._free, slots])

    def resize(self, capacity: int) -> None:
        """Move to `capacity` slots, of which the slices there are take the first."""
        for store in self._engine.stores():
            store.repack(self.slices.slot, capacity, 1, slice(0, 1))
        self.place(self.slices, capacity)

    def place(self, slices: KeyedSlices, capacity: int) -> None:
        """Hold these slices, in the order of their slots, in an arena of `capacity` slots."""
        self.slices = replace(slices, slot=np.arange(len(slices)))
        self.capacity = capacity
        self._free = np.arange(len(slices), capacity)

    def replace(self, slices: KeyedSlices, taken: np.ndarray) -> None:
        """Hold these slices instead; those in the slots `taken` were joined to others."""
        self.slices = slices
        self.give_back(taken)

    def coalesce(self, apart: np.ndarray) -> None:
        """Join slices that need not be `apart` from the one before.

        If a user's `combine` fails here, nothing is joined: it will be named when a window needs it.
        """
        slices, into, taken = self.slices.joined(apart)
        if not len(taken) or self._engine.absorb(into, taken, 1):
            self.replace(slices, taken)

    def keep(self, alive: np.ndarray) -> None:
        """Let go of all other slices."""
        gone = self.slices.slot[~alive]
        self.slices = self.slices.where(alive)
        self.give_back(gone)
        for store in self._engine.binding.stores.values():
            if isinstance(store, Multisets):
                store.reset(gone)

    def shrink(self) -> None:
        """Let go of memory that is far more than the slices need."""
        live = len(self.slices)
        idle = not live and sum(store.nbytes for store in self._engine.stores()) > IDLE_BYTES
        if idle or self.capacity > 4 * live + 64:
            self.resize(2 * live + 8)
