"""`windrow doctor`: what the stream of a checkpoint waits for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAMAGED = 1
WAITS = 3


@contextmanager
def local_session() -> Iterator[SparkSession]:
    """A small Spark on this machine, which reads state."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    from windrow.pipelines.run import ROCKS
    from windrow.spark.stages import PROVIDER

    settings: dict[str, bool | float | int | str | None] = {
        PROVIDER: ROCKS,
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    spark = SparkSession.builder.master("local[*]").appName("windrow").config(map=settings).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def doctor_command(*, checkpoint: str) -> int:
    """Say what the stream of a checkpoint waits for."""
    from windrow.spark.checkpoint import Checkpoint
    from windrow.spark.doctor import examine

    Checkpoint.require(checkpoint)
    with local_session() as spark:
        found = examine(spark, checkpoint)
    print(found)
    return DAMAGED if found.damaged else WAITS if found.waits else os.EX_OK
