"""Draws the pictures of docs/plots.md.

python docs/pictures/plots.py        writes docs/pictures/plots-*.png and plots-plan.svg beside this file
"""

from __future__ import annotations

from pathlib import Path

from pyarrow import csv

import windrow as wr

HERE = Path(__file__).parent
FLIGHTS = csv.read_csv(HERE.parents[1] / "examples" / "storm.csv")


def main() -> None:
    delays = wr.query(
        time="scheduled",
        key="origin",
        windows={"12 hours": wr.tumbling("12 hours"), "a day": wr.sliding("1 day", every="1 hour")},
        aggregates={"flights": wr.count(), "p90": wr.quantile("delay", 0.9)},
    )
    carriers = wr.query(
        time="scheduled",
        key="carrier",
        windows={"an hour": wr.tumbling("1 hour")},
        aggregates={"mean delay": wr.mean("delay")},
    )
    busy = wr.query(
        time="scheduled",
        key="carrier",
        windows={"busy": wr.session("45 minutes")},
        aggregates={"flights": wr.count()},
    )
    figures = {
        "lines": delays.plot(FLIGHTS),
        "heatmap": carriers.plot(FLIGHTS, title="The blizzard of February 2013, carrier by carrier"),
        "bars": busy.plot(FLIGHTS),
    }
    for name, figure in figures.items():
        figure.savefig(HERE / f"plots-{name}.png", metadata={"Software": None})
        print(f"plots-{name}.png")
    (HERE / "plots-plan.svg").write_text(delays.explain().picture, "utf-8")
    print("plots-plan.svg")


if __name__ == "__main__":
    main()
