"""A Bloom filter: was this value in the window? "No" is certain, "yes" is wrong with a small chance.

Each value sets a few bits of an array; a value of which one bit is not set was never there. For
`capacity` different values and a share of false answers `error` the array has
`capacity * ln(1 / error) / ln(2)**2` bits, 1.2 bytes a value at 1 %. More values than `capacity`
are no mistake, but more answers are false. Two filters merge by "or".

    result    | probes | bits 0..7 | bits 8..15 | ...      one byte each; bit 0 is the lowest

Bloom: Space/time trade-offs in hash coding with allowable errors (CACM 1970). Each probe is the hash
of the one before. Double hashing (Kirsch, Mitzenmacher, ESA 2006) would be a little faster, but in
a filter of a few hundred bits it has too few different pairs of strides to keep a small `error`.

Equal numbers are one value: 3 and 3.0, 0.0 and -0.0, all NaN. Text is refused for the reason stated
in `hyperloglog`, and so are dates and decimals, whose codes the reader of a filter does not know.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    INT64_MAX,
    Aggregate,
    Algebra,
    Bound,
    Field,
    Kind,
    Sketch,
    columns_read,
    is_text,
    whole_number,
)
from windrow.aggregates.hyperloglog import hash_float, hash_integer, mix
from windrow.aggregates.twins import in_numpy, into
from windrow.errors import QueryError
from windrow.expressions import ColumnLike

EIGHT = np.uint64(8)
MOST_PROBES = 64


def mark(bits, hashed, probes):  # type: ignore[no-untyped-def]
    """Set the bits of one hash."""
    size = np.uint64(len(bits)) * EIGHT
    for _ in range(probes):
        bit = hashed % size
        bits[np.int64(bit // EIGHT)] |= np.uint8(1 << np.int64(bit % EIGHT))
        hashed = mix(hashed)


@in_numpy(into(np.bitwise_or))
def absorb(bits, other):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        bits[i] |= other[i]


def sizes(capacity: int, error: float) -> tuple[int, int]:
    """How many bytes, and how many probes, keep `capacity` values within `error`."""
    width = math.ceil(capacity * math.log(1.0 / error) / math.log(2.0) ** 2 / 8.0)
    return width, min(max(1, round(8 * width / capacity * math.log(2.0))), MOST_PROBES)


@cache
def partial(capacity: int, error: float, kind: Kind) -> Sketch:
    """One sketch per capacity, error and kind of column."""
    width, probes = sizes(capacity, error)

    def insert_integer(bits, x):  # type: ignore[no-untyped-def]
        mark(bits, hash_integer(x), probes)

    def insert_float(bits, x):  # type: ignore[no-untyped-def]
        mark(bits, hash_float(x), probes)

    numbers = "integers" if kind == "i" else "floats"
    return Sketch(
        f"Bloom filter of {numbers}, capacity={capacity}, error={error!r}",
        (Field("bits", "u1", 0, width=width),),
        insert_integer if kind == "i" else insert_float,
        absorb,
    )


def might_contain(bits: bytes, value: float) -> bool:
    """Whether a value may be among those of a `bloom_filter` result.

    Parameters
    ----------
    bits
        One result of a `bloom_filter`.
    value
        The number to look for. Equal numbers are one value: 3 and 3.0, 0.0 and -0.0, all NaN.

    Returns
    -------
    bool
        False is certain; True is wrong with the chance that `bloom_filter` was given as `error`.

    Examples
    --------
    >>> might_contain(b"\\x03" + bytes(8), 7)
    False
    >>> might_contain(b"\\x03" + bytes([255] * 8), 7)
    True
    """
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        try:
            value = float(value)
        except OverflowError:
            return False
    with np.errstate(over="ignore"):
        of = hash_integer if isinstance(value, int) else hash_float
        hashed = of(value)
        for _ in range(bits[0]):
            byte, bit = divmod(int(hashed) % (8 * (len(bits) - 1)), 8)
            if not bits[1 + byte] >> bit & 1:
                return False
            hashed = mix(hashed)
    return True


@dataclass(frozen=True)
class BloomFilter(Aggregate):
    """A Bloom filter for `capacity` values with a share of false answers of at most `error`."""

    columns: tuple[str, ...]
    capacity: int
    error: float
    algebra = Algebra("distributive", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if is_text(types[0]):
            raise QueryError(
                f"{self} cannot work on a column of type {types[0]}: use distinct for how many there are, "
                "or collect for the values"
            )
        if not (pa.types.is_integer(types[0]) or pa.types.is_floating(types[0])):
            raise QueryError(f"{self} needs a column of integers or floats, not {types[0]}")
        kind: Kind = "f" if pa.types.is_floating(types[0]) else "i"
        header = bytes([sizes(self.capacity, self.error)[1]])

        def build(fields: list[np.ndarray], n: np.ndarray, decoders: Any) -> pa.Array:
            rows = zip(fields[0], n.tolist(), strict=True)
            return pa.array([header + row.tobytes() if count else None for row, count in rows], pa.binary())

        return Bound(partial(self.capacity, self.error, kind), (kind,), pa.binary(), build=build)

    def __str__(self) -> str:
        return f"bloom_filter({self.columns[0]}, capacity={self.capacity}, error={self.error:g})"


def bloom_filter(
    column: ColumnLike, *, capacity: int = 1000, error: float = 0.01, where: ColumnLike | None = None
) -> BloomFilter:
    """A Bloom filter of the values of a column, which `might_contain` reads.

    Parameters
    ----------
    column
        A column of integers or floats.
    capacity
        For how many different values the filter is made; 1000 by default. More are allowed, and make more
        false answers.
    error
        The largest share of false answers up to `capacity` values; 0.01 by default.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    BloomFilter
        An aggregate of type binary: null where the window holds no value.

    Raises
    ------
    QueryError
        If `capacity` is no whole number from 1 on, or `error` is not between 0 and 1.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.bloom_filter("user"))
    'bloom_filter(user, capacity=1000, error=0.01)'
    """
    capacity = whole_number(capacity, what="capacity")
    if not 0 < error < 1:
        raise QueryError(f"error is a share between 0 and 1, both excluded, not {error!r}")
    return BloomFilter(columns_read(column, where=where), capacity, float(error))
