"""How many slices make a chunk, so that no window waits for the second thread.

A chunk's `lcs` is begun when the chunk is full, and first needed when a window begins inside it. The longer
the chunk, the more windows are answered from two chunks and not three, but the later its `lcs` is ready:

    chunks     |-----------|-----------|-----------|
    window              |---------------------|           begins in the first chunk
    lcs                    |~~~~~~~>                       ... whose lcs was made while the second was filled

The largest chunk whose `lcs` is always ready in time is the best one. It is more than half a window and at most
a window, so a window is as long as one chunk, and not as two (the paper's k = 1).

Zhang, Akbarinia and Toumani, Efficient incremental computation of aggregations over sliding windows, KDD 2021,
Theorems 1 and 2.
"""

from __future__ import annotations

from fractions import Fraction


def chunk_of_rows(size: int, slide: int = 1) -> int:
    """Slices in a chunk, for windows of `size` rows every `slide` rows (Theorem 1).

    >>> chunk_of_rows(32), chunk_of_rows(10, 2)
    (17, 4)
    """
    slices, rest = divmod(size, slide)
    if slices <= slide + rest + 1:
        return max(1, slices)
    return (slide * (slices + 1) + rest + 1) // (slide + 1)


def chunk_of_time(size: int, slide: int, combine: float | Fraction) -> int:
    """Slices in a chunk, for windows of `size` ticks every `slide` ticks (Theorem 2).

    combine:  how many ticks one combine takes, the paper's T_u; a small fraction of one as a rule

    >>> chunk_of_time(3600, 1, 1e-7)
    3600
    >>> chunk_of_time(3600, 1, 1)
    2401
    """
    slices, rest = divmod(size, slide)
    unit = Fraction(combine)
    ahead = slide + 2 * unit + (slide * rest + unit if rest else 0)
    if slices * unit <= ahead:
        return max(1, slices)
    return int((slices * (slide + unit) + ahead) // (slide + 2 * unit))
