"""A line for a person who waits because loops are compiled.

    windrow: compiling fold_cells, list_due and 3 others, 1.3 s so far; kept for the next time in /home/me/.cache/windrow

It is written once in a process, when compiling has taken a second: to a terminal or a notebook, and nowhere else.
`WINDROW_QUIET=1` turns it off.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from windrow.compiling.folder import cache_directory

PATIENCE = 1.0
_NAMES: list[str] = []
_seconds = 0.0
_is_said = False


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Around the compiling of a loop."""
    global _seconds
    _NAMES.append(name)
    begin = time.perf_counter()
    try:
        _say_if_due()
        yield
    finally:
        _seconds += time.perf_counter() - begin
        _say_if_due()


def _say_if_due() -> None:
    global _is_said
    if _is_said or _seconds < PATIENCE or not is_read():
        return
    _is_said = True
    names = list(dict.fromkeys(_NAMES))
    others = f" and {len(names) - 2} others" if len(names) > 3 else ""
    where = cache_directory()
    kept = (
        "in memory only, for there is no folder to keep it"
        if where is None
        else f"for the next time in {where.parent}"
    )
    shown = ", ".join(names[:2] if others else names)
    print(
        f"windrow: compiling {shown}{others}, {_seconds:.1f} s so far; kept {kept}",
        file=sys.stderr,
        flush=True,
    )


def is_read() -> bool:
    """Whether somebody sees what is written, at a terminal or in a notebook, and wants to."""
    if os.environ.get("WINDROW_QUIET"):
        return False
    return _is_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _is_notebook() -> bool:
    """Whether this process is the kernel of a notebook, and has not only imported what one is made of."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
