"""Windows whose edges depend on the order of events: from runs of events to windows over ranks.

    run        what goes in and what comes out
    base       what every discretizer does
    loop       the loop of all deterministic windows; `recipes` says what each of them needs
    counted, looking_back, latest, evicting      windows with ways of their own
    checks     rows and types that a window cannot take; `gaps` those of sessions

`discretizers_for` gives the discretizers of a query.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from windrow.engine.sequence import recipes
from windrow.engine.sequence.base import Discretizer
from windrow.engine.sequence.checks import bad_rows, check_types
from windrow.engine.sequence.counted import Counted
from windrow.engine.sequence.evicting import Evicting
from windrow.engine.sequence.gaps import gaps_of
from windrow.engine.sequence.latest import LatestEvents
from windrow.engine.sequence.looking_back import LookingBack
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.stepped import Recipe, Stepped
from windrow.engine.sequence.user_step import UserStepped
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.windows.advancing import Advancing
from windrow.windows.base import Window
from windrow.windows.delta import Delta
from windrow.windows.deterministic import Deterministic
from windrow.windows.latest import Latest
from windrow.windows.layout import needs_order
from windrow.windows.nondeterministic import Nondeterministic
from windrow.windows.punctuated import Punctuated
from windrow.windows.rows import Rows
from windrow.windows.slide_by_rows import SlideByRows
from windrow.windows.threshold import Threshold

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


def discretizer_for(
    window: Window, measure: Measure, schema: pa.Schema, *, name: str | None = None
) -> Discretizer:
    """The discretizer of a window over a table of this schema.

    `name` is what the query calls the window, for errors.
    """
    check_types(name, window, schema, measure)
    shown = f"the window {window}" if name is None else f"window {name!r}"
    if isinstance(window, Rows):
        return Counted([window], measure.dtype, shown=shown)
    if isinstance(window, SlideByRows):
        return LookingBack(window, measure)
    if isinstance(window, Latest):
        return LatestEvents(window, measure)
    if isinstance(window, Deterministic):
        return UserStepped(window, measure, schema, shown=shown)
    if isinstance(window, Nondeterministic):
        return Evicting(window, measure, schema, shown=shown)
    return Stepped(_recipe(window, measure, schema, shown), measure.dtype, shown=shown)


def discretizers_for(
    windows: Mapping[str, Window], measure: Measure, schema: pa.Schema
) -> list[tuple[np.ndarray, Discretizer]]:
    """The discretizers of the windows that depend on order, with the places of their windows."""
    counts = [(i, w) for i, w in enumerate(windows.values()) if isinstance(w, Rows)]
    found: list[tuple[np.ndarray, Discretizer]] = []
    if counts:
        shown = f"window {next(n for n, w in windows.items() if isinstance(w, Rows))!r}"
        counted = Counted([window for _, window in counts], measure.dtype, shown=shown)
        found.append((np.array([i for i, _ in counts]), counted))
    for i, (name, window) in enumerate(windows.items()):
        if needs_order(window) and not isinstance(window, Rows):
            one = discretizer_for(window, measure, schema, name=name)
            found.append((np.array([i]), one))
    return found


def _recipe(window: Window, measure: Measure, schema: pa.Schema, shown: str) -> Recipe:
    if isinstance(window, Punctuated):
        return recipes.punctuated(window, measure, schema, shown=shown)
    if isinstance(window, Threshold):
        return recipes.threshold(window, measure, schema, shown=shown)
    if isinstance(window, Delta):
        return recipes.delta(window, schema)
    if isinstance(window, Advancing):
        return recipes.advancing(window, schema)
    raise QueryError(f"{window} is not a window that depends on the order of events")
