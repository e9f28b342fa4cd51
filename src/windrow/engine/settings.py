"""How an operator runs, and what it has counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.engine.pairing import store_named
from windrow.errors import QueryError

MODES = ("append", "update")


@dataclass(frozen=True)
class Settings:
    """How an operator runs; see `Query.operator`."""

    mode: str
    lateness: Duration
    on_bad: str
    max_slices: int
    max_ahead: Duration | None
    store: str = "auto"

    @classmethod
    def of(
        cls,
        mode: str,
        lateness: DurationLike | Duration,
        on_bad: str,
        max_slices: int,
        max_ahead: DurationLike | Duration | None,
        store: str = "auto",
    ) -> Settings:
        if mode not in MODES:
            raise QueryError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        if on_bad not in ("raise", "divert"):
            raise QueryError(f"on_bad must be raise or divert, not {on_bad!r}")
        late = parse_duration(lateness, what="lateness")
        if late.magnitude < 0:
            raise QueryError(f"lateness must not be negative, not {lateness!r}")
        ahead = None if max_ahead is None else parse_duration(max_ahead, what="max_ahead")
        if ahead is not None and ahead.magnitude <= 0:
            raise QueryError(f"max_ahead must be longer than zero, not {max_ahead!r}")
        if not isinstance(max_slices, int) or max_slices < 1:
            raise QueryError(f"max_slices must be at least 1, not {max_slices!r}")
        if store != "auto":
            store_named(store)
        return cls(mode, late, on_bad, max_slices, ahead, store)


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
