"""How far a pipeline is: a line that is redrawn on a terminal, a line per micro-batch in a log file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from windrow.pipelines.listener import LOG, Progress

if TYPE_CHECKING:
    from collections.abc import Callable


class Display:
    """Shows one progress after the other, and knows the last one. Spark calls it from a thread of its own."""

    def __init__(self, draw: Callable[[Progress], None], close: Callable[[], None]) -> None:
        self._draw = draw
        self.close = close
        self._last: Progress | None = None
        self._batches = 0

    def show(self, progress: Progress) -> None:
        self._last = progress
        self._batches += 1
        self._draw(progress)

    def summary(self) -> str:
        """What there was in all."""
        last = self._last
        if last is None:
            return "no micro-batch"
        return (
            f"{self._batches:,} micro-batch{'' if self._batches == 1 else 'es'}, the last one {last.batch}; {last.total:,} rows, "
            f"late {last.late:,}, bad {last.bad:,}"
            + (f", duplicates {last.duplicates:,}" if last.duplicates else "")
        )


@contextmanager
def shown() -> Iterator[Display]:
    """A display on standard error: results may go to standard output."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with _logged():
            yield Display(lambda progress: LOG.info("%s", progress), lambda: None)
        return
    with Live(Text("waiting for the first micro-batch"), console=console, auto_refresh=False) as live:
        yield Display(lambda progress: live.update(_line(progress), refresh=True), live.stop)


def _line(progress: Progress) -> Text:
    """The same words as in a log; what calls for attention in colour."""
    line = Text().append(f"{progress.name}  ", style="bold")
    for part in progress.parts():
        alarming = part.startswith(("late", "bad")) and not part.endswith(" 0")
        line.append(part, style="yellow" if alarming else "default").append("  ")
    return line


@contextmanager
def _logged() -> Iterator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    level = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(level)
