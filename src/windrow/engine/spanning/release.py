"""When windows are given out: some time after the watermark has reached their ends.

An event is known once it is over, and it may have begun long before. So a window waits for the events that began
in it and still last: the time to postpone of Suzanne et al. (section 2.4). It is fixed, or learned: as long as a
chosen share of the events seen so far has lasted at most. What comes even later revises the window, or is late.

Lengths are counted in steps that grow with them, sixteen to each doubling, so that an answer is at most a sixteenth
too long and never too short.
"""

from __future__ import annotations

import math

import numpy as np

from windrow.durations import Duration
from windrow.measure import Measure, Tick
from windrow.span import Learned

STEPS = 16
# Enough doublings for the longest int64 and for floats; shorter and longer ones count as the first and the last.
LOWEST, DOUBLINGS = -64, 1088


class Release:
    """The delay between the watermark and the windows that it completes."""

    def __init__(self, delay: Duration | Learned, measure: Measure) -> None:
        self._floating = measure.floating
        self._quantile = delay.quantile if isinstance(delay, Learned) else None
        self._fixed: Tick = 0 if isinstance(delay, Learned) else measure.ticks(delay, what="release")
        self.seen = np.zeros(STEPS * DOUBLINGS if isinstance(delay, Learned) else 0, np.int64)

    def note(self, starts: np.ndarray, lasts: np.ndarray) -> None:
        """Learn how long events have lasted."""
        if self._quantile is not None:
            lengths = lasts.astype(np.float64) - starts + (0.0 if self._floating else 1.0)
            mantissa, exponent = np.frexp(np.maximum(lengths, 0.0) + 1.0)
            step = (exponent - 1 - LOWEST) * STEPS + np.ceil((2 * mantissa - 1) * STEPS).astype(np.int64)
            np.add.at(self.seen, np.clip(step, 0, len(self.seen) - 1), 1)

    @property
    def delay(self) -> Tick:
        """How long windows wait at present."""
        if self._quantile is None:
            return self._fixed
        total = int(self.seen.sum())
        if not total:
            return 0
        least = math.ceil(self._quantile * total)
        step = int(np.searchsorted(np.cumsum(self.seen), least))
        exponent, part = divmod(step, STEPS)
        length = math.ldexp(1 + part / STEPS, exponent + LOWEST) - 1.0
        return length if self._floating else math.ceil(length)
