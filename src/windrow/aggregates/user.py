"""An aggregate of the user's own, compiled into the same loop as the built-in ones.

`lift` makes a partial of one event, `combine` joins two partials (the earlier one first), `lower`
makes the answer. A partial is a number or a boolean, or a tuple of them. The functions are plain Python; what
Numba can compile runs compiled, the rest runs interpreted with one warning that says why.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    numeric_kind,
    plain,
    scale_of,
)
from windrow.errors import QueryError
from windrow.expressions import ColumnLike, Expr


def same(partial):  # type: ignore[no-untyped-def]
    """The `lower` of an aggregate whose partial is its answer."""
    return partial


@cache
def as_function(given: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    """A function written in Python, which can be compiled, around one that is not: `max`, a class."""
    given = getattr(given, "py_func", given)  # Numba's, if the user has compiled it
    if isinstance(given, types.FunctionType):
        return given

    def one(a: Any) -> Any:
        return given(a)

    def two(a: Any, b: Any) -> Any:
        return given(a, b)

    def many(*values: Any) -> Any:
        return given(*values)

    wrapper: Any = {1: one, 2: two}.get(arguments, many)
    wrapper.__name__ = str(getattr(given, "__name__", type(given).__name__))
    wrapper.__module__ = "__main__"  # not one of windrow's own
    return wrapper


@cache
def with_booleans(lift: Callable[..., Any], where: tuple[bool, ...]) -> Callable[..., Any]:
    """The same `lift` over the codes of its columns; those `where` values are booleans are 0 and 1."""
    names = [f"x{i}" for i in range(len(where))]
    given = ", ".join(
        f"{name} != 0" if is_boolean else name for name, is_boolean in zip(names, where, strict=True)
    )
    # As if it were the user's, whose integers are checked.
    scope: dict[str, Any] = {"lift": lift, "__name__": "__main__"}
    exec(f"def wrapper({', '.join(names)}):\n    return lift({given})\n", scope)
    wrapper = scope["wrapper"]
    wrapper.__name__ = lift.__name__
    return wrapper


@dataclass(frozen=True)
class UserAggregate(Aggregate):
    """An aggregate of the user's own functions; `bare` says that a partial is one number, not a tuple."""

    columns: tuple[str, ...]
    lift: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any]
    invert: Callable[[Any, Any], Any] | None
    identity: tuple[float | int, ...]
    bare: bool
    commutative: bool
    name: str

    @property
    def algebra(self) -> Algebra:  # type: ignore[override]
        return Algebra("algebraic", self.commutative, invertible=self.invert is not None)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        booleans = tuple(map(pa.types.is_boolean, types))
        kinds = tuple(
            "i" if is_boolean else numeric_kind(t, what=str(self))
            for t, is_boolean in zip(types, booleans, strict=True)
        )
        for column, type_ in zip(self.columns, types, strict=True):
            if scale_of(type_) != 1.0:
                raise QueryError(f"{self}: column {column!r} is a decimal; cast it to a float or an integer")
        fields = tuple(Field(f"partial {i}", _kind(value), value) for i, value in enumerate(self.identity))
        partial = Scalars(
            self.name,
            fields,
            with_booleans(self.lift, booleans) if any(booleans) else self.lift,
            self.combine,
            invert=self.invert if all(f.dtype != "f" for f in fields) else None,
            own=True,
            bare=self.bare,
            ordered=not self.commutative,
        )
        return Bound(partial, kinds, pa.float64(), self.lower, ("f",), plain(pa.float64()))


def _kind(value: float) -> Any:
    if isinstance(value, bool):
        return "b"
    return "f" if isinstance(value, float) else "i"


def aggregate(
    *,
    lift: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    identity: float | int | tuple[float | int, ...],
    lower: Callable[[Any], Any] | None = None,
    invert: Callable[[Any, Any], Any] | None = None,
    columns: Sequence[ColumnLike] | None = None,
    commutative: bool = True,
    name: str | None = None,
    where: ColumnLike | None = None,
) -> UserAggregate:
    """An aggregate of your own, compiled into the same loop as the built-in ones.

    Functions that Numba cannot compile run interpreted, with one warning that says why; they are called once
    with ones, to learn what they return. Integers have 64 bits: where a function computes one that needs
    more, also as an intermediate result, a UserFunctionError says so. This holds for Python's operators and
    for NumPy's functions of two numbers, such as `np.add`. The sum or product of an array of integers is
    refused, because its overflow cannot be detected; interpreted functions get what NumPy gives there.

    Parameters
    ----------
    lift
        The partial of one event. Its parameters are the columns that it reads, unless `columns` names them.
    combine
        Two partials together, the earlier one first; it must be associative.
    identity
        The partial of no event: `combine(identity, p)` must be `p`. A number or a boolean, or a tuple of
        them. A number of the partial is an integer if it is one in `identity` and in all that `lift` and
        `combine` return, and a boolean if all that they return is, and `identity` is one, or 0 or 1.
    lower
        The result of a partial; None (default) returns the partial itself.
    invert
        Takes one of two combined partials back out: `invert(combine(a, b), b)` must be `a`. It makes long
        windows cheap where all numbers are integers, and needs a commutative `combine`. None (default) for an
        aggregate without one.
    columns
        The columns, or expressions, that the parameters of `lift` read; None (default) for columns of the same names.
    commutative
        False says that the order of events matters: events are kept, and combined in event-time order. True
        by default.
    name
        What explanations and errors call it; the name of `lift` by default.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    UserAggregate
        An aggregate of the type that `lower` returns: int64, bool or float64.

    Raises
    ------
    QueryError
        If one of these is no function, reads no column, or has an `identity` that is no partial.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> vwap = wr.aggregate(
    ...     lift=lambda price, volume: (price * volume, volume),
    ...     combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ...     lower=lambda a: a[0] / a[1],
    ...     identity=(0.0, 0.0),
    ... )
    >>> events = pa.table({"ts": [1, 2, 3], "price": [10.0, 20.0, 30.0], "volume": [1.0, 1.0, 2.0]})
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(10)}, aggregates={"vwap": vwap})
    >>> q.run(events)["vwap"].to_pylist()
    [22.5]
    """
    for role, function in (("lift", lift), ("combine", combine), ("lower", lower), ("invert", invert)):
        if function is not None and not callable(function):
            raise QueryError(f"{role} must be a function, not {type(function).__name__}")
    if invert is not None and not commutative:
        raise QueryError(
            "invert takes a partial out of a total wherever it lies in it, and with commutative=False that "
            "makes a difference: leave out one of the two"
        )
    if columns is None:
        columns = list(inspect.signature(lift).parameters)
    columns = [columns] if isinstance(columns, (str, Expr)) else columns
    if not columns:
        raise QueryError("an aggregate needs at least one column: lift has no parameters")
    label = name or str(getattr(lift, "__name__", "aggregate"))
    lift = as_function(lift, len(columns))
    combine = as_function(combine, 2)
    lower = same if lower is None else as_function(lower, 1)
    bare = not isinstance(identity, tuple)
    values = identity if isinstance(identity, tuple) else (identity,)
    if not values:
        raise QueryError("identity must be a number or a tuple of numbers, not an empty tuple")
    for value in values:
        if not isinstance(value, (int, float)):
            raise QueryError(f"identity must hold integers, floats and booleans only, not {value!r}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise QueryError(f"identity {value} does not fit in 64 bits")
    return UserAggregate(
        columns_read(*columns, where=where),
        lift,
        combine,
        lower,
        invert,
        values,
        bare,
        commutative,
        "aggregate" if label == "<lambda>" else label,
    )
