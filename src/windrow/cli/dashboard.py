"""`windrow dashboard QUERY EVENTS...`: files as a stream, and its windows in a browser."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from windrow.cli.inputs import columns_of, query_of, schema_of, table_of
from windrow.errors import QueryError
from windrow.live import dashboard
from windrow.live.board import finest
from windrow.live.replay import PACE
from windrow.live.replay import replay as replayed
from windrow.pipelines.queries import QueryFile
from windrow.pipelines.schema import load
from windrow.pipelines.spec import ReplaySource

INTERRUPTED = 130


def dashboard_command(
    query: str,
    events: Sequence[str],
    *,
    key: Sequence[str] | None,
    seconds: float,
    resolution: str | None,
    history: str,
    address: str,
    port: int,
    token: str | None,
    once: bool,
) -> int:
    """Replay files, and show what comes of them until Ctrl-C."""
    file = query_of(query, key)
    places = events or _source(query, file)
    table = table_of(places, columns_of(file, schema_of(places))).sort_by(file.query.time_columns[0])
    spec = file.query
    if resolution is not None:
        spec = replace(spec, windows=MappingProxyType(dict([*spec.windows.items(), finest(resolution)])))
    operator = spec.operator(on_bad="divert", lateness=history, mode="update")
    with dashboard(operator, title=Path(query).stem, address=address, port=port, token=token) as live:
        print(live.url, flush=True)
        print("Ctrl-C ends it", file=sys.stderr)
        asleep = threading.Event()
        try:
            replayed(live, table, seconds=seconds, wait=asleep.wait)
            # Readers may go on zooming: windows that they want are added between two calls.
            while not once:
                live.advance(table[spec.time_columns[0]][-1])
                asleep.wait(1 / PACE)
        except KeyboardInterrupt:
            return INTERRUPTED
    return 0


def _source(path: str, file: QueryFile) -> list[str]:
    """The file that a pipeline replays."""
    if file.place.field != "query":
        raise QueryError(f"windrow dashboard {path} takes files of events, too")
    source = load(path).source
    if not isinstance(source, ReplaySource):
        raise QueryError(f"{path}: only a source that replays a file can be shown; name files of events")
    return [source.file]
