"""Windows as pictures: lines over time, a heat map of key by time, sessions as bars; with matplotlib.

series.py     what a table of windows has to draw: keys, windows, numbers, edges as numbers
figures.py    the three kinds of figure, light, dark, or readable on both
pages.py      the same windows as an HTML page that can be zoomed, with Bokeh
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(
    windows: pa.Table,
    *,
    kind: str = "auto",
    window: str | Sequence[str] | None = None,
    aggregate: str | Sequence[str] | None = None,
    theme: str = "auto",
    title: str | None = None,
) -> Figure:
    """A picture of windows, as `Query.run` and operators return them.

    Parameters
    ----------
    windows
        A result: key columns, `window`, `start`, `end`, and aggregates.
    kind
        "lines" over time, in a panel for each aggregate and window; "heatmap" of keys by time; "bars" from start to end in a lane for each
        key, for sessions. "auto" (default) takes bars where windows are of many lengths, a heat map where there are more keys than
        lines can show, else lines.
    window, aggregate
        Which of them; all of them by default, of which a heat map and bars show the first aggregate alone.
    theme
        "light", "dark", or "auto" (default): without a background, in colours that can be read on both.
    title
        Above the picture; none by default.

    Returns
    -------
    matplotlib.figure.Figure
        Shown by a notebook as it is; `figure.savefig("out.png")` writes it.

    Raises
    ------
    QueryError
        If there is nothing to draw: no window, no aggregate that is a number, or none of such a name.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
    >>> figure = wr.plot(q.run(pa.table({"ts": [1, 2, 7, 12], "x": [10, 20, 30, 5]})))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['total']
    """
    from windrow.plots.figures import figure_of
    from windrow.plots.series import Series

    return figure_of(Series.of(windows, window, aggregate), kind=kind, theme=theme, title=title)
