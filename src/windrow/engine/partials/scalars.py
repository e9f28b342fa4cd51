"""Partials of a few numbers: one array per field, one cell per slice slot and key."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Field, Scalars, Sketch
from windrow.engine import templates
from windrow.engine.arrays import fill_rows
from windrow.engine.compiler import kernel
from windrow.engine.cutting import Cells, Runs
from windrow.engine.integers import python_numbers
from windrow.engine.partials.merging import Merging
from windrow.engine.windows import ClosedWindows
from windrow.errors import QueryError

DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64, "b": np.bool_, "u1": np.uint8}


def identity_of(field: Field, dtype: np.dtype[Any]) -> Any:
    """A field's neutral value in its dtype; the int64 limits stand for infinity on a float measure."""
    if field.dtype == "t" and dtype.kind == "f":
        return dtype.type(np.inf if field.identity > 0 else -np.inf)
    return dtype.type(field.identity)


class Numbers:
    """The columns of a scalar or sketch partial, and the loops over them."""

    def __init__(self, spec: Scalars | Sketch, columns: int, tick: np.dtype[Any], dtypes: Any = None) -> None:
        self.spec = spec
        self.columns = columns
        self.dtypes = dtypes or [np.dtype(tick if f.dtype == "t" else DTYPES[f.dtype]) for f in spec.fields]
        self.identities = [identity_of(f, d) for f, d in zip(spec.fields, self.dtypes, strict=True)]
        self.fields = [self.empty(i, 0) for i in range(len(spec.fields))]
        self.n = np.zeros(0, np.int64)
        self.capacity = self.stride = 0
        self._loops: dict[str, Any] = {}
        self.merging = Merging(self)

    @property
    def timed(self) -> bool:
        return isinstance(self.spec, Scalars) and self.spec.timed

    def empty(self, i: int, cells: int) -> np.ndarray:
        """Cells of field `i` that hold nothing."""
        width = self.spec.fields[i].width
        shape = (cells,) if width is None else (cells, width)
        return np.full(shape, self.identities[i], self.dtypes[i])

    def loop(self, name: str) -> Any:
        """A loop of `templates` over these fields."""
        if name not in self._loops:
            self._loops[name] = self._compiled(name)
        return self._loops[name]

    def _compiled(self, name: str) -> Any:
        spec = self.spec
        if isinstance(spec, Sketch):
            source = templates.loops(self.columns, len(spec.fields), False, False, False, True, sketch=True)
            return kernel(source, name, {"insert": spec.insert, "absorb": spec.absorb})
        shape = spec.timed, spec.fold is not None, spec.bare, spec.lift is not None
        source = templates.loops(self.columns, len(spec.fields), *shape)
        needs = {"fold_runs": ("lift", "fold"), "fold_cells": ("lift",), "merge_prefix": ("invert",)}
        used: dict[str, Callable[..., Any] | None] = {"combine": spec.combine}
        used |= {role: getattr(spec, role) for role in needs.get(name, ())}
        return kernel(source, name, used, user=spec.own)

    def repack(self, slots: np.ndarray, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """Move to an arena of another size: slot `slots[i]` becomes slot i, with these keys only."""
        for i, old in enumerate(self.fields):
            self.fields[i] = self._moved(old, self.empty(i, capacity * stride), slots, stride, keys)
        self.n = self._moved(self.n, np.zeros(capacity * stride, np.int64), slots, stride, keys)
        self.capacity, self.stride = capacity, stride
        self.merging.release()

    def _moved(
        self, old: np.ndarray, new: np.ndarray, slots: np.ndarray, stride: int, keys: np.ndarray | slice
    ) -> np.ndarray:
        if len(slots):
            tail = old.shape[1:]
            kept = old.reshape(self.capacity, self.stride, *tail)[slots][:, keys]
            new.reshape(-1, stride, *tail)[: len(slots), : kept.shape[1]] = kept
        return new

    def reset(self, slots: np.ndarray) -> None:
        """Empty these slots."""
        for column, identity in zip([*self.fields, self.n], [*self.identities, 0], strict=True):
            if column.ndim == 1:
                value = column.dtype.type(identity)
                fill_rows(column.reshape(self.capacity, self.stride), slots, value)
            else:
                column.reshape(self.capacity, self.stride, *column.shape[1:])[slots] = identity

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
        inputs = inputs if self.spec.fields else []  # a count reads none
        extra = time if self.timed else ()
        if hasattr(getattr(self.spec, "lift", None), "is_interpreted"):
            inputs = [python_numbers(values) for values in inputs]  # type: ignore[misc]
        if isinstance(segments, Runs):
            self.loop("fold_runs")(
                segments.low, segments.high, segments.cell, *inputs, *extra, *self.fields, self.n
            )
        else:
            self.loop("fold_cells")(segments.cell, *inputs, *extra, *self.fields, self.n)

    def absorb(self, into: np.ndarray, taken: np.ndarray, keys: int) -> None:
        """Join slots `taken` onto slots `into`, in the order given."""
        self.loop("absorb_slots")(into, taken, self.stride, keys, *self.fields, self.n)

    def copy(self, into: np.ndarray, source: np.ndarray) -> None:
        """Let slots `into` hold what slots `source` do, in an arena of one key."""
        for column in (*self.fields, self.n):
            column[into] = column[source]

    def join(self, cells: np.ndarray, fields: list[np.ndarray], n: np.ndarray) -> None:
        """Join partials of elsewhere, and the counts of their values, onto these cells; -1 is no cell."""
        self.loop("absorb_rows")(cells, *fields, n, *self.fields, self.n)

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

    @property
    def nbytes(self) -> int:
        return int(self.n.nbytes + sum(f.nbytes for f in self.fields)) + self.merging.nbytes

    @cached_property
    def cell_bytes(self) -> int:
        """Bytes of one partial."""
        fields = zip(self.dtypes, self.spec.fields, strict=True)
        return 8 + sum(d.itemsize * (f.width or 1) for d, f in fields)

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


def lower_values(
    bound: Bound, partial: list[np.ndarray], n: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """`lower` applied to each partial: its outputs, and where they are defined."""
    spec = bound.partial
    if not isinstance(spec, (Scalars, Sketch)):
        raise QueryError(f"{spec.name} is not lowered number by number")
    values = [np.empty(len(n), DTYPES[d]) for d in bound.outputs]
    defined = np.empty(len(n), np.bool_)
    user = isinstance(spec, Scalars) and spec.own
    bare = isinstance(spec, Scalars) and spec.bare
    source = templates.lowering(
        len(spec.fields), len(values), user=user, bare=bare, sketch=isinstance(spec, Sketch)
    )
    kernel(source, "lower_all", {"lower": bound.lower}, user=user)(*partial, n, *values, defined)
    return values, defined
