"""The batch job of `benchmarks.rivals`, written as users of Polars and of DuckDB would write it.

Each opponent is a module with `load(events, threads)`, which takes over the events, with `FORMS`, the
ways to write the job, and with `to_arrow` for a result. `worker` runs one in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TUMBLING, SLIDING, BOTH = "tumbling 60 s", "sliding 60 s every 1 s", "both"


@dataclass(frozen=True)
class Form:
    """One way to write one job; `run` gives a result per window, with columns key, start, total, top.

    *Hand-sliced* forms aggregate to seconds first and merge those, which the user has to know and to
    write; the others say what is wanted and leave the rest to the library. A form without `run` is not
    timed itself.
    """

    job: str
    name: str
    run: Callable[[Any], list[Any]] | None
    hand_sliced: bool = False
