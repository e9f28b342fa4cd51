"""What do windows cost that the data places?

One key, integer sum, events 1 ms apart and in order, beside one tumbling window of 1 s. A mark comes once in a
thousand events; a price swings between 8 and 12 every 2 s, with some noise. The trader's window is the example
that opens the paper on Cutty, a plain Python function that is compiled: above a price of 10 it covers 10 s every
5 s, else 5 s every 2 s. The windows of a short stream are the oracle's; on the whole stream each event counts as
often as it should.
"""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks.support.beside import NOTE, RATIO, Case, answer, line, require_same
from benchmarks.support.harness import Line, Scale, Table, at_least
from benchmarks.support.streams import Stream, drive, readings
from tests.referee import oracle
from windrow.compiling.compiler import InterpretedWarning
from windrow.testing import assert_same

TARGET = at_least("M events/s", 50)
SECOND = 1_000
NEVER = 2**62
CHECKED = 20_000


def follow_the_price(state, ts, price):
    """One trade: the state after it, how many windows begin with it, how many ended before it.

    `due` is when the next window begins; `a` to `d` are when the open ones end, oldest first (see
    `examples/trader.py`).
    """
    due, a, b, c, d = state
    ends = 0
    while a <= ts:
        a, b, c, d = b, c, d, NEVER
        ends += 1
    if ts < due:
        return (due, a, b, c, d), 0, ends
    slide, length = (2 * SECOND, 5 * SECOND) if price <= 10 else (5 * SECOND, 10 * SECOND)
    begin = due + (ts - due) // slide * slide
    end = begin + length
    if a == NEVER:
        a = end
    elif b == NEVER:
        b = end
    elif c == NEVER:
        c = end
    else:
        d = end
    return (begin + slide, a, b, c, d), 1, ends


COLUMN, EXPRESSION = "threshold, column", "threshold, expression"
WINDOWS: dict[str, wr.Window] = {
    "punctuated, column": wr.punctuated("mark"),
    "delta": wr.delta("price", by=0.5),
    COLUMN: wr.threshold("high"),
    EXPRESSION: wr.threshold(pc.field("price") > 10),
    "trader's window, compiled": wr.deterministic(
        follow_the_price, state=(0, NEVER, NEVER, NEVER, NEVER), name="trader"
    ),
}
# Windows one after the other, which hold all events, and those that hold all above the threshold.
COVERING, ABOVE = ("punctuated, column", "delta"), (COLUMN, EXPRESSION)


def query_of(name: str, window: wr.Window) -> wr.Query:
    return wr.query(time="ts", windows={name: window}, aggregates={"total": wr.sum("value")})


def check(queries: dict[str, wr.Query], stream: Stream) -> dict[str, int]:
    """Each event counts once, or not at all; gives the number of windows of each kind."""
    found = {name: answer(query, stream) for name, query in queries.items()}
    _, values, _, high, _ = stream.columns
    for names, total in ((COVERING, values.sum()), (ABOVE, values[high].sum())):
        for name in names:
            assert found[name].answer.sum() == total, f"{name}: the windows do not add up to {total}"
    require_same(found[COLUMN], found[EXPRESSION], "both ways to write a threshold")
    return {name: len(rows) for name, rows in found.items()}


def check_with_oracle(queries: dict[str, wr.Query]) -> None:
    """On a short stream, every window is the one that plain Python finds, and nothing is interpreted."""
    stream = readings(CHECKED, CHECKED // 4)
    events = pa.Table.from_batches(stream.batches)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterpretedWarning)
        for name, query in queries.items():
            assert_same(oracle(query, events), pa.concat_tables(drive(query, stream)), note=name)


def measure(scale: Scale) -> list[Table]:
    queries = {name: query_of(name, window) for name, window in WINDOWS.items()}
    context_free = query_of("1 s", wr.tumbling("1 second"))
    check_with_oracle(queries)
    stream = readings(scale.events, scale.batch)
    windows = check(queries, stream)
    assert answer(context_free, stream).answer.sum() == np.sum(stream.columns[1])
    lines = []
    for name, query in queries.items():
        measured = line(Case(name, query, context_free, stream, TARGET), scale)
        columns = {**measured.figures, "windows": windows[name]}
        lines.append(Line(name, columns, TARGET, headline=True))
    return [Table("Windows that the data places", tuple(lines), ours="M events/s", beside=RATIO, note=NOTE)]
