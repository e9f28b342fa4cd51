"""Aggregates, functions of windows and predicates of a user's own that the transcripts name."""

from __future__ import annotations

import pyarrow.compute as pc

import windrow as wr

# The number that digits make, up to a modulus: that of many digits needs more than 64 bits.
DIGITS = wr.aggregate(
    lift=lambda x: (x % 1_000_003, 10),
    combine=lambda a, b: ((a[0] * b[1] + b[0]) % 1_000_003, a[1] * b[1] % 1_000_003),
    lower=lambda a: a[0],
    identity=(0, 1),
    commutative=False,
    name="digits",
)


def trips(moving, speed):  # type: ignore[no-untyped-def]
    """A window while the speed is above zero."""
    now = 1 if speed > 0 else 0
    return now, 1 if now > moving else 0, 1 if now < moving else 0


def every_second(seen, t):  # type: ignore[no-untyped-def]
    """Windows over four events, one more at every second event: Cutty's form of a count window."""
    begins = 1 if seen % 2 == 0 else 0
    return seen + 1, begins, begins if seen >= 4 else 0


def too_old(oldest, t, price):  # type: ignore[no-untyped-def]
    """Evict what lies further back than the range."""
    return 1 if oldest <= t - (10 if price > 10 else 5) else 0


def report_is_due(state, t, price):  # type: ignore[no-untyped-def]
    """Report every 5 minutes, or every 2 once the price is at most 10."""
    return t >= state + (5 if price > 10 else 2)


def reported_at(state, t, price):  # type: ignore[no-untyped-def]
    """The minute of the last report."""
    return t if t >= state + (5 if price > 10 else 2) else state


FUNCTIONS = {
    "digits": DIGITS,
    "every_second": every_second,
    "is_hot": pc.field("heat") > 30,
    "is_low": lambda heat: heat < 10,
    "report_is_due": report_is_due,
    "reported_at": reported_at,
    "too_old": too_old,
    "trips": trips,
}
