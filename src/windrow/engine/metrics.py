"""What an operator counts, and what it tells of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metrics:
    """Counters since the operator was made, and sizes now.

    `events` were taken in, `late` ones missed all of their windows, `partly_late` ones are among
    `events` but missed some. `live_slices` counts slices; where all keys are cut alike, each has a cell per key;
    `partial_bytes` is what the partials of all cells need, `bytes` what everything takes. `pending`
    events are kept one by one until no earlier one can come, because a window depends on their order.
    """

    events: int
    late: int
    partly_late: int
    bad: int
    live_slices: int
    keys: int
    bytes: int
    partial_bytes: int
    pending: int
    watermark: Any


@dataclass
class Counters:
    """What an operator has seen since it was made."""

    events: int = 0
    late: int = 0
    partly_late: int = 0
    bad: int = 0
    arrivals: int = 0
