"""Loops that are compiled however little they have to do: those that call the C library cannot run as plain Python."""

from __future__ import annotations

from typing import Any

from windrow.compiling.native import loop
from windrow.compiling.tiers import Kernel


def native(kernel: Kernel) -> Any:
    """The loop as compiled code alone."""
    return loop(kernel.py_func, kernel.options)
