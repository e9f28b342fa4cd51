"""Inputs that can be read more than once, a batch at a time, and only the columns that a query reads.

    "trips/*.parquet"          one source for each file, in the order of their names
    pyarrow.dataset            one for each file of it
    polars.LazyFrame           one
    [a, b, ...]                the sources of each, one after the other: their rows together are the input

Rows are counted over all sources in this order; a message that names a row counts so, too.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from windrow.engine.intake.columns import batches, is_whole
from windrow.errors import QueryError
from windrow.schema import require_columns
from windrow.wording import choices

if TYPE_CHECKING:
    from pyarrow import dataset

# Rows that are read at once.
ROWS = 1 << 17
# The formats of files by the end of their names; behind it the name of a compression may follow.
FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")


class Source(Protocol):
    """Rows that can be read again."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def schema(self) -> pa.Schema:
        """All columns that it has."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns of all rows, always in the same order."""

    def count_rows(self) -> int | None:
        """How many rows there are, if that is known without reading them."""

    def typed(self, schema: pa.Schema) -> Source:
        """The same rows; where columns have no type of their own, they have that of this schema."""


@dataclass(frozen=True)
class Scanned:
    """What pyarrow scans: a file of a dataset, or a dataset that is filtered."""

    name: str
    schema: pa.Schema
    data: dataset.Fragment | dataset.Dataset

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import dataset

        options: dict[str, Any] = {"columns": list(columns), "batch_size": ROWS}
        if isinstance(self.data, dataset.Fragment):
            options["schema"] = self.schema
        wanted = pa.schema([self.schema.field(name) for name in columns])
        parts = [self.data]
        if isinstance(self.data, dataset.ParquetFileFragment):
            # One after the other: else pyarrow reads on, far ahead of who takes the rows.
            parts = self.data.split_by_row_group()
            options["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(pre_buffer=False)
        try:
            for part in parts:
                for batch in part.scanner(**options).to_batches():
                    yield batch if batch.schema.types == wanted.types else batch.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as problem:
            raise QueryError(f"{self.name} cannot be read: {problem}") from problem

    def count_rows(self) -> int | None:
        from pyarrow import dataset

        known = (dataset.ParquetFileFormat, dataset.IpcFileFormat)
        return int(self.data.count_rows()) if isinstance(getattr(self.data, "format", None), known) else None

    def typed(self, schema: pa.Schema) -> Source:
        return replace(self, schema=schema)


@dataclass(frozen=True)
class Lazy:
    """A lazy frame of polars, which reads and computes no more than it must."""

    frame: Any
    schema: pa.Schema
    name: str = "the lazy frame"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in self.frame.select(columns).collect_batches(chunk_size=ROWS, maintain_order=True):
            table = part.to_arrow()
            wanted = pa.schema([self.schema.field(name) for name in columns])
            yield from (table if table.schema == wanted else table.cast(wanted)).to_batches()

    def count_rows(self) -> int | None:
        return None

    def typed(self, schema: pa.Schema) -> Source:
        return replace(self, schema=schema)


@dataclass(frozen=True)
class InMemory:
    """A table, as one of several inputs."""

    table: pa.Table
    name: str = "a table"

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return iter(self.table.select(list(columns)).to_batches(ROWS))

    def count_rows(self) -> int | None:
        return len(self.table)

    def typed(self, schema: pa.Schema) -> Source:
        return replace(self, table=self.table.cast(schema))


def sources_of(events: Any) -> list[Source] | None:
    """The sources that an input is made of; None if it is none that could be read again, but data itself."""
    if isinstance(events, str | os.PathLike):
        return _files(events)
    module = type(events).__module__
    if module.startswith("pyarrow._dataset"):
        return _of_dataset(events)
    if module.startswith("polars.") and type(events).__name__ == "LazyFrame":
        schema = events.head(0).collect().to_arrow().schema
        return [Lazy(events, schema)]
    if isinstance(events, list | tuple):
        parts = [sources_of(part) for part in events]
        if any(part is not None for part in parts):
            return [
                source
                for part, each in zip(parts, events, strict=True)
                for source in (_tables(each) if part is None else part)
            ]
    return None


def _tables(events: Any) -> list[Source]:
    if not is_whole(events):
        raise QueryError(
            f"inputs that are read together are files, datasets and tables, and not {type(events).__name__}"
        )
    return [InMemory(pa.Table.from_batches(batches(events)))]


def _files(path: str | os.PathLike[str]) -> list[Source]:
    """The files of a path, a pattern or a folder, by name."""
    text = os.fspath(path)
    if os.path.isdir(text):
        found = sorted(str(p) for p in Path(text).rglob("*") if _is_of_events(p, Path(text)))
    elif os.path.exists(text):
        found = [text]
    else:
        found = sorted(p for p in glob.glob(text, recursive=True) if os.path.isfile(p))
    if not found:
        what = "no file matches" if glob.has_magic(text) else "there is no file"
        if os.path.isdir(text):
            what = "there is no file of events in"
        raise QueryError(f"{what} {text!r}")
    return [source for each in found for source in _of_dataset(_opened(each))]


def _is_of_events(path: Path, folder: Path) -> bool:
    """Whether this is a file of events, and not one that is hidden or, as `_temporary/..`, of whoever writes the folder."""
    is_shown = not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    return is_shown and _ending(path.name) in FORMATS and path.is_file()


def _ending(name: str) -> str:
    """The end of a file's name that tells its format."""
    stem, ending = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if ending in COMPRESSED else ending


def _opened(path: str) -> dataset.Dataset:
    from pyarrow import csv, dataset

    ending = _ending(path)
    if ending not in FORMATS:
        raise QueryError(
            f"{path!r} does not say by its name how to read it{choices(ending, FORMATS)}; "
            "give others as a pyarrow.dataset"
        )
    name = FORMATS[ending]
    tabs = dataset.CsvFileFormat(parse_options=csv.ParseOptions(delimiter="\t"))
    try:
        return dataset.dataset(path, format=tabs if name == "tsv" else name)
    except (pa.ArrowInvalid, OSError) as problem:
        raise QueryError(f"{path!r} cannot be read as {name}: {problem}") from problem


def _of_dataset(data: Any) -> list[Source]:
    from pyarrow import dataset

    if not isinstance(data, dataset.Dataset):
        raise QueryError(f"a {type(data).__name__} is read once: give the dataset that it is of")
    try:
        found = list(data.get_fragments())
    except ValueError:  # of a dataset that is filtered
        return [Scanned("the dataset", data.schema, data)]
    if not found:
        return [InMemory(data.schema.empty_table())]
    return [Scanned(getattr(each, "path", None) or "the dataset", data.schema, each) for each in found]


def alike(sources: Sequence[Source], columns: tuple[str, ...]) -> list[Source]:
    """The sources with these columns of one type in all of them; an error if that is not so.

    A column that has no value in a source, as in a CSV file of a header alone, has the type that it has in others.
    """
    for source in sources:
        try:
            require_columns(source.schema, columns)
        except QueryError as problem:
            raise QueryError(f"{source.name}: {problem}") from None
    typed = list(sources)
    for column in columns:
        types = [source.schema.field(column).type for source in sources]
        first = next((i for i, type_ in enumerate(types) if not pa.types.is_null(type_)), 0)
        for i, type_ in enumerate(types):
            if type_ == types[first]:
                continue
            if not pa.types.is_null(type_):
                raise QueryError(
                    f"column {column!r} is {types[first]} in {sources[first].name} and {type_} in {sources[i].name}"
                )
            schema = typed[i].schema
            place = schema.get_field_index(column)
            typed[i] = typed[i].typed(schema.set(place, pa.field(column, types[first])))
    return typed
