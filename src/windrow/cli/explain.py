"""`windrow explain QUERY [EVENTS...]`: the plan of a query in words, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from windrow.cli.inputs import query_of, require_place, schema_of


def explain_command(
    query: str, events: Sequence[str], *, picture: str | None, key: Sequence[str] | None
) -> int:
    """Print the plan; with events, sizes are exact."""
    if picture is not None:
        require_place(picture, [".svg"], option="--picture")
    file = query_of(query, key)
    schema = None
    if events:
        schema = schema_of(events)
        file.require_fit(schema)
    explanation = file.query.explain(schema, **asdict(file.options))
    print(explanation)
    if picture is not None:
        Path(picture).write_text(explanation.picture, "utf-8")
    return 0
