"""What all operators share: ports, the windows on them, and what was given out.

An operator takes stretches of a stream on its input ports and gives out stretches on its output ports. What timers make it
give out waits until somebody fetches it: every call of `process`, `poll` or `finish` hands over all there is.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.policies.operators.state import framed, unframed
from windrow.policies.options import column_names
from windrow.policies.ports import Model, Punctuated, joined
from windrow.policies.spec import Sliding, Tumbling
from windrow.policies.text import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.policies.window import Window

Spec = Tumbling | Sliding


class Operator:
    """The base of all operators: a `model` of its ports, a window (or None) for each input, and what it has given out."""

    model: Model = Model()
    _made_of: tuple[tuple[Any, ...], dict[str, Any]]

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
        self._given: list[list[Punctuated]] = [[] for _ in self.model.outputs]
        self._given_lock = threading.Lock()
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
        """Take in rows, with punctuations if they are `Punctuated`; what is given out on each output port."""
        raise NotImplementedError

    def finish(self) -> list[Punctuated]:
        """The stream is over: what is given out because of that."""
        return self.poll()

    def poll(self) -> list[Punctuated]:
        """What was given out since the last call, by timers too; a stretch for each output port."""
        with self._given_lock:
            given = self._given
            self._given = [[] for _ in self.model.outputs]
        return [joined(g) if g else self._nothing(port) for port, g in enumerate(given)]

    def _nothing(self, port: int) -> Punctuated:
        return Punctuated((self._schemas[port] or pa.schema([])).empty_table())

    def emit(
        self, rows: Any, *, port: int = 0, punctuated: bool = False, marks: np.ndarray | None = None
    ) -> None:
        """Give out rows: anything that makes a table; `punctuated` ends them with a punctuation."""
        if isinstance(rows, (pa.Table, pa.RecordBatch)):
            stretch = Punctuated.of(rows)
        else:
            stretch = Punctuated.of(pa.Table.from_pylist(rows) if isinstance(rows, list) else pa.table(rows))
        if marks is not None:
            stretch = Punctuated(stretch.table, marks)
        elif punctuated:
            stretch = Punctuated(stretch.table, np.array([len(stretch)]))
        self._schemas[port] = stretch.table.schema
        with self._given_lock:
            self._given[port].append(stretch)

    def punctuate(self, *, port: int = 0) -> None:
        """Give out a punctuation."""
        with self._given_lock:
            given = self._given[port]
            if given:
                last = given[-1]
                given[-1] = Punctuated(last.table, np.append(last.marks, len(last)))
                return
        self.emit(self._nothing(port).table, port=port, punctuated=True)

    # -- elsewhere -------------------------------------------------------------------------------

    def on_spark(
        self,
        *frames: DataFrame,
        time: str | Sequence[str] | None = None,
        punctuation: str | None = None,
        side_rows: bool = False,
        buckets: int = 16,
        watermark: str | None = None,
        metrics: str = "windrow",
    ) -> DataFrame:
        """The same operator on Spark: a DataFrame for each input, batch or streaming, and one comes out.

        Rows come to the windows in the order of `time` (a column, or one for each input). In a stream they wait
        until the watermark, on that column or on the one that `watermark` names, has passed them; late ones
        are counted in the observed metrics named `metrics`, and with `side_rows` are rows of the result, in the
        columns `side`, `side_reason` and `side_row`. Windows that go by the clock take no `time`: rows enter as
        they come, and timers do the rest. `punctuation` is a boolean column that is true in rows that are
        punctuations. Partitions are spread over `buckets`.

        >>> from windrow import policies as wp
        >>> unique = wp.Deduplicate("sliding, count(1000), count(1), partitioned", "id", partition_by="user")
        >>> def once(events):
        ...     return events.transform(unique.on_spark, time="ts")
        """
        from windrow.spark.policies.frame import Options, on_spark

        options = Options(
            time=time,
            punctuation=punctuation,
            side_rows=side_rows,
            buckets=buckets,
            watermark=watermark,
            metrics=metrics,
        )
        return on_spark(self, frames, options)

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
        """The state as bytes; what was given out and not fetched is not part of it."""
        return framed(self.described(), {})

    def restore(self, state: bytes) -> None:
        """Go on from a snapshot of an equal operator, in place of what this one holds."""
        unframed(self.described(), state)

    def described(self) -> str:
        """What the operator does, as text: a snapshot fits operators of the same text."""
        windows = [str(window) for window in self.windows]
        return repr((type(self).__qualname__, windows, self.partition_by))
