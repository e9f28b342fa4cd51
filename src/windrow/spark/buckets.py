"""Where buckets are: each is a key of Spark's state, which Spark puts into a partition by a hash.

by number      buckets=8: buckets 0 to 7, wherever the hash puts them; some partitions may have none
by partition   one bucket for each partition, called by the first number that Spark puts there; so there always is a bucket 0,
               which tells that a stream has other buckets than its checkpoint
"""

from __future__ import annotations

import numpy as np

PARTITIONS = "spark.sql.shuffle.partitions"


def names(partitions: int) -> list[int]:
    """For each partition the first number that Spark's hash puts there.

    >>> names(2), names(4)
    ([2, 0], [12, 6, 2, 0])
    """
    found: dict[int, int] = {}
    begin, size = 0, 16 * partitions
    while len(found) < partitions:
        places = spark_hash(np.arange(begin, begin + size)) % partitions
        first, where = np.unique(places, return_index=True)
        for place, at in zip(first.tolist(), where.tolist(), strict=True):
            found.setdefault(place, begin + at)
        begin += size
    return [found[place] for place in range(partitions)]


def spark_hash(numbers: np.ndarray) -> np.ndarray:
    """Spark's `hash` of a column of type int: 32-bit Murmur3 with the seed 42.

    >>> spark_hash(np.array([0, 1, -1])).tolist()
    [933211791, -559580957, -1604776387]
    """
    with np.errstate(over="ignore"):
        mixed = numbers.astype(np.int64).astype(np.uint32) * np.uint32(0xCC9E2D51)
        mixed = _rotated(mixed, 15) * np.uint32(0x1B873593)
        mixed = _rotated(mixed ^ np.uint32(42), 13) * np.uint32(5) + np.uint32(0xE6546B64)
        mixed ^= np.uint32(4)  # the length in bytes
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
        return (mixed ^ (mixed >> np.uint32(16))).astype(np.int32)


def _rotated(bits: np.ndarray, by: int) -> np.ndarray:
    return (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
