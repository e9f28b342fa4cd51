"""A query by itself as a YAML file: the fields that stand behind `query:` in the file of a pipeline.

    time: scheduled
    key: origin
    windows:    {day: {tumbling: 1 day}, 24 hours: {sliding: 1 day, every: 1 hour}}
    aggregates: {flights: count, p90: {quantile: [delay, 0.9]}}

The file of a pipeline is taken, too: of it the query is read, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import pyarrow as pa

from windrow.options import OperatorOptions, SparkOptions
from windrow.pipelines.document import SpecError, Value, place_of, read
from windrow.pipelines.fitting import query_misfits
from windrow.pipelines.schema import OPTIONS, read_query
from windrow.query import Query
from windrow.spec import QuerySpec


@dataclass(frozen=True)
class QueryFile:
    """A query as a file says it. `parts` are its fields by name, options included, and `place` is where it stands."""

    query: Query
    parts: Mapping[str, Any]
    place: Value

    @property
    def options(self) -> OperatorOptions:
        """Those of an operator of this query."""
        return SparkOptions(**{n: self.parts[n] for n in OPTIONS if n in self.parts}).for_operators

    def require_fit(self, schema: pa.Schema) -> None:
        """A `SpecError` with every place that does not fit events with these columns."""
        problems = query_misfits(self.query, self.place, self.parts, schema)
        if problems:
            raise SpecError(sorted(set(problems), key=partial(place_of, self.place.file)))


def load_query(path: str | os.PathLike[str]) -> QueryFile:
    """The query of a YAML file; `SpecError` says what is wrong with it, and where.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    ...     _ = file.write("{time: ts, windows: {w: {tumbling: 1 hour}}, aggregates: {n: count}}"), file.flush()
    ...     str(load_query(file.name).query.windows["w"])
    'tumbling 1 hour'
    """
    root = read(path)
    place = root.fields(problems=[]).get("query", root) if root.is_mapping else root
    parts: dict[str, Any] = {}
    try:
        spec = read_query(place, parts)
    except SpecError as error:
        raise SpecError(sorted(set(error.problems), key=partial(place_of, str(path)))) from None
    return QueryFile(
        Query(**{field.name: getattr(spec, field.name) for field in fields(QuerySpec)}), parts, place
    )
