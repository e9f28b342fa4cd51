"""An operator with one input and a window on it: the base of most operators, and of the user's own.

To write one of your own, subclass `Windowed`, and define a method for each window event that you want, named
after it:

    class Largest(Windowed):
        def trigger(self, event):
            self.emit(event.content.sort_by("x")[-1:])

These events reach the operator, and no others cost anything. `emit` submits rows, `punctuate` ends a window
downstream. Policies, partitions, time, punctuations and snapshots are the window's affair (Gedik 2013,
sections 4.1.3 and 5). What the operator keeps in attributes of its own is part of snapshots if it is named:

    class Total(Windowed):
        state_fields = ("total",)
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import whole
from windrow.errors import QueryError, StateError
from windrow.policies.clock import Clock, weakly
from windrow.policies.events import NAMES
from windrow.policies.operators.base import Operator, Spec
from windrow.policies.ports import GENERATING, WINDOW_BOUND, Input, Model, Output, Punctuated, any_window
from windrow.policies.spec import Punct, Tumbling
from windrow.policies.window import SlidingWindow, TumblingWindow, Window

AnyWindow = TumblingWindow | SlidingWindow
# At most this many punctuations are processed one by one.
FEW_MARKS = 2


class Windowed(Operator):
    """An operator with one input and a window on it, whose events call the methods of their names.

    A subclass of `Windowed` that names no `model` takes every window, and generates punctuations.
    """

    model = Model((Input("in", WINDOW_BOUND, any_window),), (Output("out", GENERATING),))
    _internals: ClassVar[tuple[str, ...]] = ("_clock", "_partial_windows", "_schema", "_window", "_fitting")

    def __init__(
        self,
        window: Spec | str,
        *,
        partition_by: Any = None,
        clock: Clock | None = None,
        partial_windows: bool = True,
    ) -> None:
        super().__init__((window,), (partition_by,))
        self._clock = clock
        self._partial_windows = partial_windows
        self._schema: pa.Schema | None = None
        self._window: AnyWindow | None = None
        self._fitting = threading.RLock()

    @property
    def spec(self) -> Spec:
        """What the window is."""
        assert self.windows[0] is not None
        return self.windows[0]

    @property
    def window(self) -> AnyWindow:
        """The window; there is one from the first rows on."""
        if self._window is None:
            raise StateError("the operator has no window before the first rows have come, with their types")
        return self._window

    def open_windows(self) -> list[Window]:
        return [] if self._window is None else [self._window]

    # -- what subclasses say ---------------------------------------------------------------------

    def fitted(self, schema: pa.Schema) -> None:
        """The types of the input are known: refuse what does not fit, and get ready."""

    def options(self, schema: pa.Schema) -> dict[str, Any]:
        """What to tell the window besides its policies: the `columns` it keeps, what it computes."""
        return {}

    def recorded(self) -> tuple[str, ...]:
        """The events that `played` gets, all of a call at once."""
        return ()

    def played(self, tape: Any, batch: pa.RecordBatch | None) -> None:
        """What happened in one call, of the events that are `recorded`; `batch` is what was inserted, if
        something was.
        """

    takes_whole_windows = False

    def whole_windows(self, rows: pa.Table, low: np.ndarray, high: np.ndarray) -> None:
        """Punctuations have made windows of these ranges of rows, which no window has seen; partitions are
        all in one.
        """
        raise NotImplementedError

    def refuse(self, batch: pa.RecordBatch) -> None:
        """An error if these rows cannot be worked on; the window has not seen them yet."""

    def window_made(self) -> None:
        """The window is there, empty or restored."""

    # -- the stream ------------------------------------------------------------------------------

    def process(self, rows: Any, port: int = 0) -> list[Punctuated]:
        if port != 0:
            raise QueryError(f"{type(self).__name__} has one input, number 0, and not {port!r}")
        stretch = Punctuated.of(rows)
        with self._fitting:
            self._fit(stretch.table.schema)
        # Ranges on a tape hold until the window is next called, by a timer or by another thread too.
        with self.window.locked():
            return self._process(stretch)

    def _process(self, stretch: Punctuated) -> list[Punctuated]:
        if isinstance(self.spec.eviction, Punct):
            self._punctuated(stretch)
        else:
            self._insert(stretch.table)
        return self.poll()

    def _punctuated(self, stretch: Punctuated) -> None:
        """Windows between punctuations; those that begin and end in one stretch need not go through the
        window, if there are many.
        """
        batch = whole(stretch.table)
        self.window.check(batch)
        self.refuse(batch)
        marks = np.unique(stretch.marks)
        if len(marks) > FEW_MARKS and self.takes_whole_windows and self.spec.partition_eviction is None:
            first, last = int(marks[0]), int(marks[-1])
            self._insert(stretch.table.slice(0, first))
            self._flush()
            self.whole_windows(
                stretch.table.slice(first, last - first), marks[:-1] - first, marks[1:] - first
            )
            self._insert(stretch.table.slice(last))
            return
        for part, ends in stretch.parts():
            self._insert(part)
            if ends:
                self._flush()

    def _flush(self) -> None:
        self._played_alone(self.window.punctuate())

    def _insert(self, table: pa.Table) -> None:
        if table.num_rows:
            batch = whole(table)
            self.refuse(batch)
            tape = self.window.insert(batch)
            try:
                self.played(tape, batch)
            except BaseException:
                self.window.take_back()
                self._played_alone(tape.of_clock())
                raise

    def _played_alone(self, tape: Any) -> None:
        self.played(tape, None)

    def _fit(self, schema: pa.Schema) -> None:
        schema = schema.remove_metadata()
        if self._schema is None:
            self._begin(schema, None)
            return
        if schema.names != self._schema.names:
            raise QueryError(
                f"the columns were {', '.join(self._schema.names)} before, and now are {', '.join(schema.names)}"
            )
        for old, new in zip(self._schema, schema, strict=True):
            if old.type != new.type:
                raise QueryError(f"column {old.name!r} was {old.type} before, and now is {new.type}")

    def _begin(self, schema: pa.Schema, state: bytes | None) -> None:
        """Make the window, or restore it from a snapshot; it records the events that the operator reads."""
        self.fitted(schema)
        kind = TumblingWindow if isinstance(self.spec, Tumbling) else SlidingWindow
        options: dict[str, Any] = {"partition_by": list(self.partition_by[0]) or None, "clock": self._clock}
        options |= {"partial_windows": self._partial_windows, **self.options(schema)}
        window = kind(self.spec, schema, **options)
        for name in NAMES:
            handler = getattr(self, name, None)
            if handler is not None and name in window.events:
                window.on(name, weakly(handler))
        if self.recorded():
            window.record(*self.recorded())
            window.on_tape(weakly(self._played_alone))
        if state is not None:
            window.restore(state)
        if self._window is not None:
            self._window.close()
        self._window, self._schema = window, schema
        self.window_made()

    # -- state -----------------------------------------------------------------------------------

    def _locked(self) -> AbstractContextManager[Any]:
        return self._fitting if self._window is None else self._window.locked()

    def _save(self) -> dict[str, bytes]:
        if self._schema is None:
            return {}
        parts = {"window": self.window.snapshot(), "schema": self._schema.serialize().to_pybytes()}
        return parts | self.state()

    def _load(self, parts: dict[str, bytes]) -> None:
        if not parts:
            return
        if "window" not in parts or "schema" not in parts:
            raise StateError("the snapshot lacks its window, or the types of its columns")
        self._begin(pa.ipc.read_schema(pa.py_buffer(parts.pop("schema"))), parts.pop("window"))
        self.load(parts)

    def state(self) -> dict[str, bytes]:
        """What the operator holds besides its window."""
        return {}

    def load(self, parts: dict[str, bytes]) -> None:
        """The opposite of `state`; the window is there."""
