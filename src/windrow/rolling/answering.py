"""Answers made inside the loop: a partial that is final is lowered where it lies, and never written.

    apart      loop -> column of partials -> lower -> column of answers      two columns through memory
    inside     loop, lower -> column of answers                              one

Loops `give` what they found: the partial, unless they are compiled with the operations from here. These are for
numbers of built-in aggregates, and for windows that all have the same number of values. A function of the user's own
may fail, and lowered apart its error names the window. Likewise an answer that its type cannot hold is written
as if it were not defined; all answers are then made again, apart.
"""

from __future__ import annotations

import numpy as np

from windrow.aggregates.base import Bound, Scalars
from windrow.engine.functions.bound_kernels import DTYPES

# A loop is compiled once more to give answers; that pays for long columns.
LEAST_ANSWERS = 1 << 16


class DoesNotFit(Exception):
    """An answer is beyond its type."""


def can_give_answers(bound: Bound, count: int) -> bool:
    """Whether `count` partials of this kind are to be lowered inside a loop."""
    numbers = isinstance(bound.partial, Scalars) and not bound.partial.own and bound.lower is not None
    checked = bound.check is None or bound.fits is not None
    return numbers and checked and count >= LEAST_ANSWERS


def room_for_answers(bound: Bound, count: int) -> tuple[np.ndarray, ...]:
    """Arrays for `count` answers: those of their numbers, and of whether they are defined."""
    outputs = bound.outputs if bound.fits is None else bound.outputs[:1]
    return *(np.empty(count, DTYPES[d]) for d in outputs), np.empty(count, np.bool_)
