"""Two pipelines in one driver that can be killed: files of orders into a Delta and into an Iceberg table.

python lake_job.py FOLDER SETTINGS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from jobs import QUERY
from pyiceberg.catalog import load_catalog

from windrow.pipelines.run import start
from windrow.pipelines.spec import DeltaSink, FileSource, IcebergSink, Pipeline, Watermark


def catalog(folder: Path) -> dict[str, str]:
    """Properties of a catalog of Iceberg in a file."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }


def pipelines(folder: Path) -> dict[str, Pipeline]:
    """A changelog with many revisions: orders are out of order, and none is late."""
    sinks: dict[str, DeltaSink | IcebergSink] = {
        "delta": DeltaSink(str(folder / "delta")),
        "iceberg": IcebergSink("shop.totals", catalog="lake", options=catalog(folder)),
    }
    return {
        name: Pipeline(
            source=FileSource(str(folder / "orders"), max_files=1),
            query=QUERY,
            sink=sink,
            watermark=Watermark("0 seconds", max_ahead=None),
            options={"mode": "update", "lateness": "1 hour", "buckets": 1},
            checkpoint=str(folder / "checkpoints" / name),
            trigger="available_now",
            name=name,
        )
        for name, sink in sinks.items()
    }


def delta_table(folder: Path) -> pa.Table:
    return DeltaTable(str(folder / "delta")).to_pyarrow_table()


def iceberg_table(folder: Path) -> pa.Table:
    return load_catalog("lake", **catalog(folder)).load_table("shop.totals").scan().to_arrow()


def run(spark: Any, folder: Path) -> None:
    """Both of them, until there are no more orders."""
    for running in [start(spark, pipeline) for pipeline in pipelines(folder).values()]:
        running.awaitTermination()


def main(folder: str, settings: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in json.loads(settings).items():
        builder = builder.config(name, value)
    run(builder.getOrCreate(), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
