"""Deterministic windows of the user's own: a function says at each event what begins and what ends.

    events    o    o    o    o    o    o    o
    begins    1    0    1    0    1    0    1
    ends      0    0    0    0    1    0    1          of the oldest, before this event
              |-------------------|
                        |-------------------|
                                  |------------
                                            |--

This is Cutty's discretization function (section 3.2) with a state of its own. Windows are first in,
first out: `ends` ends that many of the oldest open windows before this event, then `begins` windows
begin with it. Slicing stays minimal whatever the function computes, because it says at each event
whether a window begins. Forward context free.

Cutty's sessions end with a timeout record that is injected into the stream, such as a watermark. Here a second function says of a
state when that is, `at_watermark`, and an event at or after that instant finds them ended, whether or not a watermark came
between: so what the windows are depends on the events alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow.errors import QueryError
from windrow.windows.base import SINCE, Window
from windrow.windows.functions import State, columns_of, label, parameters_of, state_of


@dataclass(frozen=True)
class Deterministic(Window):
    """Windows by `step`, a function of the user's own. `bare` says that the state is one number and not a
    tuple.

    `columns` may hold the name of the time column, whose values are then ticks.
    """

    step: Callable[..., Any]
    state: State
    bare: bool
    columns: tuple[str, ...] = field()
    name: str = field()
    at_watermark: Callable[..., Any] | None = field(default=None, metadata={SINCE: 7})

    context = "forward context free"
    layout = "ordered"
    calls_functions = True

    def __str__(self) -> str:
        return f"deterministic {self.name}({', '.join(self.columns)})"


def deterministic(
    step: Callable[..., Any],
    *,
    state: int | float | tuple[int | float, ...],
    columns: Sequence[str] | None = None,
    name: str | None = None,
    at_watermark: Callable[..., Any] | None = None,
) -> Deterministic:
    """Windows of your own: a function says at each event how many begin and how many end.

    Windows are first in, first out. What the function remembers is its state alone, one for each key.

    Parameters
    ----------
    step
        `step(state, column, ...) -> (state, begins, ends)`, called for every event of a key in the order of
        time. It returns the new state, how many windows begin with this event, and how many of the oldest
        ones end before it.
    state
        The first state: a number, or a tuple of numbers.
    columns
        The columns that the parameters of `step` behind the first one read; None (default) for those of the
        same names. The time column comes in ticks.
    name
        What explanations and errors call it; the name of `step` by default.
    at_watermark
        `at_watermark(state) -> end`: when the windows that are open end if no event comes before, in ticks of the time column.
        With the watermark that reaches it, or an event at or after it, they end there, and the state begins anew. None
        (default): windows end with events alone.

    Returns
    -------
    Deterministic
        A window that is forward context free.

    Raises
    ------
    QueryError
        If `step` has no parameter for the state, or `state` holds something else than numbers.

    Examples
    --------
    >>> import windrow as wr
    >>> def trips(moving, speed):
    ...     now = 1 if speed > 0 else 0
    ...     return now, int(now > moving), int(now < moving)
    >>> wr.deterministic(trips, state=0).columns
    ('speed',)

    A session, which ends ten after its last event:

    >>> def visit(state, ts):
    ...     return (1, ts), int(state[0] == 0), 0
    >>> w = wr.deterministic(visit, state=(0, 0), at_watermark=lambda state: state[1] + 10)
    >>> q = wr.query(time="ts", windows={"visit": w}, aggregates={"n": wr.count()})
    >>> op = q.operator()
    >>> op.process({"ts": [1, 5, 30]}).num_rows
    0
    >>> op.advance(15).to_pylist()
    [{'window': 'visit', 'start': 1, 'end': 15, 'n': 2}]
    """
    parameters = parameters_of(step, what="step")
    if not parameters:
        raise QueryError("step needs a parameter for the state: step(state, column, ...)")
    shown = name or label(step)
    shown = "step" if shown == "<lambda>" else shown
    if not isinstance(shown, str):
        raise QueryError(f"the name of a deterministic window must be a string, not {shown!r}")
    values, bare = state_of(state, what=f"the deterministic window {shown!r}")
    if at_watermark is not None:
        asked = parameters_of(at_watermark, what="at_watermark")
        if len(asked) != 1:
            raise QueryError(
                f"at_watermark takes the state, and has {len(asked)} parameters: at_watermark(state)"
            )
    read = columns_of(parameters[1:], columns, what="step")
    return Deterministic(step, values, bare, read, shown, at_watermark)
