"""A running operator in a browser: charts, the latest windows, counters and the plan; with Bokeh.

    board.py      the operator as it is watched: what is shown is taken from its results, and zooming adds windows to it
    store.py      results as they come, bounded; lines of at most four points for each column of pixels
    document.py   what the browser shows, one for each reader
    server.py     who may read: this machine, or who has the token
    replay.py     files of events as a stream

    stream  -->  board: process, advance  -->  operator
                   |  rows, counters                ^  windows that readers want, added between two calls
                   v                                |
                 store  -->  document, 10 times a second  -->  browser

The stream pays for an append to a queue. Readers are served by a thread of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.engine.operator import Operator
    from windrow.live.board import Dashboard


def dashboard(
    operator: Operator,
    *,
    title: str = "windrow",
    address: str = "127.0.0.1",
    port: int = 5006,
    token: str | None = None,
) -> Dashboard:
    """Watch an operator in a browser while it runs.

    Parameters
    ----------
    operator
        The operator. From here on, give events and watermarks to the dashboard, which hands them on.
    title
        Above the page.
    address
        The address to listen on; by default this machine alone can read. On any other a token is needed, and is made if none is given.
    port
        5006 by default; 0 takes one that is free.
    token
        What readers must know: it is a part of `url`.

    Returns
    -------
    Dashboard
        With `process`, `advance`, `tick` and `finish` as the operator has them, the `url` for the browser, and `stop`. It is a context manager.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    >>> with wr.dashboard(q.operator(), port=0) as live:
    ...     _ = live.process(pa.table({"ts": [1, 2, 7]}))
    ...     live.advance(6).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 5, 'n': 2}]
    """
    from windrow.live.board import Dashboard
    from windrow.live.server import serve

    board = Dashboard(operator, title=title)
    board.server = serve(board, address=address, port=port, token=token)
    return board
