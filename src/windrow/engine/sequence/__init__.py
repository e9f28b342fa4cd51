"""Windows whose edges depend on the order of events: from runs of events to windows over ranks.

    run        what goes in and what comes out
    base       what every discretizer does
    loop       the loop of all deterministic windows; `recipes` puts a window's step into it
    counted, rewind, latest, evicting      windows with ways of their own
    checks     rows and types that a window cannot take; `gaps` those of sessions

`discretizers_for` gives the discretizers of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.sequence.base import Discretizer
from windrow.engine.sequence.checks import bad_rows, check_types
from windrow.engine.sequence.counted import Counted
from windrow.engine.sequence.gaps import gaps_of
from windrow.engine.sequence.latest import LatestEvents
from windrow.engine.sequence.recipes import recipe_of
from windrow.engine.sequence.rewind import LookingBack
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.stepped import Stepped
from windrow.measure import Measure
from windrow.windows.base import Window
from windrow.windows.deterministic import Deterministic
from windrow.windows.latest import Latest
from windrow.windows.nondeterministic import Nondeterministic
from windrow.windows.slide_by_rows import SlideByRows

__all__ = [
    "Discretizer",
    "Run",
    "Windows",
    "bad_rows",
    "check_types",
    "discretizer_for",
    "discretizers_for",
    "gaps_of",
]


def _by_user_step(*arguments: Any, **options: Any) -> Discretizer:
    from windrow.engine.sequence.user_step import UserStepped  # it imports Numba

    return UserStepped(*arguments, **options)


def _by_eviction(*arguments: Any, **options: Any) -> Discretizer:
    from windrow.engine.sequence.evicting import Evicting  # it imports Numba

    return Evicting(*arguments, **options)


# Windows that events place in other ways than step by step; count windows of a query share one discretizer.
DISCRETIZERS: dict[type[Window], Callable[..., Discretizer]] = {
    SlideByRows: LookingBack,
    Latest: LatestEvents,
    Deterministic: _by_user_step,
    Nondeterministic: _by_eviction,
}


def discretizer_for(
    window: Window, measure: Measure, schema: pa.Schema, *, name: str | None = None
) -> Discretizer:
    """The discretizer of a window over a table of this schema.

    `name` is what the query calls the window, for errors.
    """
    check_types(name, window, schema, measure)
    shown = f"the window {window}" if name is None else f"window {name!r}"
    if window.counts:
        return Counted([window], measure.dtype, shown=shown)
    if type(window) in DISCRETIZERS:
        return DISCRETIZERS[type(window)](window, measure, schema, shown=shown)
    return Stepped(recipe_of(window, measure, schema, shown=shown), measure.dtype, shown=shown)


def discretizers_for(
    windows: Mapping[str, Window], measure: Measure, schema: pa.Schema
) -> list[tuple[np.ndarray, Discretizer]]:
    """The discretizers of the windows that depend on order, with the places of their windows."""
    ordered = [(i, name, w) for i, (name, w) in enumerate(windows.items()) if w.layout == "ordered"]
    found: list[tuple[np.ndarray, Discretizer]] = []
    counts = [(i, name, w) for i, name, w in ordered if w.counts]
    if counts:
        shown = f"window {counts[0][1]!r}"
        counted = Counted([window for _, _, window in counts], measure.dtype, shown=shown)
        found.append((np.array([i for i, _, _ in counts]), counted))
    for i, name, window in ordered:
        if not window.counts:
            found.append((np.array([i]), discretizer_for(window, measure, schema, name=name)))
    return found
