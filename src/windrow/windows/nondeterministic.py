"""Windows of the user's own that decide late: evict old events, trigger when it is time.

    events    o    o    o    o    o    o    o
    evict     0    0    0    1    1    1    1          keep three
    trigger                  T              T
                   |---------|
                                  |---------|

Each event joins the content; then `evict` takes events off its old end until it returns 0; then
`trigger` says whether the content is a window now. Where a window begins is known only when it is
triggered, so every event that may still be the first of one is kept apart: forward context aware,
Cutty's non-deterministic windows (section 3.2, after IBM SPL).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow.windows.base import Window
from windrow.windows.functions import State, columns_of, label, parameters_of, state_of

# Parameters of these names are not columns.
SPECIAL = ("state", "rows", "oldest")


@dataclass(frozen=True)
class Nondeterministic(Window):
    """Windows by eviction and trigger. `bare` says that the state is one number and not a tuple.

    `columns` may hold the name of the time column, whose values are then ticks.
    """

    evict: Callable[..., Any]
    trigger: Callable[..., Any]
    update: Callable[..., Any] | None
    state: State
    bare: bool
    columns: tuple[str, ...] = field()

    context = "forward context aware"
    layout = "ordered"
    calls_functions = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that stand for `columns`, one by one."""
        return column_parameters(self.evict, self.trigger, self.update)

    def __str__(self) -> str:
        update = "" if self.update is None else f" update {label(self.update)}"
        return f"nondeterministic evict {label(self.evict)} trigger {label(self.trigger)}{update}"


def column_parameters(
    evict: Callable[..., Any], trigger: Callable[..., Any], update: Callable[..., Any] | None
) -> tuple[str, ...]:
    """The parameters of the three functions that are columns, in order of appearance."""
    names = [*parameters_of(evict, what="evict"), *parameters_of(trigger, what="trigger")]
    names += parameters_of(update, what="update") if update is not None else ()
    return tuple(dict.fromkeys(name for name in names if name not in SPECIAL))


def nondeterministic(
    *,
    evict: Callable[..., Any],
    trigger: Callable[..., Any],
    update: Callable[..., Any] | None = None,
    state: int | float | tuple[int | float, ...] = 0,
    columns: Sequence[str] | None = None,
) -> Nondeterministic:
    """Windows of your own, by eviction and trigger.

    Each event joins the content; `evict` then removes events from its old end, and `trigger` says whether the
    content is a window. The functions have parameters by name: `state`, `rows` (how many events the content
    holds), `oldest` (the time of the oldest, in ticks), and columns of this event, the time column in ticks.

    Parameters
    ----------
    evict
        How many of the oldest events leave; it is called again until it returns 0.
    trigger
        Whether the content is a window now.
    update
        The new state; None (default) leaves the state as it is.
    state
        The first state: a number, or a tuple of numbers; 0 by default.
    columns
        The columns that the other parameters read, in the order in which they appear; None (default) for
        those of the same names.

    Returns
    -------
    Nondeterministic
        A window that is forward context aware.

    Raises
    ------
    QueryError
        If one of these is no function, or `state` holds something else than numbers.

    Examples
    --------
    >>> import windrow as wr
    >>> last_ten_when_hot = wr.nondeterministic(
    ...     evict=lambda rows: 1 if rows > 10 else 0,
    ...     trigger=lambda temperature: temperature > 90,
    ... )
    >>> last_ten_when_hot.columns
    ('temperature',)
    """
    values, bare = state_of(state, what="a nondeterministic window")
    names = column_parameters(evict, trigger, update)
    return Nondeterministic(
        evict, trigger, update, values, bare, columns_of(names, columns, what="nondeterministic")
    )
