"""How much Hypothesis tries: the same examples on every machine, or new ones each night.

make test            reproducible: a test that passes here passes everywhere, and one that fails fails everywhere
make test-nightly    searching: other examples in each run, ten times as many. What fails is kept in `.hypothesis`,
                     where the next run begins, and is printed as a line that repeats it on any machine
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

NIGHTLY = os.environ.get("WINDROW_NIGHTLY") == "1"
MORE = 10 if NIGHTLY else 1
USUAL = 15

# Compiling takes seconds: how long an example takes says nothing.
_COMMON = settings(
    deadline=None,
    max_examples=USUAL * MORE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("reproducible", _COMMON, derandomize=True, database=None)
# Said, not left to Hypothesis: it keeps nothing where the environment has CI.
settings.register_profile(
    "searching",
    _COMMON,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile("searching" if NIGHTLY else "reproducible")


def examples(count: int) -> settings:
    """As a decorator: how many examples a test has in `make test`."""
    return settings(max_examples=count * MORE)
