"""`windrow warm`: compile ahead, so that whoever runs a query with the same folder of compiled code waits for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from windrow.compiling.folder import cache_directory
from windrow.compiling.jobs import Job
from windrow.engine.warming import PORTABLE, built_in, compiled, jobs_of
from windrow.errors import QueryError
from windrow.pipelines.columns import avro_columns, sql_columns
from windrow.pipelines.schema import load
from windrow.pipelines.spec import Pipeline, ReplaySource
from windrow.spec import QuerySpec

FAILED = 1


def warm_command(*, file: str | None, everything: bool, portable: str | None) -> int:
    """Compile what a pipeline's query needs, or all that is built in."""
    if (file is None) != everything:
        raise QueryError("windrow warm takes the file of a pipeline, or --all")
    queries = list(built_in()) if everything else [_query_of(load(file or ""))]
    environment = {} if portable is None else {**PORTABLE, "WINDROW_CACHE_DIR": str(Path(portable).resolve())}
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        jobs = _jobs(progress.track(queries, description="looking for loops"))
        outcomes = list(
            progress.track(compiled(jobs, environment), total=len(jobs), description="compiling      ")
        )
    where = environment.get("WINDROW_CACHE_DIR") or str(cache_directory())
    size = sum(path.stat().st_size for path in Path(where).rglob("*.bin"))
    lost = outcomes.count(False)
    print(
        f"{len(jobs)} loops in {where}, {size / 1e6:.1f} MB" + (f"; {lost} could not be kept" if lost else "")
    )
    return FAILED if lost else os.EX_OK


def _jobs(queries: Iterable[tuple[QuerySpec, pa.Schema]]) -> list[Job]:
    """The loops of all queries, each once."""
    found: dict[Any, Job] = {}
    for query, schema in queries:
        found |= {(job.name, job.arguments): job for job in jobs_of(query, schema)}
    return list(found.values())


def _query_of(pipeline: Pipeline) -> tuple[QuerySpec, pa.Schema]:
    source = pipeline.source
    if isinstance(source, ReplaySource):
        return pipeline.query, pq.read_schema(source.file)
    if source.schema is None:
        raise QueryError("the source declares no columns: say them in its schema, or compile --all")
    read = avro_columns if getattr(source, "format", "") == "avro" else sql_columns
    return pipeline.query, read(source.schema)
