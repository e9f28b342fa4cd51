"""Stores under the clock: a column goes in, the answers of all windows that end in it come out.

The window is filled before the clock starts, so that each row that is timed ends a window, or a part of one if the
slide is longer. `lazy` is the paper's Recal: it combines the whole window anew for each answer, and is left out where
that would take too long, as in the paper.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers.experiment import Scale, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.timing import Measured, Work, measured
from benchmarks.support.harness import Figure, clocked
from windrow.rolling import Rolling

STORES = ["lazy", "two_stacks", "slick_deque", "daba_lite", "sba", "pba"]
RIVALS = ["two_stacks", "slick_deque"]
TOO_SLOW = "too slow"
# Combines that `lazy` may need for the fewest rows it is measured on.
PATIENCE = 500_000_000
SAMPLE = 20_000
THROUGHPUT = "rows/s"


def uniform(rows: int) -> np.ndarray:
    """The synthetic stream: values from a uniform distribution."""
    return np.random.default_rng(4).random(rows)


def readings(setting: Setting, rows: int) -> np.ndarray:
    """The machine's energy, 100 readings per second."""
    values = stream(setting, "machine", rows, per_second=100).table["value"].to_numpy()
    return values[:rows].astype(np.float64)


def rolling(values: np.ndarray, rows: int, every: int, store: str) -> Work:
    """The maximum of the last `rows` rows, every `every` rows."""

    def work(events: int) -> float:
        window = Rolling(wr.max("value"), rows=rows, every=every, store=store)
        column = values if len(values) >= rows + events else np.resize(values, rows + events)
        window.process(pa.table({"value": column[:rows]}))
        rest = pa.table({"value": column[rows : rows + events]})
        return clocked(partial(window.process, rest))()

    return work


def require_agreement(values: np.ndarray, rows: int, every: int, stores: list[str]) -> None:
    """All stores give the same answers."""
    table = pa.table({"value": np.resize(values, rows + SAMPLE)})
    expected: pa.Array | None = None
    for store in stores:
        found = Rolling(wr.max("value"), rows=rows, every=every, store=store).process(table)
        if expected is None:
            expected = found
        assert expected.equals(found), f"{store}: other answers than {stores[0]}, {rows} rows every {every}"


def able(rows: int, every: int, scale: Scale) -> list[str]:
    """The stores that are run on windows of that size."""
    slow = scale.least // every * (rows // every) > PATIENCE
    return [store for store in STORES if store != "lazy" or not slow]


class Sizes:
    """The throughput of the stores by the size of windows, or by the slide."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.series: dict[str, dict[float | str, Figure]] = {store: {} for store in STORES}

    def run(self, place: float, values: np.ndarray, rows: int, every: int) -> None:
        stores = able(rows, every, self.scale)
        require_agreement(values, rows, every, [store for store in stores if store != "lazy"])
        works = {store: rolling(values, rows, every, store) for store in stores}
        found: dict[str, Measured] = measured(works, self.scale, self.scale.events)
        for store in STORES:
            self.series[store][place] = found[store].rate if store in found else TOO_SLOW

    def at(self, store: str, place: float) -> float:
        figure = self.series[store][place]
        assert isinstance(figure, float)
        return figure

    def beside_rivals(self, store: str, place: float) -> float:
        """Beside the faster of the two that the paper compares with."""
        return self.at(store, place) / max(self.at(rival, place) for rival in RIVALS)

    @property
    def places(self) -> list[float]:
        return [place for place in self.series["sba"] if not isinstance(place, str)]
