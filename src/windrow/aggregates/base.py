"""What every aggregate declares: its algebra, and the partial that a slice keeps for it.

An aggregate is a frozen value. Bound to the types of its columns it gives a `Bound`: the
*partial* (what is kept per slice and key, and how two of them combine) and the *result* (how a
partial is lowered to an output column). There are four shapes of partial:

    Scalars     a few numbers per slice; `lift` an event, `combine` two partials (Tangwongsan et al.)
    Sketch      a small array per slice, updated in place (HyperLogLog, t-digest, histogram ...)
    Multiset    the values themselves, sorted and run-length encoded (quantiles, distinct, top-k)
    Sequence    the events in time order (collect, concat, non-commutative functions)

Two aggregates whose partials are equal share one: `sum` and `mean` of a column cost one sum, all
quantiles and the distinct count of a column share one sorted slice.

The functions below a partial are plain Python over numbers. The engine compiles them into its
loops; nothing here imports a compiler. Inputs arrive as *codes*: int64 for integers, booleans,
dates, timestamps, decimals and strings (by rank), float64 for floating-point columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import QueryError
from windrow.expressions.building import ColumnLike, column_name, filtered

Kind = Literal["i", "f"]
INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Algebra:
    """What the planner may rely on (Scotty, section 4.2; Gray et al. for the three kinds)."""

    kind: Literal["distributive", "algebraic", "holistic"]
    commutative: bool = True
    associative: bool = True
    invertible: bool = False
    idempotent: bool = False
    selective: bool = False

    def describe(self) -> str:
        words = [self.kind, "commutative" if self.commutative else "not commutative"]
        words += [w for w in ("invertible", "idempotent", "selective") if getattr(self, w)]
        return ", ".join(words)


@dataclass(frozen=True)
class Field:
    """One number of a partial. `dtype` is "i", "f" or "b" (a boolean), or "t": the type of the measure's ticks.

    `code` is the position of the input column whose dictionary codes this field holds, if any.
    `width` makes it a small array per slice (sketches only).
    """

    name: str
    dtype: Literal["i", "f", "b", "t", "u1"]
    identity: Any
    code: int | None = None
    width: int | None = None
    shown: str = field(init=False)

    def __post_init__(self) -> None:
        # -0.0 is equal to 0.0; fields that differ in it are not.
        object.__setattr__(self, "shown", repr(self.identity))


@dataclass(frozen=True)
class Scalars:
    """A partial of a few numbers.

    `lift(x, ...)` gives the partial of one event as a tuple, `combine(a, b)` joins two in time
    order, `invert(a, b)` takes `b` back out of `a` and exists only where that is exact.
    `fold(x, ..., low, high)` is an optional faster way to the partial of a whole run of events.
    `timed` functions get the event's time and arrival number after their columns, and so do not
    depend on the order of arrival. `own` marks functions of the user's. `selects` says that
    `combine` always gives back one of its two partials as it is.
    """

    name: str
    fields: tuple[Field, ...]
    lift: Callable[..., Any] | None
    combine: Callable[..., Any]
    invert: Callable[..., Any] | None = None
    fold: Callable[..., Any] | None = None
    timed: bool = False
    own: bool = False
    bare: bool = False
    ordered: bool = False
    selects: bool = False


@dataclass(frozen=True)
class Sketch:
    """A partial of small arrays: `insert(*arrays, x)` and `absorb(*into, *other)` work in place.

    `sound(*arrays)` says of each cell whether the places that the arrays hold lie inside them, for
    sketches that hold such places; compiled code trusts them, so a snapshot must not forge them.
    """

    name: str
    fields: tuple[Field, ...]
    insert: Callable[..., Any]
    absorb: Callable[..., Any]
    sound: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Multiset:
    """The values of a slice, sorted, each with how often it occurs."""

    name: str = "sorted values"


@dataclass(frozen=True)
class Sequence:
    """The events of a slice in time order, arrival order among equals."""

    name: str = "events in order"


@dataclass(frozen=True)
class Bound:
    """An aggregate bound to column types: what is kept, and how it becomes a column.

    Scalars and Sketch: `lower(partial, n)` gives a tuple of numbers and, last, whether the result
    is defined (null if not); `outputs` are their dtypes; `build` makes the Arrow array from them.
    `check` finds the first result that its type cannot hold; `fits` says of the numbers of one result that it can,
    and then the first of them is all that `build` needs.
    Multiset and Sequence: `finish` works on the whole column of windows at once (see the engine).
    """

    partial: Scalars | Sketch | Multiset | Sequence
    kinds: tuple[Kind, ...]
    type: pa.DataType
    lower: Callable[..., Any] | None = None
    outputs: tuple[str, ...] = ()
    build: Callable[..., pa.Array] | None = None
    finish: Any = None
    check: Callable[..., Any] | None = None
    fits: Callable[..., Any] | None = None


class Aggregate:
    """The base of all aggregate specs: its `name`, the `columns` it reads and the `algebra` it promises."""

    name: str
    columns: tuple[str, ...]
    algebra: Algebra

    def __post_init__(self) -> None:
        for column in self.columns:
            if not isinstance(column, str) or not column:
                computed = ': wr.expr("..") makes an expression' if isinstance(column, pc.Expression) else ""
                raise QueryError(
                    f'an aggregate reads a column by its name, such as "amount", and not {column!r}{computed}'
                )

    def __str__(self) -> str:
        return f"{getattr(self, 'name', type(self).__name__)}({', '.join(map(str, self.columns))})"

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        """What to keep and how to lower it, for columns of these types."""
        raise QueryError(
            f"{type(self).__name__} does not say how it is computed: wr.aggregate makes one of your own"
        )


def columns_read(*columns: ColumnLike | None, where: ColumnLike | None = None) -> tuple[str, ...]:
    """The names of the columns that an aggregate reads; None is no column.

    Nulls are skipped, in each of several columns: so an event for which `where` does not hold has a null in the first.

    >>> columns_read("x", "y", where="z > 3")
    ('= CASE WHEN z > 3 THEN x END', 'y')
    """
    names = [column_name(column) for column in columns if column is not None]
    return tuple(names) if where is None else (filtered(columns[0], where), *names[1:])


def guessed(aggregate: Aggregate) -> Bound | None:
    """An aggregate bound to columns of a type that it takes, where the types are not known."""
    for type_ in (pa.float64(), pa.string(), pa.int64()):
        try:
            return aggregate.bind((type_,) * len(aggregate.columns))
        except QueryError:
            continue
    return None


def require_aggregate(aggregate: object) -> None:
    """A QueryError if it is none."""
    if not isinstance(aggregate, Aggregate):
        raise QueryError(f'an aggregate is needed, such as wr.sum("amount"), not {aggregate!r}')


def whole_number(value: object, *, what: str, least: int = 1, most: int | None = None) -> int:
    """A number of things, at least `least` and at most `most`; an error for others."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and least <= value <= (math.inf if most is None else most):  # type: ignore[operator]
        return int(value)  # type: ignore[call-overload]
    bounds = f"from {least} on" if most is None else f"from {least} to {most}"
    raise QueryError(f"{what} must be a whole number {bounds}, not {value!r}")


