"""What all operators share: ports, the windows on them, and what was emitted.

An operator takes stretches of a stream on its input ports and emits stretches on its output ports. What it emits because of a
timer waits to be fetched: every call of `process`, `poll` or `finish` returns all there is.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from windrow.engine.snapshot.parts import stream_of, table_of
from windrow.errors import QueryError, StateError
from windrow.policies.operators import fields
from windrow.policies.operators.state import framed, unframed
from windrow.policies.options import column_names
from windrow.policies.ports import Model, Punctuated, joined
from windrow.policies.spec import Sliding, Tumbling
from windrow.policies.text import parse

if TYPE_CHECKING:
    from windrow.policies.window import Window

Spec = Tumbling | Sliding


class _Kind(ABCMeta):
    """Notes what an operator's attributes are when it has just been made: what changes later on is state."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        operator = super().__call__(*args, **options)
        operator._at_first = fields.traces(operator)
        return operator


class Operator(metaclass=_Kind):
    """The base of all operators: a `model` of its ports, a window (or None) for each input, and what it has emitted.

    `state_fields` of a class names the attributes that its snapshots save, and `constant_fields` those that never
    change; a snapshot is refused if another one has changed. Both are added to those of the base classes.
    """

    model: Model = Model()
    state_fields: ClassVar[tuple[str, ...]] = ()
    constant_fields: ClassVar[tuple[str, ...]] = ()
    _made_of: tuple[tuple[Any, ...], dict[str, Any]]
    _at_first: dict[str, Any]
    # The attributes that are windrow's, of each class.
    _internals: ClassVar[tuple[str, ...]] = (
        *("model", "windows", "partition_by", "_made_of", "_at_first"),
        *("_emitted", "_emitted_lock", "_schemas"),
    )

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember what the operator is made of: others like it are made where it runs on Spark."""
        operator = super().__new__(cls)
        operator._made_of = args, options
        return operator

    def __init__(
        self, windows: Sequence[Spec | str | None] = (None,), partition_by: Sequence[Any] = ((),)
    ) -> None:
        self.windows: tuple[Spec | None, ...] = tuple(
            parse(window) if isinstance(window, str) else window for window in windows
        )
        for window in self.windows:
            if window is not None and not isinstance(window, (Tumbling, Sliding)):
                raise QueryError(f"a window is a text, or made by tumbling or sliding; not {window!r}")
        self.partition_by: tuple[tuple[str, ...], ...] = tuple(
            column_names(by, "partition_by") for by in partition_by
        )
        self._emitted: list[list[Punctuated]] = [[] for _ in self.model.outputs]
        self._emitted_lock = threading.Lock()
        self._schemas: list[pa.Schema | None] = [None for _ in self.model.outputs]
        for place in range(len(self.windows)):
            problem = self.refusal(place)
            if problem is not None:
                raise QueryError(problem)

    def refusal(self, place: int) -> str | None:
        """Why the window of this input cannot be, or None: what the operator model and `partition_by` say."""
        port, window, by = self.model.inputs[place], self.windows[place], self.partition_by[place]
        name = type(self).__name__
        if port.refusal is None:
            return None if window is None else f"{name} takes no window on its input {port.name!r}"
        if window is None:
            return f"{name} needs a window on its input {port.name!r}"
        if window.partitioned and not by:
            return f"the window '{window}' is partitioned: say by which columns with partition_by"
        if by and not window.partitioned:
            return f"partition_by names {', '.join(by)}, and the window '{window}' is not partitioned"
        problem = port.refusal(window)
        return None if problem is None else f"{name} does not take the window '{window}': {problem}"

    # -- the stream ------------------------------------------------------------------------------

    def process(self, rows: Any, port: int = 0) -> list[Punctuated]:
        """Take in rows, with punctuations if they are `Punctuated`; what is emitted on each output port."""
        raise NotImplementedError

    def finish(self) -> list[Punctuated]:
        """The stream has ended: what is emitted because of that."""
        return self.poll()

    def poll(self) -> list[Punctuated]:
        """What was emitted since the last call, by timers too; a stretch for each output port."""
        with self._emitted_lock:
            emitted = self._emitted
            self._emitted = [[] for _ in self.model.outputs]
        return [joined(g) if g else self._nothing(port) for port, g in enumerate(emitted)]

    def _nothing(self, port: int) -> Punctuated:
        return Punctuated((self._schemas[port] or pa.schema([])).empty_table())

    def emit(
        self, rows: Any, *, port: int = 0, punctuated: bool = False, marks: np.ndarray | None = None
    ) -> None:
        """Emit rows: anything that makes a table; `punctuated` ends them with a punctuation."""
        stretch = Punctuated.of(rows)
        if marks is not None:
            stretch = Punctuated(stretch.table, marks)
        elif punctuated:
            stretch = Punctuated(stretch.table, np.array([len(stretch)]))
        self._schemas[port] = stretch.table.schema
        with self._emitted_lock:
            self._emitted[port].append(stretch)

    def punctuate(self, *, port: int = 0) -> None:
        """Emit a punctuation."""
        with self._emitted_lock:
            emitted = self._emitted[port]
            if emitted:
                last = emitted[-1]
                emitted[-1] = Punctuated(last.table, np.append(last.marks, len(last)))
                return
        self.emit(self._nothing(port).table, port=port, punctuated=True)

    # -- elsewhere -------------------------------------------------------------------------------

    @property
    def recipe(self) -> tuple[type[Self], tuple[Any, ...], dict[str, Any]]:
        """What makes another operator like this one: a class and arguments, without the clock."""
        args, options = self._made_of
        return type(self), args, {name: value for name, value in options.items() if name != "clock"}

    def result_schema(self, *inputs: pa.Schema) -> pa.Schema:
        """The columns that come out on the first port, for inputs with these; nothing has come in before."""
        for port, schema in enumerate(inputs):
            self.process(schema.empty_table(), port)
        known = self._schemas[0]
        if known is None:
            raise QueryError(f"{type(self).__name__} does not tell its columns before there are rows")
        return known

    def open_windows(self) -> list[Window]:
        """The windows that there are by now."""
        return []

    # -- state -----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The state as bytes: windows, `state_fields`, and what was emitted and not fetched."""
        with self._locked():
            parts = self._save() | fields.save(self)
            with self._emitted_lock:
                for port, emitted in enumerate(self._emitted):
                    stretch = joined(emitted) if emitted else self._nothing(port)
                    parts[f"given {port}"] = stream_of(stretch.table)
                    parts[f"marks {port}"] = stretch.marks.tobytes()
        return framed(self.described(), parts)

    def restore(self, state: bytes) -> None:
        """Go on from a snapshot of an equal operator, in place of what this one holds."""
        parts = unframed(self.described(), state)
        with self._locked():
            values = fields.read(self, parts)
            emitted = [_unfetched(parts, port) for port in range(len(self.model.outputs))]
            self._load(parts)
            fields.put(self, values)
            with self._emitted_lock:
                self._emitted = [
                    [stretch] if len(stretch) or len(stretch.marks) else [] for stretch in emitted
                ]
                for port, stretch in enumerate(emitted):
                    self._schemas[port] = (
                        stretch.table.schema if stretch.table.schema else self._schemas[port]
                    )

    def _locked(self) -> AbstractContextManager[Any]:
        """Keep timers and other threads away."""
        return nullcontext()

    def _save(self) -> dict[str, bytes]:
        """The parts of a snapshot that are windrow's."""
        return {}

    def _load(self, parts: dict[str, bytes]) -> None:
        """The opposite of `_save`."""

    def close(self) -> None:
        """Take the operator off its clock: nothing happens by itself any more, and the clock's thread can end."""
        for window in self.open_windows():
            window.close()

    def described(self) -> str:
        """What the operator does, as text: a snapshot fits operators of the same text."""
        windows = [str(window) for window in self.windows]
        return repr((type(self).__qualname__, windows, self.partition_by))


def _unfetched(parts: dict[str, bytes], port: int) -> Punctuated:
    """What a snapshot has of rows that were not fetched from an output."""
    if f"given {port}" not in parts:
        return Punctuated(pa.schema([]).empty_table())
    try:
        marks = np.frombuffer(parts.pop(f"marks {port}"), np.int64)
        return Punctuated.of(table_of(parts.pop(f"given {port}")), marks)
    except (KeyError, ValueError, QueryError) as problem:
        raise StateError(f"the rows of output {port} in the snapshot are not whole: {problem}") from problem
