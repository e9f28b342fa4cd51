"""The techniques that the papers compare, under the names that tables and plots show.

Each is a complete operator with `process`, `advance` and `finish`. General slicing is windrow's own engine, which
merges slices lazily, by prefix or in a tree, whichever costs least for the windows that are due: it stands for
both the lazy and the eager slicing of the papers. Scotty calls "aggregate tree" what Cutty calls RA.
Techniques for span events are written as their paper writes them, and windrow's engine is `windrow` among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks import techniques
from benchmarks.papers.scotty.count_buffer import CountBuffer
from benchmarks.support.streams import Stream
from benchmarks.techniques import spanning

SLICING = "general slicing"
IN_ORDER_ONLY = "in order only"
CANNOT = "cannot"


@dataclass(frozen=True)
class Contender:
    """A technique by name; `ordered` if it needs events in the order of their times."""

    name: str
    make: Callable[[wr.Query], Any]
    ordered: bool = False


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(SLICING, lambda query: query.operator(mode="append")),
        Contender("cutty", techniques.Cutty, ordered=True),
        Contender("pairs", techniques.Pairs, ordered=True),
        Contender("pairs+", techniques.PairsPlus, ordered=True),
        Contender("panes", techniques.Panes, ordered=True),
        Contender("aggregate buckets", techniques.AggregateBuckets),
        Contender("tuple buckets", techniques.TupleBuckets),
        Contender("tuple buffer", techniques.TupleBuffer),
        Contender("tuple buffer of rows", CountBuffer),
        Contender("aggregate tree", techniques.ReactiveAggregator),
        Contender("RA", techniques.ReactiveAggregator),
        Contender("B-Int", techniques.BaseIntervals),
        Contender("windrow", lambda query: query.operator(mode="append")),
        Contender("SE-Slicing", spanning.SeSlicing),
        *(
            Contender(f"SE-ML-Slicing, d = {height}", partial(spanning.SeMultiLevelSlicing, height=height))
            for height in (2, 3, 7, 15, 20)
        ),
        Contender("Aggregate Buckets", spanning.AggregateBuckets),
        Contender("Tuple Buckets", spanning.TupleBuckets),
        Contender("Sweeping", spanning.PlaneSweeping),
    )
}


def feed(operator: Any, stream: Stream) -> Iterator[pa.Table]:
    """The whole stream, a watermark after each batch; hands on what comes out."""
    for batch, watermark in zip(stream.batches, stream.watermarks, strict=True):
        operator.process(batch)
        yield operator.advance(watermark)
    yield operator.finish()


def exhaust(operator: Any, stream: Stream) -> int:
    """`feed`, keeping nothing but the number of rows."""
    return sum(table.num_rows for table in feed(operator, stream))


def answers(operator: Any, stream: Stream) -> pa.Table:
    """All rows that come out, in an order of their own: by window, start and end."""
    table = pa.concat_tables(feed(operator, stream)).unify_dictionaries().combine_chunks()
    table = table.set_column(
        table.column_names.index("window"), "window", pc.cast(table["window"], pa.string())
    )
    return table.sort_by([(name, "ascending") for name in ("window", "start", "end")])


def require_same(expected: pa.Table, found: pa.Table, what: str) -> None:
    """The same windows with the same answers; an error that names the column if not."""
    assert len(expected) == len(found), f"{what}: {len(found):,} rows, not {len(expected):,}"
    for name in expected.column_names:
        mine, theirs = expected[name], found[name]
        if pa.types.is_floating(mine.type):
            np.testing.assert_allclose(theirs.to_numpy(), mine.to_numpy(), 1e-9, err_msg=f"{what}: {name}")
        else:
            assert mine.equals(theirs), f"{what}: other answers in column {name!r}"


def require_agreement(query: wr.Query, makers: dict[str, Callable[[wr.Query], Any]], stream: Stream) -> None:
    """All of them give the answers of the first one."""
    expected: pa.Table | None = None
    for name, make in makers.items():
        found = answers(make(query), stream)
        if expected is None:
            expected = found
        else:
            require_same(expected, found, name)
