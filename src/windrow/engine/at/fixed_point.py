"""Float sums as exact integers, so that they can be taken out again.

    floats      1.5     0.25    3.0
    as 2**-54   1.5*2**54 ..              each a whole number, if the unit is the last bit of the smallest one
    totals      0   a   a+b   a+b+c       in 128 bits: exact, so the difference of two totals is the very sum between them

Sums by subtraction are wrong where floats are rounded on the way: after 1e16 has come and gone, what is left is noise. Whole numbers are not
rounded. It works where the largest number and the last bit of the smallest lie less than 126 bits apart, the number of rows included: of ten
million rows, if the largest is up to 5e14 times the smallest. Else, and where a number is not finite, float sums are compensated and merged.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from windrow.aggregates.numerics import add_wide, lower_float, subtract_wide, two_sum
from windrow.aggregates.sum import INTEGER_SUM
from windrow.compiling.compiler import bound
from windrow.compiling.tiers import jit
from windrow.engine.functions.bound_kernels import Operations, operations_over
from windrow.engine.intake.numbers import frozen

# A number below 2 ** 126 is two numbers of 62 bits and a sign.
HALF = 2.0**62
ONE_HALF = 2.0**-62
TWO_32, TWO_64, TWO_96 = 2.0**32, 2.0**64, 2.0**96
WORD = np.int64(2**32 - 1)


@jit
def exponents(bits):  # type: ignore[no-untyped-def]
    """The smallest and the largest biased exponent of floats that are not zero, given by their bits; 2047 is not finite."""
    low = np.int64(2047)
    high = np.int64(0)
    for i in range(bits.shape[0]):
        magnitude = bits[i] & np.int64(9223372036854775807)
        exponent = magnitude >> 52
        high = max(high, exponent)
        low = min(low, exponent if magnitude != 0 else np.int64(2047))
    return low, high


@jit
def fill_fixed_totals(values, scale, low, high):  # type: ignore[no-untyped-def]
    """Running totals of floats times a power of two, which are whole numbers of 128 bits; before the first one stands zero."""
    total_low = np.int64(0)
    total_high = np.int64(0)
    low[0] = 0
    high[0] = 0
    for i in range(values.shape[0]):
        value = values[i] * scale
        # `above` counts units of 2**62. The rest has the sign of the value: so it has no more bits than the value, and no float loses one.
        top = np.trunc(value * ONE_HALF)
        above = np.int64(top)
        rest = np.int64(value - top * HALF)
        total_low, total_high = add_wide(total_low, total_high, above << 62, above >> 2)
        total_low, total_high = add_wide(total_low, total_high, rest, rest >> 63)
        low[i + 1] = total_low
        high[i + 1] = total_high


def float_between(a, b):  # type: ignore[no-untyped-def]
    """The difference of two totals, rounded once, as a float sum whose other numbers are zero."""
    low, high = subtract_wide(a[0], a[1], b[0], b[1])
    upper, one = two_sum(float(high >> 32) * TWO_96, float(high & WORD) * TWO_64)
    total, lost = two_sum(upper, float((low >> 32) & WORD) * TWO_32)
    return total + (lost + (one + float(low & WORD))), 0.0, 0.0, 0.0


def rounded(a):  # type: ignore[no-untyped-def]
    """In the place of `lower_float`, where nothing was lost."""
    return a[0]


@cache
def fixed(operations: Operations) -> Operations:
    """The operations of float sums over totals of whole numbers."""
    functions = dict(operations.functions)
    functions["invert"] = float_between
    functions["give"] = bound(functions["give"], {lower_float: rounded})
    whole = operations_over(INTEGER_SUM, 1, [np.dtype(np.int64)] * 2, [np.int64(0)] * 2)
    functions["load"] = dict(whole.functions)["load"]
    return Operations(tuple(functions.items()), whole.dtypes, whole.widths, whole.identities, user=False)


def unit_of(values: np.ndarray, rows: int) -> int | None:
    """The power of two in which all values are whole numbers, of which `rows` add up in 126 bits; None if there is none."""
    low, high = exponents(frozen(values.view(np.int64)))
    if high == 2047:
        return None
    if low == 2047:  # all are zero
        return 0
    unit = max(int(low), 1) - 1075
    bits = int(high) - 1022 - unit + max(1, rows).bit_length()
    return unit if bits <= 124 and -1022 <= unit <= 900 else None
