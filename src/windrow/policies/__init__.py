"""Windows as containers: they hold rows, evict them, and say when they are to be processed.

Slices answer aggregates. A join, a sort, or a model of the user's own needs the *content* of a window and its
*events*; here every operator gets both from the same windows, with the same meaning (Gedik, "Generic windowing support
for extensible stream processing systems", Software: Practice and Experience, 2013).

A window is made of policies. An eviction policy says when it is full, a trigger policy when it is processed:

    count(n)          rows                        time(p)     the clock
    delta(column, d)  a column that never goes back   punct()     a mark in the stream (tumbling windows only)

In which order a row comes in, others go out, and the window is processed, is not up to the operator:

    tumbling    count    insert -> flush          sliding     eviction \\ trigger   count      delta      time
                delta    flush -> insert                      count                 E I T      T E I      E I | T
                time     insert | flush                       delta                 E I T      T E I      E I | T
                punct    insert | flush                       time                  I T | E    T I | E    I | E | T

(E evict, I insert, T trigger; what stands after a bar happens by itself.) A *partitioned* window has a subwindow for each key,
and may evict whole subwindows: `partition_count`, `tuple_count`, `partition_age`.

    window = wp.SlidingWindow("sliding, count(100), count(10), partitioned", schema, partition_by="state")
    window.on_trigger(lambda event: print(event.partition, event.content))       # handlers get tables
    window.record("trigger"); tape = window.insert(batch)                         # compiled operators get arrays
    wp.SlidingWindow(spec, schema, aggregates={"mean": wr.mean("x")})             # aggregates need no rows at all

The operators of this page are those of `windrow.policies.operators`, able to run on Spark as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.options import PolicyOptions, keywords_of
from windrow.policies import operators
from windrow.policies.clock import Clock, RealClock, VirtualClock
from windrow.policies.flow import Flow
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
from windrow.wording import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
else:

    def __getattr__(name: str) -> Any:
        raise AttributeError(f"windrow.policies has no {name!r}{did_you_mean(name, __all__)}")


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
    "parse",
    "partition_age",
    "partition_count",
    "punct",
    "sliding",
    "time",
    "tumbling",
    "tuple_count",
]


class Operator(operators.Operator):
    """The base of all operators, your own included: here, and on Spark."""

    @keywords_of(PolicyOptions)
    def on_spark(self, *frames: DataFrame, options: PolicyOptions) -> DataFrame:
        """The same operator on Spark.

        Rows come to the windows in the order of `time`. In a stream they wait until the watermark has passed
        them.

        Parameters
        ----------
        frames
            A DataFrame for each input, batch or streaming.
        options
            The fields of `windrow.options.PolicyOptions` as keywords: `time`, `punctuation`, `side_rows`,
            `buckets`, `watermark` and `metrics`.

        Returns
        -------
        DataFrame
            A batch or a stream, as the inputs are.

        Raises
        ------
        QueryError
            If an option makes no sense, or Spark cannot run the operator on such DataFrames.

        Examples
        --------
        >>> from windrow import policies as wp
        >>> unique = wp.Deduplicate("sliding, count(1000), count(1), partitioned", "id", partition_by="user")
        >>> def once(events):
        ...     return events.transform(unique.on_spark, time="ts")
        """
        from windrow.spark.policies.frame import on_spark

        return on_spark(self, frames, options)


class Aggregate(operators.Aggregate, Operator):
    pass


class Deduplicate(operators.Deduplicate, Operator):
    pass


class Filter(operators.Filter, Operator):
    pass


class Join(operators.Join, Operator):
    pass


class Project(operators.Project, Operator):
    pass


class Sort(operators.Sort, Operator):
    pass


class Windowed(operators.Windowed, Operator):
    pass
