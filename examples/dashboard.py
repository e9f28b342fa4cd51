"""A year of departures from New York, replayed in a minute and watched in a browser: `make dashboard`.

    python examples/dashboard.py [--seconds 60] [--port 5006]

Drag and zoom: the query gets windows that fit, while it runs. They are answered from the slices of a quarter of an hour that are there.
"""

from __future__ import annotations

import argparse
import threading

import pyarrow.compute as pc
from flights import load

import windrow as wr
from windrow.live.board import finest
from windrow.live.replay import PACE, replay

DELAYS = wr.query(
    time="scheduled",
    key="origin",
    windows=dict(
        [
            ("24 hours", wr.sliding("24 hours", every="1 hour")),
            ("week", wr.tumbling("7 days")),
            finest("15 minutes"),
        ]
    ),
    aggregates={
        "flights": wr.count(),
        "mean delay": wr.mean("delay"),
        "p90 of the delay": wr.quantile("delay", 0.9),
        "delay": wr.m4("delay"),
    },
)


def main() -> None:
    parser = argparse.ArgumentParser(description="The flights of a year in a browser.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the year takes")
    parser.add_argument("--port", type=int, default=5006)
    options = parser.parse_args()
    flights = load(None)
    operator = DELAYS.operator(mode="update", lateness="366 days")
    asleep = threading.Event()
    with wr.dashboard(operator, title="Departures from New York, 2013", port=options.port) as live:
        print(f"{live.url}   Ctrl-C ends it", flush=True)
        try:
            replay(live, flights, seconds=options.seconds, wait=asleep.wait)
            while True:  # readers go on zooming
                live.advance(pc.max(flights["scheduled"]))
                asleep.wait(1 / PACE)
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
