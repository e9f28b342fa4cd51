"""`windrow dashboard QUERY EVENTS...`: files as a stream, and its windows in a browser."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from windrow.cli.inputs import columns_of, query_of, schema_of, table_of
from windrow.errors import QueryError
from windrow.live import dashboard
from windrow.live.board import finest
from windrow.live.replay import PACE
from windrow.live.replay import replay as replayed
from windrow.pipelines.queries import QueryFile
from windrow.pipelines.schema import load
from windrow.pipelines.spec import ReplaySource
from windrow.plots.series import is_number

INTERRUPTED = 130
HISTORY = "1000 days"


def dashboard_command(
    query: str,
    events: Sequence[str],
    *,
    key: Sequence[str] | None,
    seconds: float,
    resolution: str | None,
    history: str | None,
    address: str,
    port: int,
    token: str | None,
    once: bool,
) -> int:
    """Replay files, and show what comes of them until Ctrl-C."""
    file = query_of(query, key)
    places = events or _source(query, file)
    spec, column = file.query, file.query.time_columns[0]
    table = table_of(places, columns_of(file, schema_of(places))).sort_by(column)
    if not len(table):
        raise QueryError(f"there are no events in {', '.join(places)}")
    if resolution is not None:
        added = finest(_length(resolution))
        spec = replace(spec, windows=MappingProxyType(dict([*spec.windows.items(), added])))
    lateness = _span(table[column]) if history is None else _length(history)
    operator = spec.operator(on_bad="divert", lateness=lateness, mode="update")
    with dashboard(operator, title=Path(query).stem, address=address, port=port, token=token) as live:
        print(live.url, flush=True)
        print("Ctrl-C ends it", file=sys.stderr)
        asleep = threading.Event()
        try:
            replayed(live, table, seconds=seconds, wait=asleep.wait)
            # Readers may go on zooming: windows that they want are added between two calls.
            last = pc.max(table[column])
            while not once:
                if last.is_valid:
                    live.advance(last)
                asleep.wait(1 / PACE)
        except KeyboardInterrupt:
            return INTERRUPTED
    return 0


def _length(text: str) -> str | float:
    """A length as it is typed: a duration, or a number where time is one."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _span(times: pa.ChunkedArray) -> str | float:
    """How far back one can zoom where nobody has said it: over all that there is."""
    if not is_number(times.type):
        return HISTORY
    edges = pc.min_max(times).as_py()
    return 0 if edges["min"] is None else edges["max"] - edges["min"]


def _source(path: str, file: QueryFile) -> list[str]:
    """The file that a pipeline replays."""
    if file.place.field != "query":
        raise QueryError(f"windrow dashboard {path} takes files of events, too")
    source = load(path).source
    if not isinstance(source, ReplaySource):
        raise QueryError(f"{path}: only a source that replays a file can be shown; name files of events")
    return [source.file]
