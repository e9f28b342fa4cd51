"""Streams, and operators side by side with their naive models."""

from __future__ import annotations

import random

import pyarrow as pa

from tests.referee.policies import PUNCTUATION
from windrow import policies as wp

SECOND = 1_000_000_000
SCHEMA = pa.schema(
    [("id", pa.int64()), ("t", pa.int64()), ("k", pa.string()), ("g", pa.string()), ("x", pa.int64())]
)
# Windows of operators that look at each row.
ONE_BY_ONE = [
    "sliding, count(3), count(1)",
    "sliding, delta(t, 4), count(1)",
    "sliding, time(3), count(1)",
    "sliding, count(2), count(1), partitioned",
    "sliding, delta(t, 4), count(1), partitioned, partitionCount(2)",
    "sliding, count(5), count(1), partitioned, tupleCount(4)",
]


class HeldUpClock(wp.VirtualClock):
    """A clock whose calls may come late."""

    def skip_to(self, instant):
        """Be at an instant without making any calls on the way: as if whoever makes them was held up."""
        assert instant >= self._now
        self._now = instant


def stream(seed, length=40, keys="abc"):
    """Steps of a stream: rows that come together, time that passes, punctuations."""
    chance = random.Random(seed)
    steps, number, t = [], 0, 0
    while number < length:
        what = chance.random()
        if what < 0.25:
            steps.append(("pass", chance.randint(1, 4)))
        elif what < 0.4:
            steps.append(("mark", None))
        else:
            rows = []
            for _ in range(chance.randint(1, 7)):
                t += chance.choice([0, 0, 1, 1, 2, 5])
                k, g = chance.choice(keys), chance.choice("uvw")
                x = chance.choice([None, chance.randint(-9, 9), chance.randint(-9, 9)])
                rows.append({"id": number, "t": t, "k": k, "g": g, "x": x})
                number += 1
            steps.append(("rows", rows))
    return steps


def table_of(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def flat(stretch):
    """Rows and punctuations, one after the other."""
    rows, found = stretch.table.to_pylist(), []
    marks = stretch.marks.tolist()
    for place in range(len(rows) + 1):
        found += [PUNCTUATION] * marks.count(place)
        found += rows[place : place + 1]
    return found


def run(make, naive, steps):
    """An operator with one input and its naive model, through the same steps; what both have given out."""
    clock = wp.VirtualClock()
    operator, given = make(clock=clock), []
    for what, thing in steps:
        if what == "rows":
            given += flat(operator.process(table_of(thing))[0])
            naive.process(thing)
        elif what == "pass":
            clock.advance(thing)
            given += flat(operator.poll()[0])
            naive.window.advance(clock.now())
        else:
            given += flat(operator.process(wp.Punctuated.of(table_of([]), [0]))[0])
            naive.window.punctuate()
    given += flat(operator.finish()[0])
    naive.finish()
    return given, naive.given
