"""Loops over the rows of sketches, as NumPy has them.

A sketch may have thousands of numbers. Compiled, a loop over them takes microseconds; as plain Python it takes
milliseconds, and so the function has a twin without a loop, which takes its place there and gives the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def in_numpy(twin: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator: `twin` stands for the function where loops are plain Python."""

    def decorated(function: F) -> F:
        function.plain = twin  # type: ignore[attr-defined]
        return function

    return decorated


def into(ufunc: np.ufunc) -> Callable[..., Any]:
    """The twin of a loop that combines one row with another, number by number."""

    def twin(row: np.ndarray, other: np.ndarray) -> None:
        ufunc(row, other, out=row)

    return twin