def kind_of(type_: pa.DataType, *, what: str) -> Kind:
    """Whether a column arrives as int64 or as float64 codes; an error for other types."""
    if pa.types.is_floating(type_):
        return "f"
    if (
        pa.types.is_integer(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_date(type_)
        or pa.types.is_duration(type_)
        or pa.types.is_decimal128(type_)
        or is_text(type_)
    ):
        return "i"
    raise QueryError(f"{what} cannot work on a column of type {type_}")


def is_text(type_: pa.DataType) -> bool:
    """Whether values are coded by rank in a dictionary and not by their own number."""
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
        or (pa.types.is_dictionary(type_) and is_text(type_.value_type))
    )


def text_type(type_: pa.DataType) -> pa.DataType:
    """The type in which values of a text column come back."""
    if pa.types.is_dictionary(type_):
        return text_type(type_.value_type)
    if pa.types.is_string_view(type_):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(type_) else type_


def numeric_kind(type_: pa.DataType, *, what: str) -> Kind:
    """As `kind_of`, for functions that do arithmetic: numbers only."""
    if pa.types.is_floating(type_):
        return "f"
    if pa.types.is_integer(type_) or pa.types.is_decimal128(type_):
        return "i"
    raise QueryError(f"{what} needs a numeric column, not {type_}")


def summable_kind(type_: pa.DataType, *, what: str) -> Kind:
    """As `numeric_kind`, for sums: true counts as 1."""
    return "i" if pa.types.is_boolean(type_) else numeric_kind(type_, what=what)


def scale_of(type_: pa.DataType) -> float:
    """What an int64 code must be divided by to give the number: 10**scale for decimals."""
    return float(10**type_.scale) if pa.types.is_decimal(type_) else 1.0


def plain(type_: pa.DataType) -> Callable[..., pa.Array]:
    """A `build` for a result that is one number of Arrow type `type_`."""
    as_it_is = {pa.int64(): "i", pa.float64(): "f"}.get(type_)

    def build(values: list[np.ndarray], defined: np.ndarray, decoders: Any) -> pa.Array:
        if np.count_nonzero(defined) < len(defined):
            return pa.array(values[0], type_, mask=~defined)
        if values[0].dtype.kind != as_it_is:
            return pa.array(values[0], type_)
        return pa.Array.from_buffers(type_, len(defined), [None, pa.py_buffer(values[0])])

    return build


def scaled(scale: float) -> Callable[..., pa.Array]:
    """A `build` for a result that is one float, of codes that are `scale` times as large as the numbers."""

    def build(values: list[np.ndarray], defined: np.ndarray, decoders: Any) -> pa.Array:
        return plain(pa.float64())([values[0] / scale], defined, decoders)

    return build


def lists_of(rows: np.ndarray, defined: np.ndarray) -> pa.Array:
    """One list per window, null where it is not defined; `rows` are the numbers of those that are."""
    offsets = np.concatenate([[0], np.cumsum(defined) * rows.shape[1]])
    mask = None if defined.all() else pa.array(~defined)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(rows.ravel()), mask=mask)


def unscaled(type_: pa.DataType, power: int = 1) -> Callable[..., pa.Array]:
    """A `build` for a result that is one float, in the unit of a column of this type to the `power`."""
    return scaled(scale_of(type_) ** power)


def decoded(position: int = 0, output: int = 0) -> Callable[..., pa.Array]:
    """A `build` for a result that is a value of input column number `position`."""

    def build(values: list[np.ndarray], defined: np.ndarray, decoders: Any) -> pa.Array:
        return decoders[position](values[output], defined)

    return build
