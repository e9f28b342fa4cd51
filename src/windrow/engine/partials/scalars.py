"""Partials of a few numbers: one array per field, one cell per slice slot and key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Scalars, Sketch
from windrow.compiling.integers import python_numbers
from windrow.engine.aligned.cutting import Cells, Runs
from windrow.engine.functions.bound_kernels import giving_answers, operations_of
from windrow.engine.partials import loops
from windrow.engine.partials.arena import DTYPES, Arena
from windrow.engine.partials.merging import Merging
from windrow.engine.windows import ClosedWindows
from windrow.errors import QueryError


class Numbers(Arena):
    """A scalar or sketch partial: taken in, joined, merged, saved."""

    def __init__(self, spec: Scalars | Sketch, columns: int, tick: np.dtype[Any], dtypes: Any = None) -> None:
        super().__init__(spec, columns, tick, dtypes)
        self.merging = Merging(self)

    def repack(self, slots: np.ndarray, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """See `Arena.repack`."""
        super().repack(slots, capacity, stride, keys)
        self.merging.release()

    def recode(self, position: int, moved: np.ndarray) -> None:
        """Apply old-to-new codes of input column `position` to the fields that hold them."""
        used = self.n > 0
        for i, field in enumerate(self.spec.fields):
            if field.code == position:
                self.fields[i][used] = moved[self.fields[i][used]]

    def codes(self, position: int) -> np.ndarray:
        """The codes of input column `position` that are in use."""
        used = self.n > 0
        found = [self.fields[i][used] for i, f in enumerate(self.spec.fields) if f.code == position]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def fold(self, segments: Runs | Cells, inputs: list[np.ndarray], time: tuple[np.ndarray, ...]) -> None:
        """Take in events: `inputs` are the codes of each column; `time` is times and arrival numbers."""
        if not self.spec.fields and isinstance(segments, Runs):
            np.add.at(self.n, segments.cell, segments.high - segments.low)
            return
        inputs = inputs if self.spec.fields else []  # a count reads none
        extra = time if self.timed else ()
        if hasattr(getattr(self.spec, "lift", None), "is_interpreted"):
            inputs = [python_numbers(values) for values in inputs]  # type: ignore[misc]
        columns = *inputs, *extra
        if isinstance(segments, Runs):
            where = segments.low, segments.high, segments.cell
            self.run(loops.fold_runs, *where, columns, self.cells, self.n)
        else:
            self.run(loops.fold_cells, segments.cell, columns, self.cells, self.n)

    def absorb(self, into: np.ndarray, taken: np.ndarray, keys: int) -> None:
        """Join slots `taken` onto slots `into`, in the order given."""
        self.run(loops.absorb_slots, into, taken, self.stride, keys, self.cells, self.n)

    def copy(self, into: np.ndarray, source: np.ndarray) -> None:
        """Let slots `into` hold what slots `source` do, in an arena of one key."""
        for column in (*self.fields, self.n):
            column[into] = column[source]

    def join(self, cells: np.ndarray, fields: list[np.ndarray], n: np.ndarray) -> None:
        """Join partials of elsewhere, and the counts of their values, onto these cells; -1 is no cell."""
        self.run(loops.absorb_rows, cells, tuple(fields), n, self.cells, self.n)

    def saved(self, cells: np.ndarray) -> Callable[[], None]:
        """Remember what these cells hold; what is given puts it back."""
        fields, n = [field[cells] for field in self.fields], self.n[cells]

        def put_back() -> None:
            for field, old in zip(self.fields, fields, strict=True):
                field[cells] = old
            self.n[cells] = n

        return put_back

    def saved_for(self, segments: Any) -> Callable[[], None]:
        """As `saved`, of the cells that events in these segments are folded into."""
        return self.saved(segments.touched(len(self.n)))

    def merge(self, due: ClosedWindows, slots: np.ndarray, keys: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The partials of windows x keys, window by window, and how many values; good until the next call."""
        return self.merging.merge(due, slots, keys)

    def merge_rows(
        self, first: np.ndarray, last: np.ndarray, key: np.ndarray, slots: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The partials of a range of slices and a key for each row, and how many values; nothing is kept."""
        out = [self.empty(i, len(first)) for i in range(len(self.fields))]
        n = np.zeros(len(first), np.int64)
        self.run(loops.merge_rows, first, last, key, slots, self.stride, self.cells, self.n, tuple(out), n)
        return out, n

    @property
    def nbytes(self) -> int:
        return int(self.n.nbytes + sum(f.nbytes for f in self.fields)) + self.merging.nbytes

    def save(self, slots: np.ndarray, keys: int) -> dict[str, np.ndarray]:
        """The cells of these slots and of the first `keys` keys, flat."""
        names = [f"f{i}" for i in range(len(self.fields))] + ["n"]
        columns = [*self.fields, self.n]
        return {
            name: column.reshape(self.capacity, self.stride, *column.shape[1:])[slots, :keys].ravel()
            for name, column in zip(names, columns, strict=True)
        }

    def load(self, arrays: dict[str, np.ndarray], slots: np.ndarray, keys: int) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives."""
        names = [f"f{i}" for i in range(len(self.fields))] + ["n"]
        for name, column in zip(names, [*self.fields, self.n], strict=True):
            target = column.reshape(self.capacity, self.stride, *column.shape[1:])
            require(arrays, name, column.dtype)
            target[slots, :keys] = arrays[name].reshape(len(slots), keys, *column.shape[1:])
        if np.any(self.n < 0):
            raise ValueError("a count is negative")
        if isinstance(self.spec, Sketch) and self.spec.sound and not self.spec.sound(*self.fields).all():
            raise ValueError(f"the sketch {self.spec.name} is not sound")


def require(arrays: dict[str, np.ndarray], name: str, dtype: Any) -> np.ndarray:
    """The array of this name and dtype; a ValueError if it is missing or of another type."""
    if name not in arrays or arrays[name].dtype != dtype:
        raise ValueError(f"array {name!r} is missing or not of type {dtype}")
    return arrays[name]


def lowered(bound: Bound, partial: list[np.ndarray], n: np.ndarray, decoders: list[Any]) -> pa.Array:
    """Partials to the answer column; `find_overflow` and its like are applied by the caller."""
    assert bound.build is not None
    if bound.lower is None:
        return bound.build(partial, n, decoders)
    return bound.build(*lower_values(bound, partial, n), decoders)


def lowering_of(bound: Bound) -> Any:
    """The loop that applies `lower` to each partial."""
    if not isinstance(bound.partial, (Scalars, Sketch)):
        raise QueryError(f"{bound.partial.name} is not lowered number by number")
    return loops.bound(loops.lower_all, giving_answers(operations_of(bound), bound))


def lower_values(
    bound: Bound, partial: list[np.ndarray], n: np.ndarray, loop: Any = None
) -> tuple[list[np.ndarray], np.ndarray]:
    """`lower` applied to each partial, by its `loop`: its outputs, and where they are defined."""
    *values, defined = [*(np.empty(len(n), DTYPES[d]) for d in bound.outputs), np.empty(len(n), np.bool_)]
    (lowering_of(bound) if loop is None else loop)(tuple(partial), n, (*values, defined))
    return values, defined
