"""A trader's window, which follows the price: the example that opens the paper on Cutty.

    price above 10      the volume-weighted average price of 10 minutes, every 5 minutes
    price at most 10    that of 5 minutes, every 2 minutes

    minutes     0         5         10        15  17  19
    price       12        12        11        9   9   9
                |-------------------|
                          |-------------------|
                                    |-------------------|            the last of 10 minutes
                                              |---------|            the first of 5
                                                  |---------|
                                                      |---------|

A length and a slide cannot say that. A function can which says of each trade how many windows begin
with it and how many end before it (Cutty, sections 1 and 3.2).

    python examples/trader.py
"""

from __future__ import annotations

import math
import random

import pyarrow as pa

import windrow as wr

MINUTE = 60
NEVER = 2**62


def follow_the_price(state, ts, price):
    """One trade: the state after it, how many windows begin with it, how many ended before it.

    `due` is when the next window begins; `a` to `d` are when the open ones end, oldest first. There
    are never more than four: one of 10 minutes, and three of 5 that began 5, 7 and 9 minutes later.

    Windows must end in the order in which they begin. They do, because a window keeps the length that
    it began with, and because the next one begins a slide later and lasts 5 minutes at least: 5 + 5
    is not before 10, and 2 + 5 not before 5.
    """
    due, a, b, c, d = state
    ends = 0
    while a <= ts:
        a, b, c, d = b, c, d, NEVER
        ends += 1
    if ts < due:
        return (due, a, b, c, d), 0, ends
    slide, length = (2 * MINUTE, 5 * MINUTE) if price <= 10 else (5 * MINUTE, 10 * MINUTE)
    begin = due + (ts - due) // slide * slide  # slides in which nothing was traded are left out
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


REPORTS = wr.query(
    time="ts",
    key="stock",
    windows={"report": wr.deterministic(follow_the_price, state=(0, NEVER, NEVER, NEVER, NEVER))},
    aggregates={
        "trades": wr.count(),
        "low": wr.min("price"),
        "volume": wr.sum("volume"),
        "vwap": wr.weighted_mean("price", weight="volume"),
    },
)


def trades(minutes: int = 60, *, seed: int = 1) -> pa.Table:
    """A trade every few seconds; the price dips below 10 from the 24th minute to the 40th."""
    luck = random.Random(seed)
    seconds, prices, volumes = [], [], []
    now = 9 * 60 * MINUTE
    stop = now + minutes * MINUTE
    while now < stop:
        minute = now / MINUTE - 9 * 60
        dip = 3 / (1 + math.exp(24 - minute)) - 3 / (1 + math.exp(40 - minute))
        seconds.append(now)
        prices.append(round(11.5 - dip + luck.gauss(0, 0.05), 2))
        volumes.append(luck.randint(1, 20) * 10)
        now += luck.randint(1, 9)
    return pa.table(
        {
            "ts": pa.array(seconds, pa.timestamp("s")),
            "stock": ["ACME"] * len(seconds),
            "price": prices,
            "volume": volumes,
        }
    )


def main(events: pa.Table) -> None:
    """Print the reports of a stream of trades."""
    print("stock  from      to        trades  volume    low   vwap")
    rows = REPORTS.run(events).to_pylist()
    for row in sorted(rows, key=lambda row: (row["stock"], row["start"], row["end"])):
        print(
            f"{row['stock']:<5}  {row['start']:%H:%M:%S}  {row['end']:%H:%M:%S}  {row['trades']:6}  "
            f"{row['volume']:6}  {row['low']:5.2f}  {row['vwap']:5.2f}"
        )


if __name__ == "__main__":
    main(trades())
