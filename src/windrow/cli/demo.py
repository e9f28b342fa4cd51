"""`windrow demo`: a year of flights that never were, a query over it, its table and a chart. Nothing has to be at hand for it."""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from windrow.cli.inputs import require_place
from windrow.cli.plot import PICTURES
from windrow.cli.tables import show

QUERY = """\
wr.query(
    time="scheduled",
    key="origin",
    windows={"4 weeks": wr.tumbling("28 days"), "a day": wr.sliding("1 day", every="1 hour")},
    aggregates={"flights": wr.count(), "mean": wr.mean("delay"), "p90": wr.quantile("delay", 0.9)},
)"""
DELAYS = wr.query(
    time="scheduled",
    key="origin",
    windows={"4 weeks": wr.tumbling("28 days"), "a day": wr.sliding("1 day", every="1 hour")},
    aggregates={"flights": wr.count(), "mean": wr.mean("delay"), "p90": wr.quantile("delay", 0.9)},
)


def demo_command(*, output: str | None) -> int:
    """Run it, show what came out, and draw it where that is asked for."""
    if output is not None:
        require_place(output, PICTURES)
    events = made_up()
    print(f"{len(events):,} made-up flights\n\n{QUERY}\n")
    begun = time.perf_counter()
    result = DELAYS.run(events)
    seconds = time.perf_counter() - begun
    worst = result.sort_by([("p90", "descending"), ("start", "ascending")])
    days = worst.filter(pc.equal(worst["window"].cast(pa.string()), "a day"))
    print("The worst days, by the delay that one flight in ten exceeded (minutes):")
    show(days.slice(0, 6), DELAYS.key, rows=6, lines=False)
    print("Four weeks after four weeks:")
    show(result.filter(pc.equal(result["window"].cast(pa.string()), "4 weeks")), DELAYS.key, rows=0)
    print(f"\n{len(result):,} windows of {len(events):,} events in {seconds:.2f} s", file=sys.stderr)
    if output is not None:
        wr.plot(result, aggregate=["flights", "p90"], theme="light").savefig(output)
        print(output, file=sys.stderr)
    return 0


def made_up(count: int = 200_000) -> pa.Table:
    """A year of flights that never were: busy by day, late in summer and in storms; the same in every run."""
    random = np.random.default_rng(2013)
    day = random.integers(0, 365, count)
    second = (random.beta(3, 2, count) * 17 * 3600 + 5 * 3600).astype(np.int64)
    origin = random.choice(["EWR", "JFK", "LGA"], count, p=[0.36, 0.33, 0.31])
    storms = random.choice(365, 12, replace=False)
    mean = 8 + 10 * np.exp(-(((day - 190) / 35.0) ** 2)) + 60 * np.isin(day, storms) * (second > 12 * 3600)
    delay = (random.gamma(0.6, mean / 0.6) - 6).round()
    times = np.datetime64("2013-01-01", "s") + (day * 86_400 + second).astype("timedelta64[s]")
    order = np.argsort(times, kind="stable")
    cancelled = random.random(count) < 0.02
    return pa.table(
        {
            "scheduled": times[order],
            "origin": origin[order],
            "delay": pa.array(delay[order], mask=cancelled[order]),
        }
    )
