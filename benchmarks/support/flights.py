"""A year of flights from New York as span events, read by `examples/in_the_air.py`."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path

import pyarrow as pa

from benchmarks.support.streams import TIME

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FLIGHTS = 327_346


@cache
def all_flights() -> pa.Table:
    """From departure to landing, in the order of landings: departed, landed, origin, minutes."""
    sys.path.insert(0, str(EXAMPLES))  # examples are scripts beside the package
    try:
        flights = importlib.import_module("in_the_air").load()
    finally:
        sys.path.remove(str(EXAMPLES))
    assert len(flights) == FLIGHTS
    times = {name: flights[name].cast(TIME) for name in ("departed", "landed")}
    return pa.table(times | {name: flights[name] for name in ("origin", "minutes")}).combine_chunks()


def flights_job(events: int) -> pa.Table:
    """The first flights of the year that landed."""
    return all_flights().slice(0, events)
