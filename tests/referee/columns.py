"""Columns of awkward values, each from one draw of Hypothesis.

To draw a list value by value takes Hypothesis a hundred times as long as to draw as many bytes. So a column is drawn as
bytes, `WIDTH` for each value: the first chooses among the ways to make a value, the others say which. Bytes shrink to
zeros, and zeros make the simplest value of the first way. All rows that a table could have are drawn, so that a table
that shrinks to fewer rows keeps the values of those that stay.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

WIDTH = 7
# One of the ways in which a value is made from 48 bits.
Way = Callable[[int], Any]


def drawn(draw: Any, ways: Sequence[Way], size: int, *, most: int) -> list[Any]:
    """`size` values, at most `most`, each made in one of the ways."""
    cells = draw(st.binary(min_size=WIDTH * most, max_size=WIDTH * most))
    return [
        ways[cells[at] % len(ways)](int.from_bytes(cells[at + 1 : at + WIDTH], "big"))
        for at in range(0, WIDTH * size, WIDTH)
    ]


def among(*values: Any) -> Way:
    """One of these values."""
    return lambda bits: values[bits % len(values)]


def between(low: int, high: int) -> Way:
    """An integer from `low` to `high`, each as often as any other; the simplest is zero, or else `low`."""
    width = high - low + 1
    if not low <= 0 <= high:
        return lambda bits: low + bits % width

    def made(bits: int) -> int:
        number = bits % width
        return number if number <= high else number - width

    return made


def of_any_size(most: int) -> Way:
    """An integer of up to `most` bits, below or above zero, small ones as often as large ones."""

    def made(bits: int) -> int:
        size, rest = bits % (most + 1), bits // (most + 1)
        number = (rest >> 1) & ((1 << size) - 1)
        return -number if rest & 1 else number

    return made


def floats(limit: float) -> Way:
    """A float of any size from -limit to limit."""
    edges = (0.5, 1.1, 1e-5, 5e-324, 2.225073858507201e-308, 1.0000000000000002, limit, -limit)

    def made(bits: int) -> float:
        kind, rest = bits % 8, bits // 8
        if kind == 0:
            return edges[rest % len(edges)]
        number = math.ldexp(1 + (rest >> 7) / 2**38, rest % 128 - 90)
        return math.copysign(math.fmod(number, limit), 1 if kind < 5 else -1)

    return made


def as_single(way: Way) -> Way:
    """The same in single precision."""
    return lambda bits: struct.unpack("f", struct.pack("f", way(bits)))[0]


def as_float(way: Way) -> Way:
    """The same as floats."""
    return lambda bits: float(way(bits))


_AWKWARD = (0.0, -0.0, 1.0, 0.1, -2.5, 1e300, -1e300, 1e-300, 1e16, 3.0)
_ODD = (math.nan, math.inf, -math.inf)
# Ways to make plain values of a kind (temporal ones as ticks), without nulls.
KINDS: dict[str, tuple[Way, ...]] = {
    "int": (between(-5, 5), of_any_size(40)),
    "small": (of_any_size(15), between(-(2**15), 2**15 - 1), among(-(2**15), 2**15 - 1)),
    "float": (among(*_AWKWARD, *_ODD), floats(1e9), as_float(between(-4, 4))),
    "single": (among(*_AWKWARD[:5], *_ODD), as_single(floats(1e9))),
    "finite": (among(*_AWKWARD), floats(1e9), as_float(between(-4, 4))),
    "mild": (floats(1e6), as_float(between(-4, 4))),
    "decimal": (
        lambda bits: Decimal(between(-(10**6), 10**6)(bits)).scaleb(-2),
        lambda bits: Decimal(between(-3, 3)(bits)),
    ),
    "string": (among("", "a", "b", "ab", "ä", "z", "日本", "B"),),
    "bool": (among(False, True),),
    "time": (of_any_size(40), between(-3, 3)),
    "date": (between(-20_000, 20_000), between(-3, 3)),
    "gap": (among(1, 2, 3, 4, 9),),
    "odometer": (between(-2, 3),),
    "count": (between(-2, 2),),
    "level": (as_float(between(-3, 3)), among(0.5, math.nan)),
}
