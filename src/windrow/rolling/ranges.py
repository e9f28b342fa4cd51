"""Aggregates that need all values of a window: their partial is a range of a log.

A median has no partial of a fixed size, but where events come in order a window is a range of them. So the values
go to a log, and the partial of one value is the place where it lies. Two partials together reach from the first
place to the last:

    log         5 3 8 8 1 7
    places      0 1 2 3 4 5
    partials    [1, 3) + [3, 4) = [1, 4)      the values 3 8 8

Any store combines such ranges. What makes an answer of the values is the same as in the engine: lists for aggregates
of events in order, sorted values for ranks, distinct counts and the most frequent ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import INT64_MAX, Bound, Field, Scalars
from windrow.engine.at.answers import Answering, Asked, Column


def lift(place):  # type: ignore[no-untyped-def]
    return place, place + 1


def combine(a, b):  # type: ignore[no-untyped-def]
    return min(a[0], b[0]), max(a[1], b[1])


RANGE = Scalars(
    "range of the log", (Field("begin", "i", INT64_MAX), Field("end", "i", -INT64_MAX)), lift, combine
)


class Log:
    """The last values of a column, as codes; a place is how many values came before."""

    def __init__(self, floating: bool) -> None:
        self.codes = np.empty(0, np.float64 if floating else np.int64)
        self.begin = 0

    @property
    def end(self) -> int:
        return self.begin + len(self.codes)

    def extended(self, codes: np.ndarray) -> Log:
        """The log with more values at its end."""
        more = Log(self.codes.dtype.kind == "f")
        more.codes, more.begin = np.concatenate([self.codes, codes]), self.begin
        return more

    def forget(self, begin: int) -> None:
        """Drop what lies before a place."""
        if begin > self.begin:
            self.codes = self.codes[begin - self.begin :].copy()
            self.begin = begin

    def answers(self, bound: Bound, begin: np.ndarray, end: np.ndarray, decoders: list[Any]) -> pa.Array:
        """The answer for each range of places."""
        empty = begin >= end
        low = np.where(empty, 0, begin - self.begin)
        high = np.where(empty, 0, end - self.begin)
        places = np.arange(len(self.codes))
        rows = Column((self.codes,), (places, places))
        return Answering(bound, decoders, rows, name="").of(Asked(low, high, np.arange(len(low)), 1))
