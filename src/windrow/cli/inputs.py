"""What commands read: a query from its file, events from files; and where they may write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from windrow.errors import QueryError
from windrow.inputs.sources import Source, alike, sources_of
from windrow.pipelines.queries import QueryFile, load_query
from windrow.spec import refuse_name_clashes


def query_of(path: str, key: Sequence[str] | None = None) -> QueryFile:
    """The query of a file, with another key where one is given."""
    file = load_query(path)
    if not key:
        return file
    refuse_name_clashes(tuple(key), file.query.aggregates)
    query = replace(file.query, key=tuple(key), key_expressions=MappingProxyType({}))
    return replace(file, query=query, parts={**file.parts, "key": list(key)})


def sources(places: Sequence[str]) -> list[Source]:
    """Files, folders and patterns."""
    found = sources_of(list(places))
    assert found
    return found


def schema_of(places: Sequence[str]) -> pa.Schema:
    """The columns of files."""
    return sources(places)[0].schema


def table_of(places: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of files, of all columns or of some."""
    found = sources(places)
    names = tuple(found[0].schema.names if columns is None else columns)
    found = alike(found, names)
    schema = pa.schema([found[0].schema.field(name) for name in names])
    return pa.Table.from_batches((batch.select(names) for s in found for batch in s.batches(names)), schema)


def columns_of(file: QueryFile, schema: pa.Schema) -> list[str]:
    """The columns that a query reads, as the events have them in order; it must fit them."""
    file.require_fit(schema)
    read = file.query.source_columns
    return [name for name in schema.names if name in read]


def require_place(place: str, endings: Iterable[str], *, option: str = "-o", more: str = "") -> str:
    """The ending of a file that is to be written; an error, before anything is computed, if it cannot be."""
    ending, folder = Path(place).suffix, Path(place).absolute().parent
    if ending not in endings:
        raise QueryError(f"{option} takes a file that ends in {', '.join(endings)}{more}, not {place!r}")
    if not folder.is_dir():
        raise QueryError(f"{option} {place}: there is no folder {folder}")
    return ending


def require_other(place: str, events: Iterable[str]) -> None:
    """An error if a file that is to be written is one of the events, or lies in a folder of them and would be the next time."""
    target = Path(place).resolve()
    for path in events:
        folder = Path(path).resolve()
        inside = folder.is_dir() and target.is_relative_to(folder)
        if inside or target in (Path(source.name).resolve() for source in sources([path])):
            raise QueryError(f"-o {place}: that is where the events are ({path}); name another place")
