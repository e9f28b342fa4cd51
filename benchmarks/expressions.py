"""What does an expression cost beside the same column computed before, and a filter beside the aggregate without one?

Sliding windows of 60 s every 10 s over events in order, one key and a thousand. *before* is pyarrow computing the column, and the query over it; an
expression may take 1.2 times as long. An aggregate with `where`, of which half or a tenth of the events pass, may take 1.3 times as long
as the one without.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, at_most, clocked, race, rate

WINDOWS = {"w": wr.sliding("60 seconds", every="10 seconds")}


def events(rows: int, keys: int) -> pa.Table:
    random = np.random.default_rng(31)
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * 5, pa.int64()).cast(pa.timestamp("ms")),
            "key": random.integers(0, keys, rows),
            "price": random.random(rows),
            "quantity": random.integers(1, 100, rows),
            "part": random.integers(0, 100, rows),
        }
    )


def asked(keys: int, **aggregates: wr.Aggregate) -> wr.Query:
    return wr.query(time="ts", key="key" if keys > 1 else None, windows=WINDOWS, aggregates=aggregates)


def measure(scale: Scale) -> list[Table]:
    lines = []
    for keys in (1, 1_000):
        table = events(scale.events, keys)
        whose = "one key" if keys == 1 else f"{keys:,} keys"
        lines += [_expression(table, keys, whose, scale), _integers(table, keys, whose, scale)]
        lines += _filters(table, keys, whose, scale)
    return [Table("Expressions and filters", tuple(lines), ours="M events/s", beside="time, ratio")]


def _filters(table: pa.Table, keys: int, whose: str, scale: Scale) -> list[Line]:
    lines = []
    for name, function, column in (
        ("count", wr.count, None),
        ("sum", wr.sum, "price"),
        ("max", wr.max, "quantity"),
    ):
        for share in (50, 10):
            plain, some = (
                asked(keys, a=function(column)),
                asked(keys, a=function(column, where=f"part < {share}")),
            )
            ways = {"with": clocked(partial(some.run, table)), "without": clocked(partial(plain.run, table))}
            best = race(ways, scale)
            lines.append(_line(f"{name} where {share} %, {whose}", scale, best["with"], best["without"], 1.3))
    return lines


def _expression(table: pa.Table, keys: int, whose: str, scale: Scale) -> Line:
    ours = asked(keys, a=wr.sum(wr.expr("price * quantity")))
    theirs = asked(keys, a=wr.sum("product"))

    def before() -> pa.Table:
        product = pc.multiply(table["price"], table["quantity"].cast(pa.float64()))
        return theirs.run(table.append_column("product", product))

    assert ours.run(table).equals(before())
    best = race({"ours": clocked(lambda: ours.run(table)), "before": clocked(before)}, scale)
    return _line(f"sum of price * quantity, {whose}", scale, best["ours"], best["before"], 1.2)


def _integers(table: pa.Table, keys: int, whose: str, scale: Scale) -> Line:
    ours = asked(keys, a=wr.max(wr.expr("case when part > 50 then quantity * 2 else quantity - part end")))
    theirs = asked(keys, a=wr.max("made"))

    def before() -> pa.Table:
        twice = pc.multiply_checked(table["quantity"], 2)
        less = pc.subtract_checked(table["quantity"], table["part"])
        return theirs.run(table.append_column("made", pc.if_else(pc.greater(table["part"], 50), twice, less)))

    assert ours.run(table).equals(before())
    best = race({"ours": clocked(lambda: ours.run(table)), "before": clocked(before)}, scale)
    return _line(f"max of case, {whose}", scale, best["ours"], best["before"], 1.2)


def _line(name: str, scale: Scale, ours: float, beside: float, bound: float) -> Line:
    figures: dict[str, Figure] = {
        "M events/s": rate(scale.events, ours),
        "without, M/s": rate(scale.events, beside),
        "time, ratio": ours / beside,
    }
    return Line(name, figures, at_most("time, ratio", bound))
