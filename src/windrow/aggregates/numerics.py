"""Arithmetic that does not lose anything, shared by the aggregates.

Plain functions over numbers, compiled where they are used.
"""

from __future__ import annotations

import math

import numpy as np

SIGN = np.int64(-(2**63))
HALF_RANGE = np.int64(1 << 47)
SMALL_RUN = 8192
FLOAT_RUN = 1024


def add_wide(low, high, other_low, other_high):  # type: ignore[no-untyped-def]
    """128-bit addition of two numbers that are each held as two int64 (low bits, high bits)."""
    total = low + other_low
    carry = np.int64((total ^ SIGN) < (low ^ SIGN))
    return total, high + other_high + carry


def subtract_wide(low, high, other_low, other_high):  # type: ignore[no-untyped-def]
    """128-bit subtraction, the inverse of `add_wide`."""
    total = low - other_low
    borrow = np.int64((low ^ SIGN) < (other_low ^ SIGN))
    return total, high - other_high - borrow


def wide_to_float(low, high):  # type: ignore[no-untyped-def]
    """The float64 nearest to a 128-bit number (to within one rounding of each half)."""
    if high == (low >> 63):
        return float(low)
    unsigned = float(low)
    if low < 0:
        unsigned += 18446744073709551616.0
    return float(high) * 18446744073709551616.0 + unsigned


def sum_integers(x, low, high):  # type: ignore[no-untyped-def]
    """The exact 128-bit sum of `x[low:high]`.

    Runs of small numbers (below 2**47) are added in one vector loop, because 8192 of them cannot
    overflow; a run that holds a large number is added again with carries.
    """
    total_low = np.int64(0)
    total_high = np.int64(0)
    begin = low
    while begin < high:
        end = min(begin + SMALL_RUN, high)
        run = np.int64(0)
        bits = np.int64(0)
        # A view that begins at 0: LLVM vectorizes the loop over it, not one over an inner range.
        part = x[begin:end]
        for i in range(part.shape[0]):
            run += part[i]
            bits |= part[i] + HALF_RANGE
        if bits >> 48 == 0:
            total_low, total_high = add_wide(total_low, total_high, run, run >> 63)
        else:
            for i in range(begin, end):
                total_low, total_high = add_wide(total_low, total_high, x[i], x[i] >> 63)
        begin = end
    return total_low, total_high


def two_sum(a, b):  # type: ignore[no-untyped-def]
    """`a + b` rounded, and exactly what the rounding lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def add_float(a, b):  # type: ignore[no-untyped-def]
    """Add two float sums (sum, lost, lost of lost, non-finite): Ogita, Rump and Oishi's Sum3.

    Infinities and NaN are kept apart from the finite sum, so that they spoil no compensation.
    """
    total, first = two_sum(a[0], b[0])
    lost, second = two_sum(a[1], b[1])
    lost, third = two_sum(lost, first)
    return total, lost, a[2] + b[2] + second + third, a[3] + b[3]


def lift_float(x):  # type: ignore[no-untyped-def]
    """The float sum of one value."""
    value = float(x)
    if value - value == 0.0:
        return value, 0.0, 0.0, 0.0
    return 0.0, 0.0, 0.0, value


def lower_float(a):  # type: ignore[no-untyped-def]
    """A float sum as one number, within 2 ulp of `math.fsum`."""
    if a[3] != 0.0:
        return a[3]
    total, lost = two_sum(a[0], a[1])
    lost, rest = two_sum(lost, a[2])
    total, lost = two_sum(total, lost)
    return total + (lost + rest)


def sum_floats(x, low, high):  # type: ignore[no-untyped-def]
    """The float sum of `x[low:high]`: four independent chains, so that they overlap in the CPU."""
    result = (0.0, 0.0, 0.0, 0.0)
    begin = low
    while begin < high:
        end = min(begin + FLOAT_RUN, high)
        fours = begin + (end - begin) // 4 * 4
        s0 = s1 = s2 = s3 = 0.0
        c0 = c1 = c2 = c3 = 0.0
        r0 = r1 = r2 = r3 = 0.0
        part = x[begin:fours]
        for i in range(0, part.shape[0], 4):
            s0, e0 = two_sum(s0, part[i])
            s1, e1 = two_sum(s1, part[i + 1])
            s2, e2 = two_sum(s2, part[i + 2])
            s3, e3 = two_sum(s3, part[i + 3])
            c0, f0 = two_sum(c0, e0)
            c1, f1 = two_sum(c1, e1)
            c2, f2 = two_sum(c2, e2)
            c3, f3 = two_sum(c3, e3)
            r0 += f0
            r1 += f1
            r2 += f2
            r3 += f3
        run = add_float(
            add_float((s0, c0, r0, 0.0), (s1, c1, r1, 0.0)),
            add_float((s2, c2, r2, 0.0), (s3, c3, r3, 0.0)),
        )
        for i in range(fours, end):
            run = add_float(run, (float(x[i]), 0.0, 0.0, 0.0))
        if run[0] - run[0] == 0.0:
            result = add_float(result, run)
        else:
            for i in range(begin, end):
                result = add_float(result, lift_float(x[i]))
        begin = end
    return result


def greater(a, b):  # type: ignore[no-untyped-def]
    """Whether `a > b` where NaN is the greatest number, as in Spark SQL."""
    return a > b or (a != a and b == b)


def merge_moments(a, b):  # type: ignore[no-untyped-def]
    """Join two (count, mean, sum of squared deviations) triples (Chan et al.)."""
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    count = a[0] + b[0]
    delta = b[1] - a[1]
    return count, a[1] + delta * (b[0] / count), a[2] + b[2] + delta * delta * (a[0] * b[0] / count)


def moments(x, low, high):  # type: ignore[no-untyped-def]
    """Count, mean and squared deviations of `x[low:high]`: two passes over runs that fit in cache."""
    result = (0.0, 0.0, 0.0)
    begin = low
    while begin < high:
        end = min(begin + 512, high)
        fours = begin + (end - begin) // 4 * 4
        shift = float(x[begin])
        s0 = s1 = s2 = s3 = 0.0
        part = x[begin:fours]
        for i in range(0, part.shape[0], 4):
            s0 += part[i] - shift
            s1 += part[i + 1] - shift
            s2 += part[i + 2] - shift
            s3 += part[i + 3] - shift
        for i in range(fours, end):
            s0 += x[i] - shift
        count = float(end - begin)
        mean = shift + (s0 + s1 + s2 + s3) / count
        q0 = q1 = q2 = q3 = 0.0
        for i in range(0, part.shape[0], 4):
            d0 = part[i] - mean
            d1 = part[i + 1] - mean
            d2 = part[i + 2] - mean
            d3 = part[i + 3] - mean
            q0 += d0 * d0
            q1 += d1 * d1
            q2 += d2 * d2
            q3 += d3 * d3
        for i in range(fours, end):
            d0 = x[i] - mean
            q0 += d0 * d0
        result = merge_moments(result, (count, mean, q0 + q1 + q2 + q3))
        begin = end
    return result


def lift_log(x):  # type: ignore[no-untyped-def]
    """The float sum of one value's logarithm."""
    value = float(x)
    if value == 0.0:
        return lift_float(-np.inf)
    if value < 0.0:
        return lift_float(np.nan)
    return lift_float(math.log(value))
