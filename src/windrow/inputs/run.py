"""A query over any bounded input.

    data          a table, a batch, rows of Python      -> as it is (`engine.bounded`)
    an iterator                                         -> as it comes (`engine.bounded`)
    sources       less than a quarter of `memory`       -> read into a table, and as above
                  more                                  -> a stream in order of time (`ordering`), to one operator

What is read are the columns that the query names. A stream is answered by one operator in batches of its own: where a window
of floats has several slices, its last bits may differ from those of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine import bounded
from windrow.engine.intake.columns import as_table as table_of
from windrow.engine.intake.columns import takeable, ticks_of, viewless
from windrow.engine.operator import Operator
from windrow.engine.results import joined, with_selected
from windrow.errors import DataError, QueryError, UserFunctionError
from windrow.expressions.building import is_computed
from windrow.inputs.ordering import Rows, Survey, merged, most_waiting, parted
from windrow.inputs.progress import Progress
from windrow.inputs.sources import Source, alike, sources_of
from windrow.measure import Measure
from windrow.options import OperatorOptions, RunOptions
from windrow.schema import require_columns
from windrow.span import Span
from windrow.spec import NOTHING, QuerySpec

# At most so many rows are taken in at once.
BATCH = bounded.BATCH
# Of the memory for events, what rows take before they are copied, sorted and taken in.
SHARE = 4


def run(query: QuerySpec, events: Any, options: RunOptions) -> pa.Table:
    """As `Query.run`."""
    found = sources_of(events)
    with Progress() as progress:
        if found is None:
            return _over_data(query, events, options, progress)
        return _Run(query, found, options, progress).answer()


def as_table(events: Any, columns: tuple[str, ...] | None = None) -> pa.Table:
    """These columns of all events, or all columns."""
    found = sources_of(events)
    if found is None:
        table = table_of(events)
        names = tuple(table.column_names) if columns is None else columns
        require_columns(table.schema, names)
        return table.select(list(names))
    names = tuple(found[0].schema.names) if columns is None else columns
    found = alike(found, names)
    tables = [pa.Table.from_batches(map(viewless, source.batches(names))) for source in found]
    return pa.concat_tables(tables).combine_chunks()


def _over_data(query: QuerySpec, events: Any, options: RunOptions, progress: Progress) -> pa.Table:
    total = getattr(events, "num_rows", None)
    progress.begin("rows answered", total if isinstance(total, int) else None)
    return bounded.run(
        query,
        events,
        on_bad=options.on_bad,
        threads=options.threads,
        advance=progress.advance,
        filled=not options.partial,
    )


class _Run:
    """A query over sources."""

    def __init__(
        self, query: QuerySpec, sources: Sequence[Source], options: RunOptions, progress: Progress
    ) -> None:
        self.query = query
        self.options = options
        self.progress = progress
        self.columns = query.source_columns
        self.sources = alike(sources, self.columns)
        self.operator = Operator(replace(query, select=NOTHING), OperatorOptions(on_bad=options.on_bad))

    def answer(self) -> pa.Table:
        limit = self.options.memory_bytes // SHARE
        table, width = self._read_up_to(limit)
        if table is not None:
            return _over_data(self.query, table, self.options, self.progress)
        if any(map(is_computed, self.query.time_columns)):
            raise QueryError(
                "the time is an expression: data that is larger than memory is read in the order of a column, so compute it into one before"
            )
        most = max(1, int(limit / width))
        as_they_come = isinstance(self.query.time, Span) and self.query.time.id is not None
        if self.query.ordered or as_they_come:
            return self._over(self._as_they_come())
        surveys = self._survey()
        if most_waiting(surveys) <= most:
            stream = merged(self.sources, surveys, self._read, min(BATCH, most))
        else:
            self.progress.begin("rows sorted by time", sum(survey.total for survey in surveys))
            stream = parted(self.sources, surveys, self._read_on, most)
        total = sum(survey.rows for survey in surveys)
        return self._over((part for rows in stream for part in _pieces(rows)), total)

    def _read_up_to(self, limit: int) -> tuple[pa.Table | None, float]:
        """All rows if they take at most so many bytes, else None; and the bytes of a row."""
        parts: list[pa.RecordBatch] = []
        size = rows = 0
        self.progress.begin("rows read", _rows_of(self.sources))
        for source in self.sources:
            for batch in source.batches(self.columns):
                parts.append(batch)
                size, rows = size + batch.nbytes, rows + len(batch)
                self.progress.advance(len(batch))
                if size > limit:
                    return None, size / rows
        schema = pa.schema([self.sources[0].schema.field(name) for name in self.columns])
        return pa.Table.from_batches([part.cast(schema) for part in parts], schema), 0.0

    def _survey(self) -> list[Survey]:
        """The times of all rows, in a pass over the columns of time."""
        self.progress.begin("times read", _rows_of(self.sources))
        return [Survey.of(self._times(source)) for source in self.sources]

    def _times(self, source: Source) -> Iterator[tuple[np.ndarray, int]]:
        time = self.query.time
        # Where a span event counts depends on more than a time.
        columns = (time,) if isinstance(time, str) else self.columns
        for batch in source.batches(columns):
            if isinstance(time, str):
                times, missing = ticks_of(batch.column(0), Measure(time, batch.schema.field(0).type))
            else:
                times, missing = self.operator.instants(batch)
            good = times if missing is None else times[~missing]
            self.progress.advance(len(times))
            yield good, len(times) - len(good)

    def _read(self, source: Source, first: int) -> Iterator[Rows]:
        """The batches of a source, without rows that have no time, each in order of time."""
        for batch in source.batches(self.columns):
            batch = takeable(batch, self.columns)
            times, missing = self.operator.instants(batch)
            numbers = np.arange(first, first + len(times))
            first += len(times)
            if missing is not None:
                self._refuse(batch, numbers)
                batch, times, numbers = batch.filter(pa.array(~missing)), times[~missing], numbers[~missing]
            if len(times):
                yield Rows.ordered(batch, times, numbers)

    def _read_on(self, source: Source, first: int) -> Iterator[Rows]:
        for rows in self._read(source, first):
            self.progress.advance(len(rows))
            yield rows

    def _refuse(self, batch: pa.RecordBatch, numbers: np.ndarray) -> None:
        """An error for rows that have no time, unless bad rows are left out."""
        try:
            self.operator.sift(batch)
        except DataError as error:
            raise _elsewhere(error, numbers) from None

    def _as_they_come(self) -> Iterator[Rows]:
        first = 0
        for source in self.sources:
            for batch in source.batches(self.columns):
                yield Rows(batch, np.empty(0), np.arange(first, first + len(batch)))
                first += len(batch)

    def _over(self, stream: Iterator[Rows], total: int | None = None) -> pa.Table:
        """What the operator says to a stream."""
        operator, found = self.operator, []
        begun = False
        for rows in stream:
            if len(rows.times) and begun:
                found.append(operator.complete_to(rows.times[0].item()))
            if not begun:
                self.progress.begin("rows answered", total)
                begun = True
            try:
                operator.take_events(rows.events)
            except DataError as error:
                raise _elsewhere(error, rows.numbers) from None
            except UserFunctionError as error:
                row = None if error.row is None else int(rows.numbers[error.row])
                raise UserFunctionError(error.what, row, error.why) from error.__cause__
            if self.query.ordered and operator.highest_time is not None:
                found.append(operator.complete_to(operator.highest_time))
            self.progress.advance(len(rows.numbers))
        if not self.options.partial:
            return with_selected(self.query.select, operator.finish_filled(found))
        return with_selected(self.query.select, joined([*found, operator.finish()]))


def _elsewhere(error: DataError, numbers: np.ndarray) -> DataError:
    """The error with the number that its row has in the input."""
    row = None if error.row is None else int(numbers[error.row])
    return DataError(error.column, row, error.value, error.problem)


def _pieces(rows: Rows) -> Iterator[Rows]:
    """Rows in parts that are taken in at once."""
    return (rows[begin : begin + BATCH] for begin in range(0, len(rows), BATCH))


def _rows_of(sources: Sequence[Source]) -> int | None:
    counts = [source.count_rows() for source in sources]
    return None if None in counts else sum(count for count in counts if count is not None)
