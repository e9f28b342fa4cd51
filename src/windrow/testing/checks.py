"""Checks for windows and aggregates of one's own, with a counter-example where they fail.

check_aggregate(my_aggregate)      the algebra that it declares is true
check_window(my_window)            the engine's answer is the oracle's
check_steps(query, steps)          the engine's operator does what the reference operator does
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars
from windrow.errors import QueryError
from windrow.query import Query, query
from windrow.windows import Window

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Partial = tuple[Any, ...]


def check_aggregate(
    aggregate: Aggregate,
    values: SearchStrategy[Any] | None = None,
    *,
    types: Sequence[pa.DataType] | None = None,
    examples: int = 200,
) -> None:
    """Check that the algebra of an aggregate is what it says.

    `combine` is associative and the identity neutral; it is commutative if declared so; `invert`
    undoes `combine`. Floats may differ by rounding. `values` draws one event: a value, or a tuple of
    them for an aggregate of several columns; whole numbers by default. `types` are
    the types of the columns, int64 by default. Aggregates whose partial is a sketch or the events themselves have no `combine` of their own to check.

    >>> import windrow as wr
    >>> from windrow.testing import check_aggregate
    >>> check_aggregate(wr.aggregate(lift=lambda x: x, combine=lambda a, b: a + b, identity=0))
    >>> check_aggregate(wr.aggregate(lift=lambda x: x, combine=lambda a, b: a - b, identity=0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    AssertionError: aggregate(x): combine is not associative: for a=(0,), b=(0,), c=(1,) ...
    """
    from hypothesis import given, settings
    from hypothesis import strategies as st

    number = st.integers(-100, 100)
    width = len(aggregate.columns)
    if values is None:
        values = st.tuples(*[number] * width)
    bound = aggregate.bind(tuple(types)) if types is not None else _bound(aggregate, width)
    if not isinstance(bound.partial, Scalars) or bound.partial.lift is None:
        return
    algebra = _Algebra(aggregate, bound, bound.partial)
    found: list[str] = []

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, print_blob=False)
    @given(st.lists(values, min_size=3, max_size=3))
    def check(events: list[Any]) -> None:
        with np.errstate(over="ignore"):
            problem = algebra.problem([algebra.lift(e, i) for i, e in enumerate(events)])
        if problem:
            found.append(problem)
            raise AssertionError(problem)

    try:
        check()
    except AssertionError:
        raise AssertionError(f"{aggregate}: {found[-1]}") from None


def _bound(aggregate: Aggregate, width: int) -> Bound:
    """Bound to integers, or to strings where numbers are refused."""
    try:
        return aggregate.bind((pa.int64(),) * width)
    except QueryError:
        return aggregate.bind((pa.string(),) * width)


class _Algebra:
    """The functions of one aggregate over partials as tuples."""

    def __init__(self, aggregate: Aggregate, bound: Bound, partial: Scalars) -> None:
        self.bound = bound
        self.partial = partial
        self.commutative = aggregate.algebra.commutative
        self.identity: Partial = tuple(
            np.int64(f.identity) if f.dtype == "i" and not partial.own else f.identity for f in partial.fields
        )

    def lift(self, event: Any, arrival: int) -> Partial:
        assert self.partial.lift is not None
        columns = event if isinstance(event, tuple) else (event,)
        if not self.partial.own:
            columns = tuple(np.int64(x) if isinstance(x, int) else x for x in columns)
        if self.partial.timed:
            columns = (*columns, 10 - arrival // 2, arrival)
        return self._tuple(self.partial.lift(*columns))

    def combine(self, a: Partial, b: Partial) -> Partial:
        return self._apply(self.partial.combine, a, b)

    def _apply(self, function: Any, a: Partial, b: Partial) -> Partial:
        if self.partial.bare:
            return (function(a[0], b[0]),)
        return self._tuple(function(a, b))

    def _tuple(self, partial: Any) -> Partial:
        return partial if isinstance(partial, tuple) else (partial,)

    def agree(self, a: Partial, b: Partial, events: int) -> bool:
        """Whether two partials are the same, or at least have the same answer."""
        return _near(a, b) or _near(self.lower(a, events), self.lower(b, events))

    def lower(self, partial: Partial, events: int) -> Partial:
        if self.bound.lower is None:
            return partial
        if self.partial.own:
            return self._tuple(self.bound.lower(partial[0] if self.partial.bare else partial))
        return self._tuple(self.bound.lower(partial, events))

    def problem(self, lifted: list[Partial]) -> str | None:
        """What is wrong with these three partials, or None."""
        a, b, c = lifted
        for pair, swap in (((self.identity, a), False), ((a, self.identity), True)):
            got = self.combine(*pair)
            if not self.agree(got, a, 1) and not (swap and self.partial.timed):
                return f"the identity is not neutral: combine({_show(pair[0])}, {_show(pair[1])}) is {_show(got)}"
        left, right = self.combine(self.combine(a, b), c), self.combine(a, self.combine(b, c))
        if not self.agree(left, right, 3):
            return (
                f"combine is not associative: for a={_show(a)}, b={_show(b)}, c={_show(c)} "
                f"(a.b).c is {_show(left)}, a.(b.c) is {_show(right)}"
            )
        if self.commutative and not self.agree(self.combine(a, b), self.combine(b, a), 2):
            return (
                f"combine is not commutative: for a={_show(a)}, b={_show(b)} a.b is "
                f"{_show(self.combine(a, b))}, b.a is {_show(self.combine(b, a))}; declare commutative=False"
            )
        if self.partial.invert is not None:
            back = self._apply(self.partial.invert, self.combine(a, b), b)
            if not self.agree(back, a, 1):
                return f"invert does not undo combine: for a={_show(a)}, b={_show(b)} it gives {_show(back)}"
        return None


def _show(partial: Partial) -> str:
    return repr(tuple(x.item() if isinstance(x, np.generic) else x for x in partial))


def _near(a: Partial, b: Partial) -> bool:
    if len(a) != len(b):
        return False
    return all(
        x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)
        for x, y in zip(a, b, strict=True)
    )


def check_window(
    window: Window,
    *,
    time: pa.DataType | None = None,
    columns: Mapping[str, str] | None = None,
    days: bool = False,
    examples: int = 50,
) -> None:
    """Check that the engine's answer for a window is the oracle's, on streams of all kinds.

    `time` is the type of the time column (int64 by default), which is called `time`; `columns` are
    those that the window reads, with a kind of values for each (see `strategies.values`); `days`
    spreads the events over weeks.

    >>> import windrow as wr
    >>> from windrow.testing import check_window
    >>> check_window(wr.sliding(5, every=2), examples=5)
    >>> check_window(wr.threshold("hot"), columns={"hot": "bool"}, examples=5)
    """
    from hypothesis import given, settings

    from windrow.aggregates import collect, count
    from windrow.aggregates import sum as total
    from windrow.testing.compare import assert_same
    from windrow.testing.oracle import answers
    from windrow.testing.strategies import streams

    type_ = time or pa.int64()
    asked = query(
        time="time",
        key="key0",
        windows={"window": window},
        aggregates={"n": count(), "total": total("x"), "all": collect("x")},
    )

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, print_blob=False)
    @given(streams(time=type_, key=["int"], columns={**(columns or {}), "x": "int"}, days=days))
    def check(table: pa.Table) -> None:
        assert_same(answers(asked, table), asked.run(table), note=str(window))

    check()


def check_steps(
    query: Query,
    steps: Sequence[tuple[str, Any]],
    *,
    mode: str,
    lateness: Any = 0,
    on_bad: str = "raise",
) -> None:
    """Check that the engine's operator and the reference operator agree after every step.

    `steps` are `("process", table)` and `("advance", watermark)`, as `strategies.schedules` draws
    them; a finish comes last. Rows are compared after each advance, late and bad rows after each batch. The query
    changes with `("add_window", (name, window))`, `("add_aggregate", (name, aggregate))`, `("remove_window", name)`
    and `("remove_aggregate", name)`; `("restart", None)` saves the engine's operator and restores it.

    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.testing import check_steps
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    >>> check_steps(q, [("process", pa.table({"ts": [1, 2, 7]})), ("advance", 6)], mode="append")
    """
    from windrow.testing.compare import assert_same, rows_of
    from windrow.testing.stream import ReferenceOperator

    reference = ReferenceOperator(query, mode=mode, lateness=lateness, on_bad=on_bad)
    operator = query.operator(mode=mode, lateness=lateness, on_bad=on_bad)
    for number, (step, argument) in enumerate([*steps, ("finish", None)]):
        note = f"step {number} ({step} {argument if step == 'advance' else ''})"
        if step == "restart":
            operator = operator.query.restore(operator.snapshot())
            continue
        if step in ("add_window", "add_aggregate"):
            start = getattr(operator, step)(*argument)
            getattr(reference, step)(*argument, complete_from=start)
            continue
        if step in ("remove_window", "remove_aggregate"):
            for each in (operator, reference):
                getattr(each, step)(argument)
            continue
        if step == "process":
            reference.process(argument)
            operator.process(argument)
            late, expected = rows_of(operator.late()), rows_of(reference.late())
            assert repr(late) == repr(expected), f"{note}: late rows {late}, expected {expected}"
            bad, wrong = (rows_of(o.bad().select(argument.column_names)) for o in (operator, reference))
            assert repr(bad) == repr(wrong), f"{note}: bad rows {bad}, expected {wrong}"
            continue
        if step == "advance":
            reference.advance(argument)
            emitted = operator.advance(argument)
        else:
            reference.finish()
            emitted = operator.finish()
        assert reference.answers is not None
        assert_same(reference.answers, emitted, note=note)
