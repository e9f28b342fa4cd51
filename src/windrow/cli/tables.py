"""A table of windows on a terminal: aligned, bars behind the numbers, and a line over time for each key and aggregate."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windrow.plots.series import is_number
from windrow.spec import answers_of
from windrow.wording import number_text

BLOCKS = "▁▂▃▄▅▆▇█"
# At most so many lines over time, and so many columns of each.
LINES, POINTS = 24, 40


def show(result: pa.Table, key: Sequence[str], *, rows: int, lines: bool = True) -> None:
    """The first rows, and how each aggregate goes over time where there are few keys."""
    # Where nobody sees a terminal, a table is as wide as it has to be.
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200
    console = Console(width=wide, highlight=False)
    shown = result.slice(0, rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    measured = answers_of(result.column_names, key)
    numbers = {f.name for f in result.schema if is_number(f.type)}
    for name in result.column_names:
        table.add_column(Text(name), justify="right" if name in numbers else "left", no_wrap=name != "window")
    texts = [
        [_text(value, name in measured) for value in shown[name].to_pylist()] for name in shown.column_names
    ]
    for i, name in enumerate(shown.column_names):
        if name in measured and name in numbers:
            texts[i] = _shaded(texts[i], shown[name])
    for row in zip(*texts, strict=True):
        table.add_row(*row)
    if rows:
        console.print(table)
    if len(result) > rows > 0:
        console.print(f"[dim]{rows:,} of {len(result):,} rows; -o FILE writes all, --rows N shows more[/]\n")
    if lines:
        _show_lines(console, result, key, [name for name in measured if name in numbers])


def _show_lines(console: Console, result: pa.Table, key: Sequence[str], names: Sequence[str]) -> None:
    """How each aggregate goes over time, where these are not too many lines."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in (*key, "window", "aggregate", "lowest", "over time", "highest"):
        table.add_column(Text(heading), justify="right" if heading == "lowest" else "left", no_wrap=True)
    found = list(_over_time(result, key, names))
    for line in found:
        table.add_row(*line)
    if found:
        console.print(table)


def _text(value: Any, measured: bool) -> Text:
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, float):
        return Text(number_text(value))
    if isinstance(value, int) and not isinstance(value, bool) and measured:
        return Text(f"{value:,}")
    if isinstance(value, datetime):
        return Text(str(value.replace(tzinfo=None)))
    if isinstance(value, (list, dict)):
        shown = str(value)
        return Text(shown if len(shown) <= 40 else shown[:39] + "…")
    return Text(str(value))


def _shaded(texts: list[Text], column: pa.ChunkedArray) -> list[Text]:
    """The largest numbers bold, the smallest dim: what stands out, stands out."""
    values = np.array([math.nan if v is None else float(v) for v in column.to_pylist()])
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return texts
    low, high = np.quantile(finite, [0.25, 0.9])
    for text, value in zip(texts, values, strict=True):
        if value >= high:
            text.stylize("bold yellow")
        elif value <= low:
            text.stylize("dim")
    return texts


def _over_time(result: pa.Table, key: Sequence[str], names: Sequence[str]) -> Iterator[list[Text]]:
    """A line of blocks for each key, window and aggregate that has more than two windows."""
    by = [*key, "window"]
    if not {*by, "start"} <= {*result.column_names}:  # SQL names columns as it likes
        return
    groups = result.group_by(by, use_threads=False).aggregate([]).to_pylist()
    if len(groups) * len(names) > LINES:
        return
    for group in groups:
        mask = np.ones(len(result), bool)
        for column, value in group.items():
            same = pc.is_null(result[column]) if value is None else pc.equal(result[column], pa.scalar(value))
            mask &= np.asarray(pc.fill_null(same, False))
        rows = result.filter(pa.array(mask)).sort_by("start")
        if len(rows) < 3:
            continue
        for name in names:
            values = np.array([math.nan if v is None else float(v) for v in rows[name].to_pylist()])
            finite = values[np.isfinite(values)]
            if len(finite):
                low, high = float(finite.min()), float(finite.max())
                lowest, line, highest = Text(number_text(low)), spark_line(values), Text(number_text(high))
                yield [*(Text(str(value)) for value in group.values()), Text(name), lowest, line, highest]


def spark_line(values: np.ndarray, points: int = POINTS) -> Text:
    """Values as blocks, the highest of each stretch; a gap where there are none.

    >>> import numpy as np
    >>> spark_line(np.array([0.0, 1.0, np.nan, 7.0])).plain
    '▁▂ █'
    """
    parts = np.array_split(values, min(points, len(values)))
    highest = np.array([np.max(p[np.isfinite(p)], initial=-np.inf) for p in parts])
    seen = highest[np.isfinite(highest)]
    low, high = seen.min(), seen.max()
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    marks = [BLOCKS[round((v - low) * scale)] if np.isfinite(v) else " " for v in highest]
    return Text("".join(marks), style="cyan")
