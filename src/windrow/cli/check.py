"""`windrow check FILE [EVENTS...]`: whether a YAML file is sound, and fits the columns of events."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.cli.inputs import sources
from windrow.inputs.sources import alike
from windrow.pipelines.document import read
from windrow.pipelines.queries import load_query
from windrow.pipelines.schema import load
from windrow.spec import QuerySpec


def check_command(path: str, events: Sequence[str]) -> int:
    """Say that a file is sound, of a query or of a pipeline; what is wrong is an error."""
    root = read(path)
    fields = root.fields(problems=[]) if root.is_mapping else {}
    if {"source", "sink", "query"} & fields.keys():
        note = check_pipeline(path)
    else:
        note = sound(path, load_query(path).query) + "; name a file of events to check its columns, too"
    if events:
        file = load_query(path)
        found = sources(events)
        file.require_fit(found[0].schema)
        alike(found, file.query.source_columns)
        note = f"{sound(path, file.query)}, and it fits {', '.join(events)}"
    print(note)
    return 0


def check_pipeline(path: str) -> str:
    """A line that says that the file of a pipeline is sound."""
    pipeline = load(path)
    unknown = getattr(pipeline.source, "schema", None) is None
    notes = "; its source declares no columns, so none were checked" if unknown else ""
    return sound(path, pipeline.query) + notes


def sound(path: str, query: QuerySpec) -> str:
    """What the line begins with."""
    return f"{path} is sound: {_counted(len(query.windows), 'window')}, {_counted(len(query.aggregates), 'aggregate')}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
