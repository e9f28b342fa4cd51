"""The same query on Spark: batch and Structured Streaming, classic and Connect.

    events -> scatter -> shuffle by bucket -> one operator per bucket -> results        general
    events -> slices, made by the JVM -> shuffle by bucket -> one operator per bucket   push-down, batch
    events -> slices that are windows, in Spark's own state -> results                  push-down, streams

A *bucket* is a hash of the key: one Python call answers all keys of a bucket with the columnar engine,
never one key at a time. Nothing in the rest of windrow needs this folder or PySpark.
"""

import pyspark

from windrow.spark.compatibility import require_supported

# Before anything is imported that another version of PySpark may not have.
require_supported(pyspark.__version__, what="PySpark")
