"""Aggregates of a user's own that the transcripts name."""

from __future__ import annotations

import windrow as wr

DIGITS = wr.aggregate(
    lift=lambda x: (x, 10),
    combine=lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
    lower=lambda a: a[0],
    identity=(0, 1),
    commutative=False,
    name="digits",
)
FUNCTIONS = {"digits": DIGITS}
