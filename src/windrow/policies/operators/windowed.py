"""An operator with one input and a window on it: the base of most operators, and of the user's own.

To write one of your own, subclass `Windowed`, and define a method for each window event that you want, named
after it:

    class Largest(Windowed):
        def trigger(self, event):
            self.emit(event.content.sort_by("x")[-1:])

The operator is told of these events and pays for no others. `emit` submits rows, `punctuate` ends a window
downstream. Policies, partitions, time, punctuations and snapshots are the window's affair (Gedik 2013,
sections 4.1.3 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.columns import whole
from windrow.errors import QueryError, StateError
from windrow.policies.clock import Clock
from windrow.policies.events import NAMES
from windrow.policies.operators.base import Operator, Spec
from windrow.policies.operators.state import framed, unframed
from windrow.policies.ports import GENERATING, WINDOW_BOUND, Input, Model, Output, Punctuated, any_window
from windrow.policies.spec import Punct, Tumbling
from windrow.policies.window import SlidingWindow, TumblingWindow, Window

AnyWindow = TumblingWindow | SlidingWindow
# So few punctuations are dealt with one by one.
FEW_MARKS = 2


class Windowed(Operator):
    """An operator with one input and a window on it, which tells what happens to the methods named after
    events.

    A subclass of `Windowed` that names no `model` takes every window, and generates punctuations.
    """

    model = Model((Input("in", WINDOW_BOUND, any_window),), (Output("out", GENERATING),))

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

    @property
    def spec(self) -> Spec:
        """What the window is."""
        assert self.windows[0] is not None
        return self.windows[0]

    @property
    def window(self) -> AnyWindow:
        """The window; there is one from the first rows on."""
        if self._window is None:
            raise StateError("the operator has no window before the first rows have told it their types")
        return self._window

    def open_windows(self) -> list[Window]:
        """See `Operator`."""
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
        """See `Operator`."""
        if port != 0:
            raise QueryError(f"{type(self).__name__} has one input, number 0, and not {port!r}")
        stretch = Punctuated.of(rows)
        self._fit(stretch.table.schema)
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
        with self.window.locked():
            self.played(self.window.punctuate(), None)

    def _insert(self, table: pa.Table) -> None:
        if table.num_rows:
            batch = whole(table)
            self.refuse(batch)
            # Ranges on the tape hold until the window is next called, by a timer too.
            with self.window.locked():
                tape = self.window.insert(batch)
                try:
                    self.played(tape, batch)
                except BaseException:
                    self.window.take_back()
                    self.played(tape.of_clock(), None)
                    raise

    def _fit(self, schema: pa.Schema) -> None:
        schema = schema.remove_metadata()
        if self._schema is None:
            self._begin(schema, None)
        elif schema != self._schema:
            self._require_same(schema)

    def _require_same(self, schema: pa.Schema) -> None:
        assert self._schema is not None
        if schema.names != self._schema.names:
            raise QueryError(
                f"the columns were {', '.join(self._schema.names)} before, and now are {', '.join(schema.names)}"
            )
        for old, new in zip(self._schema, schema, strict=True):
            if old.type != new.type:
                raise QueryError(f"column {old.name!r} was {old.type} before, and now is {new.type}")

    def _options(self, schema: pa.Schema) -> dict[str, Any]:
        return {
            "partition_by": list(self.partition_by[0]) or None,
            "clock": self._clock,
            "partial_windows": self._partial_windows,
            **self.options(schema),
        }

    @property
    def _kind(self) -> type[TumblingWindow] | type[SlidingWindow]:
        return TumblingWindow if isinstance(self.spec, Tumbling) else SlidingWindow

    def _begin(self, schema: pa.Schema, state: bytes | None) -> None:
        """Make the window, or one that goes on from a snapshot; it is asked for what the operator wants, and
        for no more.
        """
        self.fitted(schema)
        window = self._kind(self.spec, schema, **self._options(schema))
        for name in NAMES:
            handler: Callable[..., Any] | None = getattr(self, name, None)
            if handler is not None and name in window.events:
                window.on(name, handler)
        if self.recorded():
            window.record(*self.recorded())
            window.on_tape(lambda tape: self.played(tape, None))
        if state is not None:
            window.restore(state)
        self._window, self._schema = window, schema
        self.window_made()

    # -- state -----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """See `Operator`."""
        if self._schema is None:
            return framed(self.described(), {})
        with self.window.locked():
            parts = {"window": self.window.snapshot(), "schema": self._schema.serialize().to_pybytes()}
            return framed(self.described(), parts | self.state())

    def restore(self, state: bytes) -> None:
        """See `Operator`."""
        parts = unframed(self.described(), state)
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
