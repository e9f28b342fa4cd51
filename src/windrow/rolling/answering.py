"""Answers made inside the loop: a partial that is final is lowered where it lies, and never written.

    apart      loop -> column of partials -> lower -> column of answers      two columns through memory
    inside     loop, lower -> column of answers                              one

Loops `give` what they found: the partial, unless they are compiled with the operations from here. These are for
numbers of built-in aggregates, and for windows that all have the same number of values. A function of the user's own
may fail, and lowered apart its error names the window. Likewise an answer that its type cannot hold is written
as if it were not defined; all answers are then made again, apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from windrow.aggregates.base import Bound, Scalars
from windrow.engine.functions.bound_kernels import DTYPES, Operations

# A loop is compiled once more to give answers; that pays for long columns.
LEAST_ANSWERS = 1 << 16


class DoesNotFit(Exception):
    """An answer is beyond its type."""


def can_give_answers(bound: Bound, count: int) -> bool:
    """Whether `count` partials of this kind are to be lowered inside a loop."""
    numbers = isinstance(bound.partial, Scalars) and not bound.partial.own and bound.lower is not None
    checked = bound.check is None or bound.fits is not None
    return numbers and checked and count >= LEAST_ANSWERS


def giving_answers(operations: Operations, bound: Bound) -> Operations:
    """The operations of an aggregate, where a loop gives the numbers of an answer and whether it is defined."""
    assert bound.lower is not None
    return _giving(operations, bound.lower, bound.fits, len(bound.outputs))


# An aggregate is bound anew for each window, but what it is lowered with is the same function.
@cache
def _giving(
    operations: Operations, lower: Callable[..., Any], fits: Callable[..., Any] | None, outputs: int
) -> Operations:
    written = "".join(f"    out[{k}][i] = answer[{k}]\n" for k in range(outputs + 1))
    if fits is not None:
        written = f"    out[0][i] = answer[0]\n    out[1][i] = answer[{outputs}] and fits(answer)\n"
    fields = "".join(f"partial[{k}], " for k in range(len(operations.dtypes)))
    source = f"def give(out, i, partial, n):\n    answer = lower(({fields}), n)\n{written}"
    scope: dict[str, Any] = {"__name__": __name__, "lower": lower, "fits": fits}
    exec(compile(source, "<windrow answers>", "exec"), scope)
    identity = f"{source}{lower.__module__}.{lower.__qualname__}"
    scope["give"].__qualname__ = f"give_{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    others = [(name, function) for name, function in operations.functions if name != "give"]
    return replace(operations, functions=(*others, ("give", scope["give"])))


def room_for_answers(bound: Bound, count: int) -> tuple[np.ndarray, ...]:
    """Arrays for `count` answers: those of their numbers, and of whether they are defined."""
    outputs = bound.outputs if bound.fits is None else bound.outputs[:1]
    return *(np.empty(count, DTYPES[d]) for d in outputs), np.empty(count, np.bool_)
