"""A streaming table of windows, and a view of those that stand out.

Spark forbids query functions to look at a DataFrame's columns, and `on_spark` has to: the windows are built outside.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import windrow as wr

QUERY = wr.query(
    time="ts",
    key="user",
    windows={"1m": wr.tumbling("1 minute"), "5m": wr.sliding("5 minutes", every="1 minute")},
    aggregates={"n": wr.count(), "total": wr.sum("amount")},
)
FOLDER = os.environ.get("PAYMENTS", str(Path(__file__).parents[1] / "payments"))

spark = SparkSession.active()
payments = spark.readStream.schema("ts timestamp, user string, amount long").parquet(FOLDER)
found = QUERY.on_spark(payments.withWatermark("ts", "10 seconds"), buckets=2)


@dp.table
def windows() -> DataFrame:
    return found


@dp.materialized_view
def busiest() -> DataFrame:
    return spark.read.table("windows").where("window = '5m'").orderBy("total", ascending=False).limit(3)
