"""Windows as containers, with policies for eviction, trigger and partitions."""

from windrow.policies.clock import Clock, RealClock, VirtualClock
from windrow.policies.flow import Flow
from windrow.policies.operators import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Operator,
    Project,
    Sort,
    Windowed,
)
from windrow.policies.ports import (
    EXPECTING,
    FREE,
    GENERATING,
    OBLIVIOUS,
    PRESERVING,
    WINDOW_BOUND,
    Input,
    Model,
    Output,
    Punctuated,
)
from windrow.policies.spec import (
    Sliding,
    Tumbling,
    count,
    delta,
    order_of,
    partition_age,
    partition_count,
    punct,
    sliding,
    time,
    tumbling,
    tuple_count,
)
from windrow.policies.summarizers import Summarizer
from windrow.policies.tape import Event, Tape
from windrow.policies.text import parse
from windrow.policies.window import SlidingWindow, TumblingWindow, Window

__all__ = [
    "EXPECTING",
    "FREE",
    "GENERATING",
    "OBLIVIOUS",
    "PRESERVING",
    "WINDOW_BOUND",
    "Aggregate",
    "Clock",
    "Deduplicate",
    "Event",
    "Filter",
    "Flow",
    "Input",
    "Join",
    "Model",
    "Operator",
    "Output",
    "Project",
    "Punctuated",
    "RealClock",
    "Sliding",
    "SlidingWindow",
    "Sort",
    "Summarizer",
    "Tape",
    "Tumbling",
    "TumblingWindow",
    "VirtualClock",
    "Window",
    "Windowed",
    "count",
    "delta",
    "order_of",
    "parse",
    "partition_age",
    "partition_count",
    "punct",
    "sliding",
    "time",
    "tumbling",
    "tuple_count",
]
