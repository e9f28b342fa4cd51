"""`windrow run QUERY EVENTS...`: a query over files, its windows as a table on the terminal or in a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from windrow.cli.inputs import query_of, sources
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
    file = query_of(query, key)
    write = None if output is None else writer(output)
    found = sources(events)
    file.require_fit(found[0].schema)
    begun = time.perf_counter()
    result = file.query.run(list(events), on_bad="divert" if divert else "raise")
    seconds = time.perf_counter() - begun
    counts = [source.count_rows() for source in found]
    known = "" if None in counts else f" of {sum(c or 0 for c in counts):,} events"
    if write is None:
        show(result, file.query.key, rows=rows)
    else:
        write(result)
    _say(
        f"{len(result):,} windows{known} in {seconds:.2f} s"
        + ("" if output in (None, "-") else f": {output}")
    )
    return 0


def writer(place: str) -> Any:
    """What writes a table to a file of this name; an error, before anything is computed, if nothing does."""
    if place == "-":
        return lambda table: _csv(table, sys.stdout.buffer)
    ending = Path(place).suffix
    writers = {".parquet": _parquet, ".csv": _csv, ".arrow": _arrow, ".jsonl": _jsonl}
    if ending not in writers:
        raise QueryError(f"-o takes a file that ends in {', '.join(writers)}, or -, not {place!r}")
    parent = Path(place).absolute().parent
    if not parent.is_dir():
        raise QueryError(f"-o {place}: there is no folder {parent}")
    return lambda table: writers[ending](table, place)


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
            file.writelines(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
