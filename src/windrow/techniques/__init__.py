"""What the papers compare slicing with: each a complete operator with the engine's results.

Those for events that last, in `spanning`, have the names that they have there: `spanning.TupleBuckets`.
"""

from windrow.techniques import spanning
from windrow.techniques.aggregate_buckets import AggregateBuckets
from windrow.techniques.aggregate_tree import BaseIntervals, ReactiveAggregator
from windrow.techniques.base import Counters, Technique
from windrow.techniques.cutty import Cutty
from windrow.techniques.pairs import Pairs
from windrow.techniques.pairs_plus import PairsPlus
from windrow.techniques.panes import Panes
from windrow.techniques.tuple_buckets import TupleBuckets
from windrow.techniques.tuple_buffer import TupleBuffer

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
