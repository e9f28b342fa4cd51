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
    """See `nondeterministic`. `bare` says that the state is a lone number and not a tuple.

    `columns` may hold the name of the time column, which is then handed over in ticks.
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
    """Windows by eviction and trigger.

    All three functions get what their parameters name: `state`, `rows` (events in the content now),
    `oldest` (time of the oldest of them, in ticks), and columns of this event, the time column in
    ticks. `evict` returns how many of the oldest events leave, and is asked again until that is 0;
    `trigger` whether the content is a window now; `update` the new state. `columns` names the
    columns of the other parameters in the order in which they appear, if they differ.

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
