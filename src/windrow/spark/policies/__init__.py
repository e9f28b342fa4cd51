"""Operators over policy windows on Spark: `Operator.on_spark`.

    left  --\\
             > one stream of tagged rows -> scatter -> shuffle by bucket -> inbox -> operator -> results
    right --/

A bucket is a hash of the partition: each has one operator with windows for all of its partitions, and one
call per micro-batch. Windows take rows in the order of their times, so rows wait in the *inbox* of their
bucket until the watermark has passed them. Policies that go by the clock take rows as they come, and timers
wake the bucket.
"""
