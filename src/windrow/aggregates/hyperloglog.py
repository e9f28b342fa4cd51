"""HyperLogLog: roughly how many different values, in a few kilobytes, for any number of them.

A value's 64-bit hash picks one of `m = 2**precision` registers with its low bits; the register
keeps the longest run of leading zeros seen among the others. Two sketches merge by the larger of
each register, so a value that both have seen counts once. The relative standard error is
`1.04 / sqrt(m)`, 1.6 % at the default precision of 12.

    hash   0 0 0 1 0 1 1 ... | 0 1 1 0      low bits: register 6
           `-----' three zeros, so rank 4

Flajolet, Fusy, Gandouet, Meunier: HyperLogLog (AofA 2007). Hashes of 64 bits as in Heule, Nunkesser,
Hall: HyperLogLog in Practice (EDBT 2013). While more than 1/e of the registers are empty, that is up
to about `m` values, the estimate is by linear counting (Whang, Vander-Zanden, Taylor 1990), which is
the closer one there; beyond it is Ertl's improved raw one (New cardinality estimation algorithms for
HyperLogLog sketches, 2017, algorithm 6), which needs no table of measured biases.

Equal numbers hash equally: -0.0 is 0.0, and all NaN are one value. Text is refused, because its
codes are ranks in a dictionary that grows, and a hash of a rank would not outlive the batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Kind,
    Sketch,
    columns_read,
    is_text,
    kind_of,
    plain,
    whole_number,
)
from windrow.aggregates.twins import in_numpy, into
from windrow.errors import QueryError
from windrow.expressions import ColumnLike

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
FRACTION = np.uint64(0xD1B54A32D192ED03)
SHIFT_30, SHIFT_27, SHIFT_31 = np.uint64(30), np.uint64(27), np.uint64(31)
ONE, ZERO = np.uint64(1), np.uint64(0)
TOP_BIT = np.uint64(1 << 63)
NOT_A_NUMBER = np.uint64(0x7FF8000000000000)
TWO_63 = 9223372036854775808.0
ALPHA = 0.5 / math.log(2.0)


def mix(bits):  # type: ignore[no-untyped-def]
    """Steele, Lea and Flood's SplitMix64: a bijection after which every bit depends on all others."""
    z = bits + GAMMA
    z = (z ^ (z >> SHIFT_30)) * FIRST
    z = (z ^ (z >> SHIFT_27)) * SECOND
    return z ^ (z >> SHIFT_31)


def hash_integer(x):  # type: ignore[no-untyped-def]
    """The hash of an int64."""
    return mix(np.int64(x).view(np.uint64))


def hash_float(x):  # type: ignore[no-untyped-def]
    """The hash of a float64; whole numbers hash as the integer they equal."""
    value = np.float64(x)
    if value != value:
        return mix(NOT_A_NUMBER ^ FRACTION)
    if value >= -TWO_63 and value < TWO_63 and np.floor(value) == value:
        return hash_integer(np.int64(value))
    return mix(value.view(np.uint64) ^ FRACTION)


def record(registers, hashed):  # type: ignore[no-untyped-def]
    """Enter one hash; `registers` has a power of two of places."""
    mask = np.uint64(len(registers) - 1)
    rank = 1
    bit = TOP_BIT
    while bit > mask and hashed & bit == ZERO:
        rank += 1
        bit = bit >> ONE
    index = np.int64(hashed & mask)
    if rank > registers[index]:
        registers[index] = rank


def insert_integer(registers, x):  # type: ignore[no-untyped-def]
    record(registers, hash_integer(x))


def insert_float(registers, x):  # type: ignore[no-untyped-def]
    record(registers, hash_float(x))


@in_numpy(into(np.maximum))
def absorb(registers, other):  # type: ignore[no-untyped-def]
    for i in range(len(registers)):
        if other[i] > registers[i]:
            registers[i] = other[i]


