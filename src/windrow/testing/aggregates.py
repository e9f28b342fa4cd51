"""Whether the algebra of an aggregate is what it says, with a counter-example where it is not."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars, require_aggregate
from windrow.errors import QueryError

if TYPE_CHECKING:
    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

Partial = tuple[Any, ...]
# A combine may be right for single events and wrong for what it has made itself.
MOST_EVENTS = 8


def check_aggregate(
    aggregate: Aggregate,
    values: SearchStrategy[Any] | None = None,
    *,
    types: Sequence[pa.DataType] | None = None,
    examples: int = 200,
) -> None:
    """Check that the algebra of an aggregate is what it says, on partials of one event and of several.

    `combine` is associative and the identity neutral; it is commutative if declared so; `invert` undoes
    `combine`; none of them raises. Floats may differ by rounding. Aggregates whose partial is a sketch or the
    events themselves have no `combine` of their own to check. This needs the `hypothesis` package.

    Parameters
    ----------
    aggregate
        What `wr.aggregate` or a class of your own made.
    values
        A Hypothesis strategy that draws one event: a value, or a tuple of them for an aggregate of several
        columns. Whole numbers from -100 to 100 by default.
    types
        The types of the columns; int64 by default.
    examples
        How many cases are tried; 200 by default.

    Raises
    ------
    AssertionError
        With the smallest partials for which a law does not hold.

    Examples
    --------
    >>> import windrow as wr
    >>> from windrow.testing import check_aggregate
    >>> check_aggregate(wr.aggregate(lift=lambda x: x, combine=lambda a, b: a + b, identity=0))
    >>> check_aggregate(wr.aggregate(lift=lambda x: x, combine=lambda a, b: a - b, identity=0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    AssertionError: aggregate(x): combine is not associative: for a=(0,), b=(0,), c=(1,) ...
    """
    from hypothesis import given
    from hypothesis import strategies as st

    require_aggregate(aggregate)
    number = st.integers(-100, 100)
    width = len(aggregate.columns)
    if values is None:
        values = st.tuples(*[number] * width)
    bound = aggregate.bind(tuple(types)) if types is not None else _bound(aggregate, width)
    if not isinstance(bound.partial, Scalars) or bound.partial.lift is None:
        return
    algebra = _Algebra(aggregate, bound, bound.partial)
    found: list[str] = []

    @reproducible(examples)
    @given(st.tuples(*[st.lists(values, min_size=1, max_size=MOST_EVENTS)] * 3))
    def check(runs: tuple[list[Any], ...]) -> None:
        with np.errstate(over="ignore"):
            problem = algebra.problem(runs)
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


def reproducible(examples: int) -> settings:
    """The same examples in every run; what fails is made small, and not explained, which takes far longer."""
    import hypothesis
    from hypothesis import Phase

    phases = (Phase.explicit, Phase.generate, Phase.shrink)
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=False,
        phases=phases,
        report_multiple_bugs=False,
    )


class _Wrong(Exception):
    """What an aggregate does and should not, in words."""


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
        return self._partial("lift", self.partial.lift, *columns)

    def fold(self, events: Sequence[Any], arrival: int) -> Partial:
        """The partial of a run of events, of which the first one has this number."""
        first, *others = (self.lift(event, arrival + i) for i, event in enumerate(events))
        return functools.reduce(self.combine, others, first)

    def combine(self, a: Partial, b: Partial) -> Partial:
        return self._apply("combine", a, b)

    def _apply(self, role: str, a: Partial, b: Partial) -> Partial:
        arguments = (a[0], b[0]) if self.partial.bare else (a, b)
        return self._partial(role, getattr(self.partial, role), *arguments)

    def _partial(self, role: str, function: Any, *arguments: Any) -> Partial:
        """What a function gives for these arguments, if that is a partial."""
        found = self._called(role, function, *arguments)
        partial = self._tuple(found)
        numbers = all(isinstance(x, (int, float, np.generic)) for x in partial)
        if self.partial.own and (not numbers or len(partial) != len(self.identity)):
            shown = ", ".join(map(repr, arguments))
            like = self.identity[0] if self.partial.bare else self.identity
            raise _Wrong(f"{role}({shown}) is {found!r}, which is no partial: the identity is {like!r}")
        return partial

    def _called(self, role: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as problem:  # a user's function may raise anything
            shown = ", ".join(map(repr, arguments))
            raise _Wrong(f"{role}({shown}) raised {type(problem).__name__}: {problem}") from problem

    def _tuple(self, found: Any) -> Partial:
        return found if isinstance(found, tuple) else (found,)

    def agree(self, a: Partial, b: Partial, events: int) -> bool:
        """Whether two partials are the same, or at least have the same answer."""
        return _near(a, b) or _near(self.lower(a, events), self.lower(b, events))

    def lower(self, partial: Partial, events: int) -> Partial:
        if self.bound.lower is None:
            return partial
        if self.partial.own:
            argument = partial[0] if self.partial.bare else partial
            return self._tuple(self._called("lower", self.bound.lower, argument))
        return self._tuple(self.bound.lower(partial, events))

    def problem(self, runs: Sequence[Sequence[Any]]) -> str | None:
        """What is wrong with the partials of these three runs of events, or None."""
        try:
            self._check(runs)
        except _Wrong as wrong:
            return str(wrong)
        return None

    def _check(self, runs: Sequence[Sequence[Any]]) -> None:
        sizes = [len(run) for run in runs]
        a, b, c = (self.fold(run, sum(sizes[:i])) for i, run in enumerate(runs))
        for pair, swap in (((self.identity, a), False), ((a, self.identity), True)):
            got = self.combine(*pair)
            if not self.agree(got, a, sizes[0]) and not (swap and self.partial.timed):
                raise _Wrong(
                    f"the identity is not neutral: combine({_show(pair[0])}, {_show(pair[1])}) is {_show(got)}"
                )
        left, right = self.combine(self.combine(a, b), c), self.combine(a, self.combine(b, c))
        if not self.agree(left, right, sum(sizes)):
            raise _Wrong(
                f"combine is not associative: for a={_show(a)}, b={_show(b)}, c={_show(c)} "
                f"(a.b).c is {_show(left)}, a.(b.c) is {_show(right)}"
            )
        together = self.combine(a, b)
        if self.commutative and not self.agree(together, self.combine(b, a), sizes[0] + sizes[1]):
            raise _Wrong(
                f"combine is not commutative: for a={_show(a)}, b={_show(b)} a.b is "
                f"{_show(together)}, b.a is {_show(self.combine(b, a))}; declare commutative=False"
            )
        if self.partial.invert is not None:
            back = self._apply("invert", together, b)
            if not self.agree(back, a, sizes[0]):
                raise _Wrong(
                    f"invert does not undo combine: for a={_show(a)}, b={_show(b)} it gives {_show(back)}"
                )


def _show(partial: Partial) -> str:
    return repr(tuple(x.item() if isinstance(x, np.generic) else x for x in partial))


def _near(a: Partial, b: Partial) -> bool:
    """Whether integers are equal, and floats but for the rounding of numbers as large as those beside them."""
    if len(a) != len(b):
        return False
    floats: list[Any] = [abs(x) for x in (*a, *b) if isinstance(x, (float, np.floating)) and math.isfinite(x)]
    tolerance = 1e-9 * max(1.0, *floats) if floats else 0.0
    return all(
        x == y or (x != x and y != y) or bool(tolerance and abs(x - y) <= tolerance)
        for x, y in zip(a, b, strict=True)
    )
