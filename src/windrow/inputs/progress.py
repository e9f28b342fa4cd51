"""A progress bar for who waits: at a terminal or in a notebook, once a run has taken a second, where rich is installed.

`WINDROW_QUIET=1` turns it off.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from types import TracebackType
from typing import Any, Self

from windrow.compiling.notice import PATIENCE, is_read


class Progress:
    """Rows done, of a total that may be unknown (None), in a stage that may be followed by others; a context.

    >>> with Progress() as progress:
    ...     progress.begin("answering", 3)
    ...     progress.advance(2)
    >>> progress.done
    2
    """

    def __init__(self) -> None:
        self.stage, self.done = "", 0
        self.total: int | None = None
        self._since = time.monotonic()
        self._bar: Any = None
        self._may_be_shown = is_read() and importlib.util.find_spec("rich") is not None
        self._lock = threading.Lock()

    def begin(self, stage: str, total: int | None) -> None:
        """What is done from here on, and to how many rows."""
        self.stage, self.total, self.done = stage, total, 0
        self._show()

    def advance(self, rows: int) -> None:
        """So many rows more are done; called by any thread."""
        with self._lock:
            self.done += rows
            self._show()

    def _show(self) -> None:
        if not self._may_be_shown or time.monotonic() - self._since < PATIENCE:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._bar.add_task("")
        task = self._bar.task_ids[0]
        self._bar.update(task, description=f"windrow: {self.stage}", completed=self.done, total=self.total)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
