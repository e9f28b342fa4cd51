"""Techniques for events that last, each a complete operator: slices in two parts and in levels, and their rivals."""

from windrow.techniques.spanning.aggregate_buckets import AggregateBuckets
from windrow.techniques.spanning.base import SpanTechnique
from windrow.techniques.spanning.plane_sweeping import PlaneSweeping
from windrow.techniques.spanning.se_multi_level_slicing import SeMultiLevelSlicing
from windrow.techniques.spanning.se_slicing import SeSlicing
from windrow.techniques.spanning.tuple_buckets import TupleBuckets

__all__ = [
    "AggregateBuckets",
    "PlaneSweeping",
    "SeMultiLevelSlicing",
    "SeSlicing",
    "SpanTechnique",
    "TupleBuckets",
]
