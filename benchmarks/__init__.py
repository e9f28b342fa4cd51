"""How fast is it, against what? One module per question, run with `python -m benchmarks`.

    windows         one key, 1 to 1,000 windows, in order and with late events
    small_batches   1,000 events at a time: throughput and latency
    growth          100 events at a time, by how much history is held
    adding          windows added to a running operator, beside the same from the start
    aggregates      what other aggregates cost, beside an integer sum
    keyed           1,000 to 1,000,000 keys, integer and string, and the memory they take
    median          the exact median of 20 windows at once
    sessions        sessions beside fixed windows, of many gaps, of many keys; and in other libraries
    counts          windows of so many events, in order and with late events
    data_driven     windows at marks, moves and thresholds, and one of the user's own
    spans           span events: beside a paper's techniques, and flights in other libraries
    policies        operators over policy windows: aggregates, joins, sorts, de-duplication
    slices          slices kept and `combine` calls made, beside the least that a paper promises
    rivals          the same batch job in Polars and DuckDB
    startup         import, first result, memory of a fresh process

Every figure stands beside what it is compared with, measured in the same run: contenders take
turns, each keeps its best time (`support/harness.py`). Every module first checks that the answers
are right, which also compiles the code that is timed. The answers to `rivals` and `spans` and of all
windows that depend on the events are compared row by row.

`python -m benchmarks.before COMMIT` puts the same questions to the source of a commit, and tells what is slower now.
"""

import os

# What is measured is compiled code; `startup` starts processes of its own, which choose for themselves.
os.environ.setdefault("WINDROW_TIER", "compiled")
