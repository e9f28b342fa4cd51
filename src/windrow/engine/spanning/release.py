"""When windows are given out: some time after the watermark has reached their ends.

An event is known once it is over, and it may have begun long before. So a window waits for the events that began
in it and still last: the time to postpone of Suzanne et al. (section 2.4). It is fixed, or learned: as long as a
chosen share of the events seen so far has lasted at most. What comes even later revises the window, or is late.

Lengths are counted in steps that grow with them, sixteen to each doubling, and a length counts as the next step that
is not shorter. So an answer is at most a sixteenth too long and never too short.
"""

from __future__ import annotations

import math

import numpy as np

from windrow.durations import Duration
from windrow.measure import Measure, Tick
from windrow.span import Learned

STEPS = 16
# The powers of two between which lengths lie: those of 64-bit numbers, and those of floats.
WHOLE, FLOATING = (0, 65), (-1075, 1025)


class Release:
    """The delay between the watermark and the windows that it completes."""

    def __init__(self, delay: Duration | Learned, measure: Measure) -> None:
        self._floating = measure.floating
        self._lowest, highest = FLOATING if measure.floating else WHOLE
        self._quantile = delay.quantile if isinstance(delay, Learned) else None
        self._fixed: Tick = 0 if isinstance(delay, Learned) else measure.ticks(delay, what="release")
        room = 0 if self._quantile is None else STEPS * (highest - self._lowest)
        self.seen = np.zeros(room, np.int64)

    def note(self, lengths: np.ndarray | None) -> None:
        """Learn how long events have lasted."""
        if lengths is None:
            return
        mantissa, exponent = np.frexp(lengths)
        step = (exponent - 1 - self._lowest) * STEPS + np.ceil((2 * mantissa - 1) * STEPS).astype(np.int64)
        np.add.at(self.seen, np.clip(step, 0, len(self.seen) - 1), 1)

    def lengths(self, starts: np.ndarray, lasts: np.ndarray) -> np.ndarray | None:
        """How long events last from their first to their last instants, as floats that are not too small.

        None if nobody wants to know.
        """
        if self._quantile is None:
            return None
        if self._floating:
            ends = np.nextafter(lasts, np.inf)
            length = ends - starts
            # What rounding has taken away (Knuth's two-sum).
            shift = ends - length
            lost = (ends - (length + shift)) + (shift - starts)
            return np.where(lost > 0, np.nextafter(length, np.inf), length)
        # Without a sign, because a length need not be an int64.
        ticks = lasts.astype(np.uint64) - starts.astype(np.uint64) + np.uint64(1)
        exact = ticks <= np.uint64(2**53)
        length = ticks.astype(np.float64)
        return np.where(exact, length, np.nextafter(length, np.inf))

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
        length = math.ldexp(1 + part / STEPS, exponent + self._lowest)
        return length if self._floating else math.ceil(length)