def sigma(x):  # type: ignore[no-untyped-def]
    """Ertl's correction for empty registers, of which there is the share `x` < 1."""
    weight = 1.0
    total = x
    before = -1.0
    while total != before:
        before = total
        x = x * x
        total += x * weight
        weight += weight
    return total


def tau(x):  # type: ignore[no-untyped-def]
    """Ertl's correction for saturated registers, of which there is the share `1 - x`."""
    if x == 0.0 or x == 1.0:
        return 0.0
    weight = 1.0
    total = 1.0 - x
    before = -1.0
    while total != before:
        before = total
        x = math.sqrt(x)
        weight *= 0.5
        total -= (1.0 - x) * (1.0 - x) * weight
    return total / 3.0


@in_numpy(lambda registers: np.bincount(registers, minlength=66).astype(np.float64))
def counted(registers):  # type: ignore[no-untyped-def]
    """How many registers hold each rank."""
    times = np.zeros(66)
    for i in range(len(registers)):
        times[registers[i]] += 1.0
    return times


def estimate(registers):  # type: ignore[no-untyped-def]
    """How many different hashes were recorded, as a float64."""
    m = float(len(registers))
    highest = 65
    while m > 1.0:
        m *= 0.5
        highest -= 1
    m = float(len(registers))
    times = counted(registers)
    if times[0] * math.e > m:
        return m * math.log(m / times[0])
    total = m * tau(1.0 - times[highest] / m)
    for rank in range(highest - 1, 0, -1):
        total = 0.5 * (total + times[rank])
    total += m * sigma(times[0] / m)
    return ALPHA * m * m / total


def lower(registers, n):  # type: ignore[no-untyped-def]
    return np.int64(math.floor(estimate(registers) + 0.5)), True


def sound(registers: np.ndarray) -> np.ndarray:
    """Whether each register holds a rank that a 64-bit hash can have."""
    precision = registers.shape[1].bit_length() - 1
    return registers.max(axis=1, initial=0) <= 65 - precision


@cache
def partial(precision: int, kind: Kind) -> Sketch:
    """One sketch per precision and kind of column."""
    numbers = "integers" if kind == "i" else "floats"
    return Sketch(
        f"HyperLogLog of {numbers}, precision={precision}",
        (Field("registers", "u1", 0, width=2**precision),),
        insert_integer if kind == "i" else insert_float,
        absorb,
        sound,
    )


@dataclass(frozen=True)
class ApproxDistinct(Aggregate):
    """About how many distinct values, by HyperLogLog with `2**precision` registers."""

    columns: tuple[str, ...]
    precision: int
    algebra = Algebra("algebraic", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if is_text(types[0]):
            raise QueryError(
                f"{self} cannot work on a column of type {types[0]}: use distinct, which is exact"
            )
        kind = kind_of(types[0], what=str(self))
        return Bound(partial(self.precision, kind), (kind,), pa.int64(), lower, ("i",), plain(pa.int64()))

    def __str__(self) -> str:
        return f"approx_distinct({self.columns[0]}, precision={self.precision})"


def approx_distinct(
    column: ColumnLike, *, precision: int = 12, where: ColumnLike | None = None
) -> ApproxDistinct:
    """About how many distinct non-null values a window holds, in `2**precision` bytes (HyperLogLog).

    Parameters
    ----------
    column
        A column of any type but text, for which `distinct` gives the exact number.
    precision
        From 4 to 18, 12 by default. The relative standard error is `1.04 / 2**(precision / 2)`: 1.6 % at 12.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    ApproxDistinct
        An aggregate of type int64: 0 where the window holds no value.

    Raises
    ------
    QueryError
        If `precision` is no whole number from 4 to 18.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.approx_distinct("user"))
    'approx_distinct(user, precision=12)'
    """
    return ApproxDistinct(
        columns_read(column, where=where), whole_number(precision, what="precision", least=4, most=18)
    )
