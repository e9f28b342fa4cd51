"""What does it cost that integers of user functions never wrap around?

Functions of the user's own over the stream of *windows*, each compiled twice: as windrow does, with a look at the processor's
overflow flag after each operation on integers, and as Numba does by itself, without one. Aggregates are asked for in 20 windows in
order; the step places windows that end once their values add up to about 10,000. Floats have nothing to look at. Times are those of
the processor, which other work on the machine disturbs least.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numba
import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, at_most, race, rate
from benchmarks.support.streams import TIME, Stream, drain, drive, one_key
from benchmarks.windows import windows_query
from windrow.compiling import native


@contextmanager
def unchecked() -> Iterator[None]:
    """Functions that are compiled in here keep Numba's own arithmetic."""
    checking = native.Checking
    native.Checking = numba.core.compiler.Compiler
    try:
        yield
    finally:
        native.Checking = checking


def by_processor(query: wr.Query, stream: Stream) -> Callable[[], float]:
    """As `clocked`, in seconds of the processor."""

    def run() -> float:
        start = time.process_time()
        drain(query, stream)
        return time.process_time() - start

    return run


def require_difference() -> None:
    """An error unless the rival does wrap around, and windrow does not."""
    table = pa.table({"ts": pa.array([0, 0]).cast(TIME), "value": [2**62, 2**62]})
    with unchecked():
        assert total(0).run(table)["a"][0].as_py() == -(2**63)
    try:
        total(0).run(table)
    except wr.UserFunctionError:
        return
    raise AssertionError("an overflow was not found")


# Each call makes functions anew, which are then compiled anew.
def total(identity: float) -> wr.Query:
    own = wr.aggregate(lift=lambda value: value, combine=lambda a, b: a + b, identity=identity)
    return windows_query(20, {"a": own})


def pair() -> wr.Query:
    own = wr.aggregate(
        lift=lambda value: (value, 1),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lower=lambda a: a[0] // a[1],
        identity=(0, 0),
    )
    return windows_query(20, {"a": own})


def polynomial() -> wr.Query:
    own = wr.aggregate(
        lift=lambda value: (3 * value + 5) * value * value - 7 * value + 1,
        combine=lambda a, b: a + b,
        identity=0,
    )
    return windows_query(20, {"a": own})


def step() -> wr.Query:
    def filled(amount, value):  # type: ignore[no-untyped-def]
        after = amount + value + 1
        full = 1 if after >= 10_000 else 0
        return after * (1 - full), 1 if amount == 0 else 0, full

    return wr.query(
        time="ts", windows={"w": wr.deterministic(filled, state=0)}, aggregates={"a": wr.sum("value")}
    )


# What is timed, and how many times as long the checked one may take.
ASKED: tuple[tuple[str, Callable[[], wr.Query], float], ...] = (
    ("sum of integers", partial(total, 0), 1.5),
    ("pair of integers", pair, 1.5),
    ("polynomial of integers", polynomial, 1.5),
    ("sum of floats", partial(total, 0.0), 1.1),
    ("step of a window", step, 1.5),
)


def measure(scale: Scale) -> list[Table]:
    require_difference()
    integers = one_key(scale.events, scale.batch)
    floats = one_key(scale.events, scale.batch, floating=True)
    lines = []
    for name, asked, bound in ASKED:
        stream = floats if "floats" in name else integers
        checked, plain = asked(), asked()
        first = [table["a"] for table in drive(checked, stream)]
        with unchecked():
            again = [table["a"] for table in drive(plain, stream)]
        for one, other in zip(first, again, strict=True):
            np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())
        best = race({"checked": by_processor(checked, stream), "plain": by_processor(plain, stream)}, scale)
        figures: dict[str, Figure] = {
            "checked, M events/s": rate(scale.events, best["checked"]),
            "unchecked, M/s": rate(scale.events, best["plain"]),
            "time, ratio": best["checked"] / best["plain"],
        }
        lines.append(Line(name, figures, at_most("time, ratio", bound)))
    return [
        Table(
            "Functions of integers, checked", tuple(lines), ours="checked, M events/s", beside="time, ratio"
        )
    ]
