"""What an operator knows between two calls: all that a snapshot holds, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.engine.intake.projection import Projection, projection_of
from windrow.engine.metrics import Counters
from windrow.engine.results import with_selected
from windrow.measure import Measure, Point, Tick
from windrow.options import OperatorOptions
from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.triggers import When
from windrow.watermarks import Now, Watermark

if TYPE_CHECKING:
    from windrow.engine.engines import AnyEngine
    from windrow.engine.following import Following
    from windrow.engine.gate import Gate
    from windrow.engine.spanning.span_input import SpanInput


class SteadyClock:
    """A clock that stands still where the other one goes back."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        # The time that it does not go back behind.
        self.latest = 0

    def __call__(self) -> int:
        self.latest = max(self.latest, self._clock())
        return self.latest


class OperatorState:
    """The engines of a query, how far its stream has come, and rows that wait to be fetched."""

    def __init__(
        self,
        query: QuerySpec,
        settings: OperatorOptions,
        follows: Watermark | None = None,
        clock: Callable[[], int] = time_ns,
    ) -> None:
        self.query = query
        self.settings = settings
        self._projection: tuple[QuerySpec, Projection | None] | None = None
        # A watermark that follows the events, and the clock that goes on where there are none.
        self.follows, self.clock = follows, SteadyClock(clock)
        self.following: Following | None = None
        self.counters = Counters()
        self.engines: list[AnyEngine] = []
        self.schema: pa.Schema | None = None
        self.watermark: Tick | None = None
        self.highest_time: Tick | None = None
        self.lowest_time: Tick | None = None
        # A watermark that came before the first batch.
        self.early_watermark: Point | None = None
        self.span_input: SpanInput | None = None
        # Where the watermark follows the events: as the user has said it, and rows that were not fetched yet.
        self.said: Tick | None = None
        self.unfetched: list[pa.Table] = []
        # Where rows come early: how many events there were, and how far time had come, at the last look.
        self.looked_events = 0
        self.looked_to: Tick | None = None
        self.gate: Gate | None = None
        self._late: list[pa.RecordBatch] = []
        self._bad: list[pa.Table] = []

    @property
    def measure(self) -> Measure:
        """How time is counted; known once a batch was seen."""
        return self.engines[0].measure

    def fit(self, engines: list[AnyEngine], schema: pa.Schema) -> None:
        """Work with these engines, on tables of this schema."""
        spans = following = None
        if isinstance(self.query.time, Span):
            from windrow.engine.spanning.span_input import SpanInput

            spans = SpanInput(self.query, engines[0], schema)
        if self.follows is not None:
            from windrow.engine.following import Following

            by_clock = isinstance(self.query.time, Now)
            measure = engines[0].measure
            following = Following(self.follows, measure, schema, self.clock, by_clock=by_clock)
        with_selected(self.query.select, engines[0].no_rows)
        # What cannot be is refused by now: a later batch begins anew.
        self.gate = self._gate_of(engines[0].result_schema)
        self.engines, self.schema, self.span_input, self.following = engines, schema, spans, following

    def open_gate(self) -> None:
        """Know no windows that were given out early, if a condition says which are."""
        self.gate = self._gate_of(self.engines[0].result_schema)

    def _gate_of(self, results: pa.Schema) -> Gate | None:
        trigger = self.settings.trigger
        if not isinstance(trigger, When):
            return None
        from windrow.engine.gate import Gate

        return Gate(trigger, results)

    def late(self) -> pa.Table:
        """The events that came too late for all of their windows, since the last call."""
        rows = self.set_aside()["late"]
        self._late = []
        return self._as_they_came(rows)

    def bad(self) -> pa.Table:
        """The rows that were diverted as bad, with `bad_reason`, since the last call."""
        rows = self.set_aside()["bad"]
        self._bad = []
        return self._as_they_came(rows)

    @property
    def projection(self) -> Projection | None:
        """What is computed of events before an engine sees them."""
        if self._projection is None or self._projection[0] is not self.query:
            self._projection = self.query, projection_of(self.query)
        return self._projection[1]

    def _as_they_came(self, rows: pa.Table) -> pa.Table:
        return rows if self.projection is None else self.projection.without(rows)

    def _together(self, tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
        """Rows of several batches, which may differ in columns that the query does not read."""
        return pa.concat_tables(tables or [schema.empty_table()], promote_options="permissive")

    def set_aside(self) -> dict[str, pa.Table]:
        """Late and bad rows that were not fetched yet, with all columns, also those that were computed."""
        schema = self.schema or pa.schema([])
        late = [pa.Table.from_batches([batch]) for batch in self._late]
        reasons = schema.append(pa.field("bad_reason", pa.string()))
        return {"late": self._together(late, schema), "bad": self._together(self._bad, reasons)}

    def put_aside(self, late: pa.Table, bad: pa.Table) -> None:
        """Keep these rows until `late` and `bad` are called."""
        self._late = late.to_batches()
        self._bad = [bad] if bad.num_rows else []
