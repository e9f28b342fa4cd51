"""Whether a window of one's own means the same however its events come, with a counter-example where it does not.

    in order, all at once                           the answer
    as plain Python                                 .. of functions that are compiled otherwise
    out of order, all at once
    batch by batch, with watermarks
    out of order within the lateness                in append mode, and in update mode replayed;
                                                    saved and restored after each batch

Nothing else is known of the window: whether the answer is what its author meant is for a transcript to say.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import pairwise
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import collect, count
from windrow.compiling.compiler import InterpretedWarning
from windrow.durations import DurationLike, parse_duration
from windrow.errors import QueryError, WindrowError
from windrow.measure import Measure, Tick
from windrow.query import Query, query
from windrow.testing.aggregates import reproducible
from windrow.testing.compare import assert_same, plain_values, replay
from windrow.windows import Window
from windrow.wording import with_article

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

KEY, EVENT = "_key", "_event"
MOST_EVENTS = 12
# Times lie on a grid, and now and then one tick beside it.
GRID = 40


def check_window(
    window: Window,
    *,
    time: str = "time",
    columns: Mapping[str, pa.DataType] | None = None,
    values: Mapping[str, SearchStrategy[Any]] | None = None,
    within: DurationLike | None = None,
    examples: int = 50,
) -> None:
    """Check that a window gives the same rows however its events come.

    That is: all at once and in batches, in order and out of order within the lateness, with and without a
    snapshot and a restore in between, in append and in update mode, and compiled and as plain Python. This
    needs the `hypothesis` package.

    Parameters
    ----------
    window
        A window with functions of your own, or of a class of your own.
    time
        The name of the time column; `"time"` by default.
    columns
        The types of the time column and of the columns that the window reads; int64 by default.
    values
        Hypothesis strategies for columns whose values must be of a certain kind. By default small numbers,
        booleans and short strings are drawn, and no nulls.
    within
        How far apart the first and the last event can be: several times the length of your windows. By default
        an hour where the time column is a timestamp, 40 days where it is a date, else 40.
    examples
        How many streams are tried; 50 by default.

    Raises
    ------
    AssertionError
        With the way that gives other rows, the first row that differs, and the fewest events for which it does.

    Examples
    --------
    >>> import windrow as wr
    >>> from windrow.testing import check_window
    >>> def trips(moving, speed):
    ...     now = 1 if speed > 0 else 0
    ...     return now, int(now > moving), int(now < moving)
    >>> check_window(wr.deterministic(trips, state=0), examples=5)
    """
    from hypothesis import given
    from hypothesis.errors import Flaky

    if not isinstance(window, Window):
        raise QueryError(f"{window!r} is {with_article(type(window).__name__)}, and a window is needed")
    types = {time: pa.int64(), **dict.fromkeys(window.columns, pa.int64()), **(columns or {})}
    measure = Measure(time, types[time])
    default: DurationLike = "1 hour" if pa.types.is_timestamp(measure.type) else GRID
    default = f"{GRID} days" if pa.types.is_date(measure.type) else default
    reach = measure.ticks(parse_duration(default if within is None else within, what="within"), what="within")
    subject, plain = (
        query(time=time, key=KEY, windows={"w": w}, aggregates={"n": count(), "events": collect(EVENT)})
        for w in (window, _interpreted(window))
    )
    found: list[str] = []

    @reproducible(examples)
    @given(_streams(measure, types, values or {}, reach))
    def check(stream: _Stream) -> None:
        answer = subject.run(stream.table)
        for way, rows in _ways(subject, plain, stream):
            try:
                assert_same(answer, rows(), note=f"{way}, not as in order and all at once")
            except (AssertionError, WindrowError) as problem:
                events = "\n".join(f"  {row}" for row in stream.table.to_pylist())
                said = problem if isinstance(problem, AssertionError) else f"{way}: {problem}"
                found.append(f"{window}: {said}\nfor the events\n{events}")
                raise

    try:
        check()
    except (
        AssertionError,
        WindrowError,
        Flaky,
    ):  # a window that remembers what it should not fails once, and not again
        if not found:
            raise
        raise AssertionError(found[-1]) from None


@dataclass(frozen=True)
class _Stream:
    """Events in order, the order in which they come otherwise, where batches end, and how late events can be."""

    measure: Measure
    table: pa.Table
    arrival: list[int]
    cuts: list[int]
    lateness: Tick


def _ways(subject: Query, plain: Query, stream: _Stream) -> Iterator[tuple[str, Callable[[], pa.Table]]]:
    """All ways to the rows of a stream but the one that gives the answer."""
    late = stream.table.take(pa.array(stream.arrival, pa.int64()))
    yield "as plain Python", partial(_quietly, plain, stream.table)
    yield "out of order", partial(subject.run, late)
    yield "in batches", partial(_driven, subject, stream, stream.table, 0, "append", False)
    for mode in ("append", "update"):
        for restart, how in ((False, ""), (True, ", saved and restored after each batch")):
            way = f"out of order within the lateness, in {mode} mode{how}"
            yield way, partial(_driven, subject, stream, late, stream.lateness, mode, restart)


def _quietly(plain: Query, table: pa.Table) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpretedWarning)
        return plain.run(table)


def _driven(
    subject: Query, stream: _Stream, table: pa.Table, lateness: Tick, mode: str, restart: bool
) -> pa.Table:
    """What an operator emits in all, with watermarks as far ahead as no event is late."""
    measure, unit = stream.measure, stream.measure.tick_nanoseconds
    operator = subject.operator(mode=mode, lateness=f"{lateness * unit} nanoseconds" if unit else lateness)
    ticks = plain_values(table[measure.column])
    emitted = []
    for begin, end in pairwise([0, *stream.cuts, len(ticks)]):
        operator.process(table.slice(begin, end - begin))
        if end < len(ticks):
            watermark = np.array([min(ticks[end:]) + lateness], measure.dtype)
            emitted.append(operator.advance(measure.array(watermark)[0]))
        if restart:
            operator = subject.restore(operator.snapshot())
    rows = pa.concat_tables([*emitted, operator.finish()])
    return replay(rows) if mode == "update" else rows


def _streams(
    measure: Measure, types: Mapping[str, pa.DataType], values: Mapping[str, SearchStrategy[Any]], reach: Tick
) -> SearchStrategy[_Stream]:
    """Streams of a few events of two keys; those of one time keep their order, whatever else moves."""
    from hypothesis import strategies as st

    step = reach / GRID if measure.floating else max(1, int(reach) // GRID)
    jitter = 0 if measure.floating else 1
    bases = [
        b
        for b in (0, -reach, 1000 * reach)
        if measure.lowest <= b - step and b + 2 * reach <= measure.highest
    ]
    grid = st.integers(0, GRID).map(lambda i: i * step)
    ticks = st.tuples(grid, st.just(0) | st.integers(-jitter, jitter)).map(sum)

    @st.composite
    def stream(draw: Any) -> _Stream:
        base = draw(st.sampled_from(bases or [0]))
        times = sorted(
            draw(st.lists(ticks.map(lambda tick: max(measure.lowest, base + tick)), max_size=MOST_EVENTS))
        )
        size = len(times)
        table = {measure.column: measure.array(np.array(times, measure.dtype))}
        for name, type_ in types.items():
            if name != measure.column:
                one = values.get(name, _values(name, type_))
                table[name] = pa.array(draw(st.lists(one, min_size=size, max_size=size)), type_)
        table[KEY] = pa.array(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), pa.int64())
        table[EVENT] = pa.array(range(size), pa.int64())
        lateness = draw(st.integers(0, 8)) * step
        delays = {tick: draw(st.integers(0, 8)) / 8 * lateness for tick in dict.fromkeys(times)}
        arrival = sorted(range(size), key=lambda i: times[i] + delays[times[i]])
        cuts = sorted(draw(st.lists(st.integers(0, size), max_size=4)))
        return _Stream(measure, pa.table(table), arrival, cuts, lateness)

    return stream()


def _values(name: str, type_: pa.DataType) -> SearchStrategy[Any]:
    """Values of a column that nothing more is known of."""
    from hypothesis import strategies as st

    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_integer(type_):
        return st.integers(0 if pa.types.is_unsigned_integer(type_) else -3, 3)
    if pa.types.is_floating(type_):
        return st.integers(-6, 6).map(lambda i: i / 2)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return st.sampled_from(["", "a", "b"])
    raise QueryError(f"column {name!r} is {type_}: say in values={{{name!r}: ...}} what it holds")


def _interpreted(spec: Any) -> Any:
    """A spec with its functions inside others, which Numba cannot compile."""
    if isinstance(spec, FunctionType):

        def plain(*arguments: Any) -> Any:
            return spec(*arguments)

        plain.__name__ = spec.__name__
        plain.__signature__ = inspect.signature(spec)  # type: ignore[attr-defined]
        return plain
    if not is_dataclass(spec) or isinstance(spec, type):
        return spec
    found = {f.name: getattr(spec, f.name) for f in fields(spec) if f.init}
    return replace(spec, **{name: _interpreted(value) for name, value in found.items()})
