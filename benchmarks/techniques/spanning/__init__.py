"""Techniques for span events, each a complete operator: slices in two parts and in levels, and their rivals."""

from benchmarks.techniques.spanning.aggregate_buckets import AggregateBuckets
from benchmarks.techniques.spanning.base import SpanTechnique
from benchmarks.techniques.spanning.plane_sweeping import PlaneSweeping
from benchmarks.techniques.spanning.se_multi_level_slicing import SeMultiLevelSlicing
from benchmarks.techniques.spanning.se_slicing import SeSlicing
from benchmarks.techniques.spanning.tuple_buckets import TupleBuckets

__all__ = [
    "AggregateBuckets",
    "PlaneSweeping",
    "SeMultiLevelSlicing",
    "SeSlicing",
    "SpanTechnique",
    "TupleBuckets",
]
