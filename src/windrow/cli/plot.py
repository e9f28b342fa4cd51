"""`windrow plot QUERY EVENTS...` or `windrow plot WINDOWS`: a picture of windows as PNG, SVG, PDF or an HTML page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from windrow.cli.inputs import query_of, require_place, schema_of, table_of
from windrow.errors import QueryError
from windrow.plots.series import Series, fitting, require_look

PICTURES = (".png", ".svg", ".pdf")


def plot_command(
    what: str,
    events: Sequence[str],
    *,
    output: str,
    kind: str,
    window: Sequence[str] | None,
    aggregate: Sequence[str] | None,
    key: Sequence[str] | None,
    theme: str,
    title: str | None,
) -> int:
    """Draw what a query answers, or what a file of windows holds."""
    ending = require_place(output, (*PICTURES, ".html"))
    require_look(kind, theme)
    windows = _windows(what, events, key)
    if ending == ".html":
        from windrow.plots.pages import page_of

        series = Series.of(windows, window, aggregate)
        shown = fitting(series) if kind == "auto" else kind
        Path(output).write_text(page_of(series, kind=shown, title=title or Path(what).stem), "utf-8")
    else:
        from windrow.plots import plot

        figure = plot(windows, kind=kind, window=window, aggregate=aggregate, theme=theme, title=title)
        figure.savefig(output)
    print(f"{len(windows):,} windows: {output}", file=sys.stderr)
    return 0


def _windows(what: str, events: Sequence[str], key: Sequence[str] | None) -> pa.Table:
    if Path(what).suffix not in (".yaml", ".yml"):
        if key:
            raise QueryError("--key is of a query, and this is a file of windows")
        return table_of([what, *events])
    if not events:
        raise QueryError(f"windrow plot {what} takes files of events, too")
    file = query_of(what, key)
    file.require_fit(schema_of(events))
    return file.query.run(list(events))
