"""Settings of Hypothesis for the whole suite: the same examples on every machine, no deadline."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# `specimens` and `functions` are shared by tests in several folders.
sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "windrow",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("windrow")
