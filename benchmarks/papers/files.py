"""The papers' own data, for those who have it: files of the DEBS grand challenges.

    2013, football   full-game: no header, commas; sensor, time in picoseconds, x, y, z, |v|, |a|, and six more;
                     the ball has sensors 4, 8, 10 and 12; its x coordinate is the value
    2012, machine    tabs; time, index, mf01, mf02, mf03 and the states of sensors, with or without a header;
                     mf01 is the value, and each column that holds nothing but 0 and 1 is a sensor

Which of the two a file is shows in its first line.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from benchmarks.papers.experiment import Setting
from benchmarks.papers.streams import PER_SECOND, Source, football, machine, source

BALL = (4, 8, 10, 12)
FOOTBALL_COLUMNS = 13
PICOSECONDS = 1_000_000  # in a microsecond
MADE = {"football": football, "machine": machine}


def stream(setting: Setting, name: str, events: int, per_second: int | None = None) -> Source:
    """The user's file if it is of that kind, else a stream of that shape; slower where there are few events."""
    if setting.data is not None:
        given = read(setting.data)
        if given.name == name:
            return given
    return MADE[name](events, per_second or setting.scale.pick(tiny=200, small=PER_SECOND, full=PER_SECOND))


@cache
def read(path: Path) -> Source:
    """The events of a file in the order of their times."""
    with path.open() as file:
        first = file.readline()
    if first.count("\t") >= 4:
        return _machine(path, header=not first[0].isdigit())
    if first.count(",") == FOOTBALL_COLUMNS - 1:
        return _football(path)
    raise ValueError(
        f"{path} is neither a file of the DEBS grand challenge of 2012 (tabs, a time first) nor of 2013 "
        f"({FOOTBALL_COLUMNS} columns with commas between them)"
    )


def _football(path: Path) -> Source:
    names = ["sensor", "time", "value", *(f"c{i}" for i in range(3, FOOTBALL_COLUMNS))]
    table = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(column_names=names),
        convert_options=pa.csv.ConvertOptions(include_columns=names[:3]),
    )
    table = table.filter(pc.is_in(table["sensor"], value_set=pa.array(BALL))).sort_by("time")
    times = table["time"].to_numpy() // PICOSECONDS
    return source("football", times, {"value": table["value"].to_numpy()})


def _machine(path: Path, *, header: bool) -> Source:
    options = pa.csv.ReadOptions(autogenerate_column_names=not header)
    table = pa.csv.read_csv(path, read_options=options, parse_options=pa.csv.ParseOptions(delimiter="\t"))
    stamps = pc.cast(table.column(0), pa.timestamp("us", "UTC"), safe=False)
    times = stamps.cast(pa.int64()).to_numpy()
    order = np.argsort(times, kind="stable")
    columns = {"value": table.column(2).to_numpy()[order]}
    for i in range(5, table.num_columns):
        column = table.column(i).to_numpy()[order]
        if np.isin(column, (0, 1)).all():
            columns[f"sensor_{len(columns)}"] = column.astype(np.int64)
    return source("machine", times[order], columns)
