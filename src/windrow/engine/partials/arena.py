"""An arena: one array per field of a partial, one cell per slice slot and key, and a count of values beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from windrow.aggregates.base import Field, Scalars, Sketch
from windrow.engine.arrays import fill_rows
from windrow.engine.functions.bound_kernels import Operations, operations_over
from windrow.engine.partials.loops import bound

ZERO = np.int64(0)
DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64, "b": np.bool_, "u1": np.uint8}


def identity_of(field: Field, dtype: np.dtype[Any]) -> Any:
    """A field's neutral value in its dtype; the int64 limits stand for infinity on a float measure."""
    if field.dtype == "t" and dtype.kind == "f":
        return dtype.type(np.inf if field.identity > 0 else -np.inf)
    return dtype.type(field.identity)


class Arena:
    """The columns of a scalar or sketch partial, and the loops over them."""

    def __init__(self, spec: Scalars | Sketch, columns: int, tick: np.dtype[Any], dtypes: Any = None) -> None:
        self.spec = spec
        self.columns = columns
        self.dtypes = dtypes or [np.dtype(tick if f.dtype == "t" else DTYPES[f.dtype]) for f in spec.fields]
        self.identities = [identity_of(f, d) for f, d in zip(spec.fields, self.dtypes, strict=True)]
        self.fields = [self.empty(i, 0) for i in range(len(spec.fields))]
        self.n = np.zeros(0, np.int64)
        self.capacity = self.stride = 0
        self._bound: dict[Callable[..., Any], Any] = {}
        self.timed = isinstance(spec, Scalars) and spec.timed

    def empty(self, i: int, cells: int) -> np.ndarray:
        """Cells of field `i` that hold nothing."""
        width = self.spec.fields[i].width
        shape = (cells,) if width is None else (cells, width)
        return np.full(shape, self.identities[i], self.dtypes[i])

    @cached_property
    def operations(self) -> Operations:
        """The functions of the partial, as loops over these fields call them."""
        return operations_over(self.spec, self.columns, self.dtypes, self.identities)

    @property
    def cells(self) -> tuple[np.ndarray, ...]:
        """The columns, as loops take them."""
        return tuple(self.fields)

    def run(self, loop: Callable[..., Any], *arguments: Any) -> None:
        """Run one of `loops` with these functions."""
        if loop not in self._bound:
            self._bound[loop] = bound(loop, self.operations)
        self._bound[loop](*arguments)

    def repack(self, slots: np.ndarray, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """Move to an arena of another size: slot `slots[i]` becomes slot i, with these keys only."""
        for i, old in enumerate(self.fields):
            self.fields[i] = self._moved(old, self.empty(i, capacity * stride), slots, stride, keys)
        self.n = self._moved(self.n, np.zeros(capacity * stride, np.int64), slots, stride, keys)
        self.capacity, self.stride = capacity, stride

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
        shape = self.capacity, self.stride
        for column, identity in zip(self.fields, self.identities, strict=True):
            if column.ndim == 1:
                fill_rows(column.reshape(shape), slots, identity)
            else:
                column.reshape(*shape, *column.shape[1:])[slots] = identity
        fill_rows(self.n.reshape(shape), slots, ZERO)

    @cached_property
    def cell_bytes(self) -> int:
        """Bytes of one partial."""
        fields = zip(self.dtypes, self.spec.fields, strict=True)
        return 8 + sum(d.itemsize * (f.width or 1) for d, f in fields)
