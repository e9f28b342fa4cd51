"""What is cut, kept and merged for a query: decided once, run by the engine and printed by `explain`.

    Plan                query and options
      Part  aligned     windows of time: all keys are cut at the same instants; span events have a carry-over, or are cut in pieces
      Part  sessions    sessions and snapshot windows: runs of slices for each key
      Part  ordered     windows that depend on the order of events

A part is the windows of one kind, which share slices, and every decision about what they keep.

Windows that come and go while an operator runs change the parts, so that an operator always runs, and explains, its current
plan. Windows of different kinds do not share slices, on purpose: cuts of one kind that are finer than a key's events would
destroy the runs of another, and apart no kind holds the others back or is stricter than they are about late events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Multiset, Scalars, Sequence, Sketch, guessed
from windrow.aggregates.shares import SHARE, of_pieces
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.options import OperatorOptions
from windrow.planner.window_set import WindowSet
from windrow.schema import require_columns
from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.windows.base import Window


def keeps_events(partial: Scalars | Sketch | Multiset | Sequence) -> bool:
    """Whether an aggregate is computed from single events, in order, instead of partials."""
    return isinstance(partial, Sequence) or (isinstance(partial, Scalars) and partial.ordered)


def can_carry_over(partial: Scalars | Sketch | Multiset | Sequence) -> bool:
    """Whether what goes on across the start of a slice can be partials of a few numbers."""
    return isinstance(partial, Scalars) and not partial.ordered


@dataclass(frozen=True)
class Part:
    """Windows of one kind, which share slices; `query` has these windows alone, and `schema` is None before a table was seen."""

    kind: str
    query: QuerySpec
    schema: pa.Schema | None
    options: OperatorOptions

    def with_windows(self, windows: Mapping[str, Window]) -> Part:
        """The same kind of state for these windows."""
        return replace(self, query=replace(self.query, windows=MappingProxyType(dict(windows))))

    def with_aggregates(self, aggregates: Mapping[str, Aggregate]) -> Part:
        """The same windows with these aggregates."""
        return replace(self, query=replace(self.query, aggregates=MappingProxyType(dict(aggregates))))

    @property
    def span(self) -> Span | None:
        """How events last, where they do."""
        time = self.query.time
        return time if isinstance(time, Span) and not time.is_point else None

    @property
    def has_spans(self) -> bool:
        """Whether windows of time hold span events, which then go on across the starts of slices."""
        return self.kind == "aligned" and self.span is not None

    @property
    def is_prorated(self) -> bool:
        """Whether windows get shares of events, which are then cut into pieces."""
        return self.span is not None and self.span.contributes == "prorated"

    @property
    def has_carry_over(self) -> bool:
        """Whether partials of what goes on are kept beside those of what begins."""
        return self.has_spans and not self.is_prorated

    def keeps_events(self, partial: Scalars | Sketch | Multiset | Sequence) -> bool:
        """Whether an aggregate is computed from single events instead of partials."""
        return not can_carry_over(partial) if self.has_carry_over else keeps_events(partial)

    @property
    def passes_up(self) -> bool:
        """Whether sessions of static gaps are made of those of the next smaller gap."""
        static = sum(window.gap_column is None for window in self.query.windows.values())
        return self.kind == "sessions" and self.options.mode == "append" and static > 1 and self.span is None

    def computed(self, name: str, aggregate: Aggregate) -> Aggregate:
        """What is computed for an aggregate of the query."""
        return of_pieces(name, aggregate) if self.is_prorated else aggregate

    @property
    def derived(self) -> tuple[pa.Field, ...]:
        """Columns that the engine makes of those of the table."""
        return (pa.field(SHARE, pa.float64()),) if self.is_prorated else ()

    def bounds(self) -> Iterator[tuple[str, Aggregate, Bound | None]]:
        """Each aggregate, its name, and what is computed for it; None if that depends on types that are not known."""
        schema = None if self.schema is None else pa.schema([*self.schema, *self.derived])
        for name, aggregate in self.query.aggregates.items():
            computed = self.computed(name, aggregate)
            if schema is None:
                bound = guessed(computed)
                # What a function of the user's own returns depends on the types of its arguments.
                own = bound is not None and isinstance(bound.partial, Scalars) and bound.partial.own
                yield name, aggregate, None if own and self.has_carry_over else bound
            else:
                yield name, aggregate, computed.bind(tuple(schema.field(c).type for c in computed.columns))


@dataclass(frozen=True)
class Plan:
    """A query in parts, each with windows of one kind."""

    query: QuerySpec
    schema: pa.Schema | None
    options: OperatorOptions
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, query: QuerySpec, schema: pa.Schema | None, options: OperatorOptions) -> Plan:
        """The plan with which an operator begins."""
        groups: dict[str, dict[str, Window]] = {}
        for name, window in query.windows.items():
            groups.setdefault(window.layout, {})[name] = window
        parts = (
            Part(kind, replace(query, windows=MappingProxyType(windows)), schema, options)
            for kind, windows in groups.items()
        )
        return cls(query, schema, options, tuple(parts))


def placed(query: QuerySpec, schema: pa.Schema | None) -> WindowSet | None:
    """The windows in ticks: of the schema's time column, or of nanoseconds or plain numbers."""
    if schema is not None:
        read = [c for a in query.aggregates.values() for c in a.columns]
        read += [c for w in query.windows.values() for c in w.columns]
        require_columns(schema, (*query.time_columns, *query.key, *read))
        return WindowSet.of(
            query.windows, Measure(query.time_columns[0], schema.field(query.time_columns[0]).type)
        )
    for type_ in (pa.timestamp("ns", "UTC"), pa.int64(), pa.float64()):
        try:
            return WindowSet.of(query.windows, Measure(query.time_columns[0], type_))
        except QueryError:
            continue
    return None
