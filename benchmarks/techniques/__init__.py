"""What the papers compare slicing with: each a complete operator with the engine's results.

Those for span events, in `spanning`, have the names that they have there: `spanning.TupleBuckets`.
"""

from benchmarks.techniques import spanning
from benchmarks.techniques.aggregate_buckets import AggregateBuckets
from benchmarks.techniques.aggregate_tree import BaseIntervals, ReactiveAggregator
from benchmarks.techniques.base import Counters, Technique
from benchmarks.techniques.cutty import Cutty
from benchmarks.techniques.pairs import Pairs
from benchmarks.techniques.pairs_plus import PairsPlus
from benchmarks.techniques.panes import Panes
from benchmarks.techniques.tuple_buckets import TupleBuckets
from benchmarks.techniques.tuple_buffer import TupleBuffer

__all__ = [
    "AggregateBuckets",
    "BaseIntervals",
    "Counters",
    "Cutty",
    "Pairs",
    "PairsPlus",
    "Panes",
    "ReactiveAggregator",
    "Technique",
    "TupleBuckets",
    "TupleBuffer",
    "spanning",
]
