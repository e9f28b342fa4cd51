"""Answers of a technique, before they are a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.techniques.kept import Kept
from benchmarks.techniques.partials import Cells


@dataclass
class Rows:
    """Windows with an event: which window, where, of which key, and the partial in cell i.

    `kept` are the events of each, for aggregates whose partials have no fixed size.
    """

    spec: np.ndarray
    start: np.ndarray
    end: np.ndarray
    key: np.ndarray
    cells: Cells
    kept: Kept | None = None
