"""Bounded data on all cores: a table in time order is divided into parts, each answered by an operator of its own.

    by time     rows  |------ part 0 ------|------ part 1 ------|------ part 2 ------|
                                       |~~~| warms up       |~~~|

                windows of time: a window belongs to the part within which it ends, and a part warms up with the events
                before it that such a window can hold; nothing is copied
                sessions: one belongs to the part within which it begins, and a part warms up with the events of a gap,
                and goes on behind its end until its sessions have ended, if that comes soon
                one key: sessions are parted where nothing happens for longer than the gap, and windows of rows where
                one ends
    by key      all other windows: of each batch, a part takes the rows of its keys

The answer does not depend on the number of threads, bit by bit. Nothing is merged across parts: each window is answered
by one operator, whose slices hold the same events in the same order and in the same batches, which end at the same rows
of the table everywhere. What is left is how an operator merges slices, which it chooses by what is due and by how many
keys there are. That shows in floats alone, and only where a window has several slices. Such a query is divided by time
into parts that depend on the table and not on the threads, or not at all.

An error in a part gives up all of them, and the caller asks a single operator instead: what it says names the first bad
row of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import Scalars
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import in_order
from windrow.engine.binding import Answer
from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import BUCKETS, Keys
from windrow.engine.operator import Operator
from windrow.engine.partials import Numbers
from windrow.engine.pool import together
from windrow.errors import WindrowError
from windrow.planner.window_set import WindowSet
from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.windows.base import Window

if TYPE_CHECKING:
    from windrow.engine.sessions.state import SessionState

# A thread is worth its while for so many rows: an operator of its own costs about a millisecond, and so many rows of
# the cheapest query five.
ENOUGH = 1 << 20
# Rows of a part where parts must not depend on the number of threads: one thread pays 3 to 9 % for them.
FIXED = 1 << 22
# Keys of so many rows are looked at together, which fits into caches.
BLOCK = 1 << 15
# A part may warm up with so many of its rows, and may go on for so many more until its sessions have ended; the part with
# most rows may have this share of them.
WARM_UP, AFTER, LARGEST = 1 / 8, 1 / 64, 3 / 4

Rows = list[pa.Table]
Work = Callable[[Event], Rows]
Advance = Callable[[int], None]


class _NotDivisible(WindrowError):
    """A part has found that the table cannot be divided as it was."""


def are_in_order(times: np.ndarray, threads: int) -> bool:
    """Whether times never go back, found out by several threads if there are many."""
    count = max(1, min(threads, len(times) // ENOUGH))
    edges = [len(times) * i // count for i in range(count + 1)]
    parts = [times[max(0, begin - 1) : end] for begin, end in pairwise(edges)]
    return all(together([partial(_is_in_order, part) for part in parts], count))


def _is_in_order(times: np.ndarray, stop: Event) -> bool:
    return bool(in_order(times))


def ignore(rows: int) -> None:
    """What is called where nobody follows how many rows are done."""


def in_parts(
    operator: Operator, table: pa.Table, times: np.ndarray, threads: int, batch: int, advance: Advance
) -> Rows | None:
    """The answer of a fresh operator to a table in time order, part by part; None if one operator is to give it.

    `batch` is how many rows of the table a single operator would take at once; `advance` is told how many are done.
    """
    if len(times) < 2 * ENOUGH:
        return None
    alike = _answers_alike(operator)
    if threads == 1 and alike:
        return None
    count = min(threads, len(times) // ENOUGH) if alike else len(times) // FIXED
    placed = WindowSet.of(operator.query.windows, operator.measure)
    stretches = _stretches(operator.query, placed, times, count, batch)
    if len(stretches) < 2 and not (alike and operator.query.key):
        return None
    settings = replace(operator.settings, max_slices=max(1, operator.settings.max_slices // count))
    make = partial(Operator, operator.query, settings)
    try:
        if len(stretches) < 2 and alike and operator.query.key:
            stretches = _stretches_of_sessions(operator.query, placed, make, table, times, count, batch)
        if len(stretches) > 1:
            parts: list[Work] = [
                partial(_over_time, make, table, times, each, batch, advance) for each in stretches
            ]
        else:
            parts = _by_key(operator, make, whole(table), times, count, batch, advance)
        return [rows for part in together(parts, threads) for rows in part]
    except WindrowError:
        return None


# -- what bits depend on -------------------------------------------------------------------------


def _answers_alike(operator: Operator) -> bool:
    """Whether answers are the same bits, however the slices of a window are merged."""
    windows = list(operator.query.windows.values())
    if len(windows) == 1 and _is_one_slice(windows[0]) and not isinstance(operator.query.time, Span):
        return True
    answers = [found for engine in operator.engines for found in engine.binding.answers.items()]
    return all(_is_exact(operator.query, name, answer) for name, answer in answers)


def _is_one_slice(window: Window) -> bool:
    """Whether each of its windows is one slice, where it is the only window of a query."""
    return window.tiles or window.repeats_after is not None or window.gap is not None


def _is_exact(query: QuerySpec, name: str, answer: Answer) -> bool:
    """Whether partials may be combined in any grouping: they hold values themselves, or integers."""
    if not isinstance(answer.store, Numbers):
        return True
    algebra, spec = query.aggregates[name].algebra, answer.store.spec
    if algebra.selective or algebra.idempotent:
        return True
    return (
        isinstance(spec, Scalars)
        and not spec.own
        and all(np.issubdtype(dtype, np.integer) for dtype in answer.store.dtypes)
    )


# -- by time -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stretch:
    """Rows `begin` to `end` of a table in time order, and those from `before` on that its windows may hold besides.

    `alone` says that no window holds rows of it and of another one. With `after`, its windows are those that begin in it, and
    have ended by that row; without, those that end in it.
    """

    before: int
    begin: int
    end: int
    alone: bool
    # Whether it must have as many events as rows: others would begin elsewhere.
    counted: bool = False
    after: int | None = None


def _stretches(
    query: QuerySpec, placed: WindowSet, times: np.ndarray, count: int, batch: int
) -> list[_Stretch]:
    """At most `count` stretches; fewer than two if the windows of a query cannot be parted by time."""
    windows, measure = list(query.windows.values()), placed.measure
    rows = len(times)
    cuts = [rows * i // count for i in range(1, count)]
    if isinstance(query.time, Span) or placed.origins:
        return []
    if all(window.layout == "aligned" for window in windows):
        # At the end of a batch, so that no slice comes in other batches than it would to a single operator.
        cuts = sorted({round(cut / batch) * batch for cut in cuts})
        cuts = [cut for cut in cuts if 0 < cut < rows]
        reach = placed.margin if measure.floating else placed.longest
        first = [max(times[cut].item() - reach, measure.lowest) for cut in cuts]
        before = np.searchsorted(times, np.array(first, times.dtype)).tolist()
        if any(cut - low > WARM_UP * rows / count for low, cut in zip(before, cuts, strict=True)):
            return []
        return [
            _Stretch(*each, alone=False) for each in zip([0, *before], [0, *cuts], [*cuts, rows], strict=True)
        ]
    if query.key:
        return []
    gaps = [measure.ticks(window.gap, what="gap") for window in windows if window.gap is not None]
    steps = [window.repeats_after for window in windows if window.repeats_after is not None]
    if len(gaps) == len(windows) and not measure.floating:
        cuts = [_silence(times, cut, cut + rows // (2 * count), max(gaps)) for cut in cuts]
    elif len(steps) == len(windows):
        cuts = [cut - cut % math.lcm(*steps) for cut in cuts]
    else:
        return []
    edges = sorted({0, *cuts, rows})
    return [_Stretch(begin, begin, end, alone=True, counted=bool(steps)) for begin, end in pairwise(edges)]


def _stretches_of_sessions(
    query: QuerySpec,
    placed: WindowSet,
    make: Callable[[], Operator],
    table: pa.Table,
    times: np.ndarray,
    count: int,
    batch: int,
) -> list[_Stretch]:
    """As `_stretches`, of the sessions of many keys; none if sessions last too long for that."""
    windows, measure, rows = list(query.windows.values()), placed.measure, len(times)
    gaps = [measure.ticks(window.gap, what="gap") for window in windows if window.gap is not None]
    if len(gaps) < len(windows) or measure.floating or isinstance(query.time, Span):
        return []
    most = max(1, int(AFTER * rows / count))
    edges, before, after = [0], [0], []
    for cut in sorted({round(rows * i / count / batch) * batch for i in range(1, count)} - {0, rows}):
        low = int(
            np.searchsorted(times, times.dtype.type(max(times[cut].item() - max(gaps), measure.lowest)))
        )
        ended = _ended(make(), table, times, low, cut, most) if cut - low <= WARM_UP * rows / count else None
        if ended is None:
            return []
        edges.append(cut)
        before.append(low)
        after.append(ended)
    ends = zip(before, edges, [*edges[1:], rows], [*after, rows], strict=True)
    return [_Stretch(low, begin, end, alone=False, after=ended) for low, begin, end, ended in ends]


def _ended(
    operator: Operator, table: pa.Table, times: np.ndarray, low: int, cut: int, most: int
) -> int | None:
    """By which row all sessions have ended that begin before row `cut`; None if that takes more than `most` rows.

    Those that reach it have events from row `low` on.
    """
    operator.prepare(table.schema)
    operator.take_events(table.slice(low, cut - low))
    begin, step = cut, -(-most // 8)
    while begin - cut < most and begin + step < len(times):
        operator.take_events(table.slice(begin, step))
        begin += step
        operator.complete_to(times[begin].item())
        if all(cast("SessionState", engine).oldest >= times[cut] for engine in operator.engines):
            return begin
    return None


@jit
def _silence(times, begin, end, gap):  # type: ignore[no-untyped-def]
    """The first row from `begin` on, and before `end`, that comes later than `gap` after the one before; 0 if none."""
    for i in range(begin, end):
        # Times ascend, so their distance is right as a number without a sign, even where it overflows one with a sign.
        if np.uint64(times[i] - times[i - 1]) > np.uint64(gap):
            return i
    return 0


def _over_time(
    make: Callable[[], Operator],
    table: pa.Table,
    times: np.ndarray,
    part: _Stretch,
    batch: int,
    advance: Advance,
    stop: Event,
) -> Rows:
    """The windows of a stretch of time."""
    operator = make()
    operator.prepare(table.schema)
    rows: Rows = []
    if part.before < part.begin and part.after is None:
        # What ends before is final, and another part's; events count in windows that are not.
        operator.complete_to(times[part.begin].item())
    begin, last = part.before, part.end if part.after is None else part.after
    while begin < last:
        if stop.is_set():
            return rows
        end = min(begin + batch - begin % batch, last)
        operator.take_events(table.slice(begin, end - begin))
        advance(max(0, min(end, part.end) - max(begin, part.begin)))
        if begin >= part.begin and end < len(times) and not (part.alone and end == part.end):
            rows.append(operator.complete_to(times[end].item()))
        begin = end
    if last == len(times) or part.alone:
        rows.append(operator.finish())
    if part.counted and operator.counters.bad:
        raise _NotDivisible("rows were counted that are no events")
    return rows if part.after is None else [_begun_in(part, times, found) for found in rows]


def _begun_in(part: _Stretch, times: np.ndarray, found: pa.Table) -> pa.Table:
    """Those of these windows that begin in a stretch."""
    starts = found.column("start")
    ends = [(part.begin, pc.greater_equal), (part.end, pc.less)]
    for row, holds in ends:
        if 0 < row < len(times):
            mask = holds(starts, pa.scalar(times[row].item(), starts.type))
            if not pc.all(mask).as_py():
                found, starts = found.filter(mask), starts.filter(mask)
    return found


# -- by key --------------------------------------------------------------------------------------


@jit
def _select(buckets, mine, out):  # type: ignore[no-untyped-def]
    """The rows whose bucket is one of `mine`, into `out`, which has room for one more; how many these are."""
    count = 0
    for i in range(buckets.shape[0]):
        out[count] = i
        count += mine[buckets[i]]
    return count


def _by_key(
    operator: Operator,
    make: Callable[[], Operator],
    events: pa.RecordBatch,
    times: np.ndarray,
    count: int,
    batch: int,
    advance: Advance,
) -> list[Work]:
    """Parts that have the same number of events, or nearly; an error if there are too few keys for that."""
    read: dict[str, Any] = {}
    for engine in operator.engines:
        read |= dict.fromkeys(engine.binding.columns)
    events = events.select(list(read))
    keys, size = operator.engines[0].keys, len(times)
    buckets = np.empty(size, np.uint8)
    edges = [size * i // count for i in range(count + 1)]
    finding = [partial(_find_buckets, keys, events, buckets, *ends) for ends in pairwise(edges)]
    sizes = np.sum(together(finding, count), axis=0)
    owner, held = np.zeros(BUCKETS, np.int64), np.zeros(count, np.int64)
    for bucket in np.argsort(-sizes, kind="stable").tolist():
        owner[bucket] = held.argmin()
        held[owner[bucket]] += sizes[bucket]
    if held.max() > LARGEST * size:
        raise _NotDivisible("most events are those of a few keys")
    return [
        partial(_of_keys, make, events, times, buckets, owner == part, batch, advance)
        for part in range(count)
    ]


def _find_buckets(
    keys: Keys, events: pa.RecordBatch, out: np.ndarray, begin: int, end: int, stop: Event
) -> np.ndarray:
    """Fill in the buckets of some rows; how many of them are in each."""
    sizes = np.zeros(BUCKETS, np.int64)
    for low in range(begin, end, BLOCK):
        high = min(low + BLOCK, end)
        sizes += keys.find_buckets(events.slice(low, high - low), out[low:high])
    return sizes


def _of_keys(
    make: Callable[[], Operator],
    events: pa.RecordBatch,
    times: np.ndarray,
    buckets: np.ndarray,
    mine: np.ndarray,
    batch: int,
    advance: Advance,
    stop: Event,
) -> Rows:
    """All windows of the keys in some buckets. Batches end where those of a single operator do."""
    operator = make()
    rows: Rows = []
    picked = np.empty(batch + 1, np.int64)
    for begin in range(0, len(times), batch):
        if stop.is_set():
            return rows
        end = min(begin + batch, len(times))
        count = _select(buckets[begin:end], mine, picked)
        operator.take_events(events.slice(begin, end - begin).take(pa.array(picked[:count])))
        advance(count)
        if end < len(times):
            rows.append(operator.complete_to(times[end].item()))
    rows.append(operator.finish())
    return rows
