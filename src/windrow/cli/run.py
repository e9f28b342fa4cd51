"""`windrow run QUERY EVENTS...`: a query, or SQL, over files, its windows as a table on the terminal or in a file."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import windrow
from windrow.cli.inputs import query_of, require_other, require_place, schema_of
from windrow.cli.tables import show
from windrow.errors import QueryError


def run_command(
    query: str,
    events: Sequence[str],
    *,
    output: str | None,
    key: Sequence[str] | None,
    rows: int,
    divert: bool,
) -> int:
    """Run it and show what came out, or where it is."""
    write = None if output is None else writer(output)
    file_out = None if output == "-" else output
    as_csv = output == "-" or (output is not None and output.endswith(".csv"))
    begun = time.perf_counter()
    statements = sql_of(query)
    keys: tuple[str, ...] = ()
    if statements is None:
        file = query_of(query, key)
        keys = file.query.key
        schema = schema_of(events)
        file.require_fit(schema)
        if file_out is not None:
            require_other(file_out, events)
        if as_csv:
            _require_csv(file.query.run(schema.empty_table()).schema, output)
        result = file.query.run(list(events), on_bad="divert" if divert else "raise")
    else:
        if key or divert:
            raise QueryError("--key and --divert are for files of queries: SQL says its keys itself")
        named = tables(events)
        if file_out is not None:
            require_other(file_out, [place for places in named.values() for place in places])
        if as_csv:
            empty = {name: schema_of(places).empty_table() for name, places in named.items()}
            answer = windrow.sql(statements, **empty)
            if not isinstance(answer, list):
                _require_csv(answer.schema, output)
        result = windrow.sql(statements, **named)
        if isinstance(result, list):
            raise QueryError("one statement is run at a time, and these are several")
    seconds = time.perf_counter() - begun
    if write is None:
        show(result, keys, rows=rows)
    else:
        write(result)
    _say(f"{len(result):,} windows in {seconds:.2f} s" + ("" if file_out is None else f": {file_out}"))
    return 0


def sql_of(query: str) -> str | None:
    """The statement that is meant, of a file of SQL or as it is typed; None for a file of a query."""
    if Path(query).suffix == ".sql" and Path(query).is_file():
        return Path(query).read_text("utf-8")
    words = query.split(maxsplit=1)
    return query if len(words) > 1 and words[0].upper() in ("SELECT", "WITH") else None


def tables(events: Sequence[str]) -> dict[str, list[str]]:
    """Files by the names that SQL calls them by: NAME=FILE; and of others each by its own name, and all of them as `events`."""
    found: dict[str, list[str]] = {}
    for place in events:
        name, equals, path = place.partition("=")
        if equals and name.isidentifier():
            found.setdefault(name, []).append(path)
        else:
            found.setdefault("events", []).append(place)
            stem = Path(place).name.partition(".")[0]
            if stem.isidentifier() and stem != "events":
                found.setdefault(stem, []).append(place)
    return found


def writer(place: str) -> Any:
    """What writes a table to a file of this name; an error, before anything is computed, if nothing does."""
    if place == "-":
        return lambda table: _csv(table, sys.stdout.buffer)
    writers = {".parquet": _parquet, ".csv": _csv, ".arrow": _arrow, ".jsonl": _jsonl}
    ending = require_place(place, writers, more=", or -")
    return lambda table: writers[ending](table, place)


def _require_csv(schema: pa.Schema, output: str | None) -> None:
    """An error, before anything is computed, for a column that CSV cannot hold."""
    from pyarrow import csv

    for field in schema:
        try:
            csv.write_csv(pa.schema([field]).empty_table(), pa.BufferOutputStream())
        except pa.ArrowInvalid:
            raise QueryError(
                f"-o {output}: CSV cannot hold column {field.name!r}, which is {field.type}; .parquet, .arrow and .jsonl can"
            ) from None


def _parquet(table: pa.Table, place: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, place)


def _csv(table: pa.Table, place: Any) -> None:
    from pyarrow import csv

    csv.write_csv(table, place)


def _arrow(table: pa.Table, place: Any) -> None:
    from pyarrow import feather

    feather.write_feather(table, place, compression="uncompressed")


def _jsonl(table: pa.Table, place: Any) -> None:
    import json

    with open(place, "w", encoding="utf-8") as file:
        for batch in table.to_batches(max_chunksize=1 << 14):
            file.writelines(
                json.dumps(_json(row), default=str, allow_nan=False) + "\n" for row in batch.to_pylist()
            )


def _json(value: Any) -> Any:
    """A value as JSON can hold it, which has neither NaN nor infinity: these are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _json(part) for name, part in value.items()}
    return [_json(part) for part in value] if isinstance(value, (list, tuple)) else value


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
