"""Windows that depend on the events, beside the context-free engine on the same stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.support.harness import Figure, Line, Scale, Target, clocked, race, rate
from benchmarks.support.streams import Stream, drain, drive
from windrow.query import Query

CONTEXT_FREE = "context free, M/s"
RATIO = "time, ratio"
NOTE = (
    "Ratio: the time against that of the context-free engine on the same stream. "
    "Limit: one pass of numpy.sum over the columns of the stream."
)


@dataclass(frozen=True)
class Case:
    """A query, and one with context-free windows only that it stands beside."""

    name: str
    query: Query
    context_free: Query
    stream: Stream
    target: Target | None = None


def line(case: Case, scale: Scale) -> Line:
    """Both queries and the limit, in turns."""
    contenders = {
        "ours": clocked(partial(drain, case.query, case.stream)),
        "context free": clocked(partial(drain, case.context_free, case.stream)),
        "limit": clocked(case.stream.limit),
    }
    best = race(contenders, scale)
    return Line(case.name, figures(case.stream, best), case.target, headline=case.target is not None)


def figures(stream: Stream, best: Mapping[str, float]) -> dict[str, Figure]:
    """The columns of a line, from the times of `ours`, `context free` and `limit`."""
    return {
        "M events/s": rate(len(stream), best["ours"]),
        CONTEXT_FREE: rate(len(stream), best["context free"]),
        RATIO: best["ours"] / best["context free"],
        "limit, M/s": rate(len(stream), best["limit"]),
    }


@dataclass(frozen=True)
class Rows:
    """The rows of an answer, sorted by the position of their window in the query, then by time."""

    window: np.ndarray
    start: np.ndarray
    end: np.ndarray
    answer: np.ndarray

    def __len__(self) -> int:
        return len(self.window)

    def of(self, low: int, high: int | None = None) -> Rows:
        """Those of the windows low .. high-1 of the query, or of one window."""
        part = slice(*np.searchsorted(self.window, [low, low + 1 if high is None else high]))
        return Rows(self.window[part], self.start[part], self.end[part], self.answer[part])


def answer(query: Query, stream: Stream) -> Rows:
    """All rows that a run over the stream gives; the query has one aggregate and no keys."""
    table = pa.concat_tables(drive(query, stream)).unify_dictionaries().combine_chunks()
    (aggregate,) = query.aggregates
    names = list(query.windows)
    window = table["window"].chunk(0)
    position = np.array([names.index(name) for name in window.dictionary.to_pylist()])
    columns = [position[window.indices.to_numpy()]]
    columns += [table[name].cast(pa.int64()).to_numpy() for name in ("start", "end", aggregate)]
    order = np.lexsort((columns[2], columns[1], columns[0]))
    return Rows(*(column[order] for column in columns))


def require_same(expected: Rows, found: Rows, what: str) -> None:
    """The same windows with the same answers, or an error that says in which column they differ."""
    assert len(expected) == len(found), f"{what}: {len(found):,} rows, not {len(expected):,}"
    for name, column in vars(expected).items():
        np.testing.assert_array_equal(vars(found)[name], column, f"{what}: {name}")
