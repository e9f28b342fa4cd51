"""The source of the loop around `evict`, `trigger` and `update`.

    content     [  o  o  o  o  o  ]  <-- o        the event joins
    evict          2, then 1, then 0              asked until it returns 0 or nothing is left
    trigger     ------ [  o  o  o ]               the content now, if it says so
    update                                        the state for the next event

Each function is called with what its parameters name: the state, `rows`, `oldest`, or columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

FINE, NEED_TIMES, NEGATIVE, TOO_MANY = range(4)
ROLES = ("evict", "trigger", "update")


@cache
def source(roles: tuple[tuple[str, ...], ...], columns: tuple[str, ...], kinds: str, *, bare: bool) -> str:
    """`discretize` for functions with these parameters; the third is there only if `update` is.

    Segment s is the rows `bounds[s] .. bounds[s+1]-1`, whose first has the rank `first[s]`; its content
    begins with the rank `begin[s]` and its state is `s0[s], ..`; both are updated in place. If a function
    asks for `oldest`, the times of the ranks `begin[s] .. held_to[s]-1` are `held[held_from[s]]` and
    following; a rank of an earlier run that is not there ends the loop with NEED_TIMES. Returns a status
    and how many windows there are: `out_segment`, `out_begin`, `out_row` (the
    row that triggered it). `note` keeps the row, the function, and the rows in the content.
    """
    fields = len(kinds)
    state = "a0" if bare else "(" + "".join(f"a{i}, " for i in range(fields)) + ")"
    new = state.replace("a", "b")
    named = {"state": state, "rows": "rows", "oldest": "oldest"}
    named |= {name: f"x{i}[i]" for i, name in enumerate(columns)}
    calls = [
        f"{role}({', '.join(named[name] for name in names)})"
        for role, names in zip(ROLES, roles, strict=False)
    ]
    timed = any("oldest" in names for names in roles)
    inputs = "".join(f"x{i}, " for i in range(len(columns)))
    states = "".join(f"s{i}, " for i in range(fields))
    load = _lines(8, [f"a{i} = s{i}[s]" for i in range(fields)])
    store = _lines(12, [f"s{i}[s] = a{i}" for i in range(fields)])
    casts = [f"a{i} = {'float' if kind == 'f' else 'np.int64'}(b{i})" for i, kind in enumerate(kinds)]
    updated = _lines(12, _note(2), *([f"{new} = {calls[2]}"], casts)) if len(calls) > 2 else ""
    find = _find_oldest() if timed else []
    return f"""
def discretize(bounds, first, times, {inputs}{states}begin, held, held_from, held_to, out_segment, out_begin, out_row, note, note_time):
    n = 0
    oldest = note_time[0]
    for s in range(first.shape[0]):
        low = bounds[s]
        initial = content = begin[s]
{load}        for i in range(low, bounds[s + 1]):
            rows = first[s] + (i - low) + 1 - content
            while rows > 0:
{_lines(16, find, _note(0))}                leaving = np.int64({calls[0]})
                if leaving < 0:
                    return {NEGATIVE}, n
                if leaving > rows:
                    return {TOO_MANY}, n
                content += leaving
                rows -= leaving
                if leaving == 0:
                    break
            if rows > 0:
{_lines(16, find, _note(1))}                if {calls[1]}:
                    out_segment[n], out_begin[n], out_row[n] = s, content, i
                    n += 1
{_lines(12, ["if rows == 0:", "    oldest = times[i]"]) if timed else ""}{updated}{store}        begin[s] = content
    return {FINE}, n
"""


def _lines(indent: int, *parts: Sequence[str]) -> str:
    return "".join(f"{' ' * indent}{line}\n" for part in parts for line in part)


def _note(role: int) -> list[str]:
    return [f"note[0], note[1], note[2], note_time[0] = i, {role}, rows, oldest"]


def _find_oldest() -> list[str]:
    """The time of the first event of the content, from an earlier run or from this one."""
    return [
        "if content < held_to[s]:",
        "    oldest = held[held_from[s] + content - initial]",
        "elif content < first[s]:",
        f"    return {NEED_TIMES}, n",
        "else:",
        "    oldest = times[low + content - first[s]]",
    ]
