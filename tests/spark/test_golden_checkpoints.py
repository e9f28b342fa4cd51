"""Checkpoints that were written earlier, as Spark and windrow wrote them then: streams go on from them, also with
another query.

Each is of the query below after the first two of the steps, with two buckets and a lateness of 5 seconds; Spark 4.3.
Checksums of files were left out. Spark writes down where a checkpoint lies; there the files say `file:/checkpoint`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from restarting import steps
from streams import WATERMARK, Step, expected, like, plain_rows, source, write_step

import windrow as wr

GOLDEN = Path(__file__).parents[1] / "golden"
STEPS = steps(4)
BEGUN = 2
# A stream ends with a micro-batch that has no rows.
PAUSE = Step(STEPS[0].events.slice(0, 0), 0)
QUERY = wr.query(
    time="ts",
    key="key",
    windows={
        "short": wr.tumbling("3 seconds"),
        "s": wr.session("700 milliseconds"),
        "rows": wr.tumbling(rows=7),
    },
    aggregates={"n": wr.count(), "total": wr.sum("x"), "p90": wr.quantile("x", 0.9)},
)


def run(spark: Any, folder: Path, query: wr.Query, number: int) -> list[str]:
    """What a stream emits that goes on from the checkpoint in the folder and reads the step of this number."""
    write_step(folder / "source", number, STEPS[number])
    kept: list[Any] = []
    events = source(spark, folder / "source")
    result = query.on_spark(events, watermark=WATERMARK, buckets=2, lateness="5 seconds")
    writer = result.writeStream.foreachBatch(lambda batch, _: kept.append(batch.toArrow()))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    empty = query.run(STEPS[0].events.slice(0, 0))
    return [row for batch in kept for row in plain_rows(like(empty, batch))]


def placed(name: str, folder: Path) -> None:
    """Put a golden checkpoint into a folder."""
    shutil.copytree(GOLDEN / f"checkpoint-of-{name}", folder / "checkpoint")
    metadata = folder / "checkpoint" / "state" / "0" / "_metadata" / "v2" / "0"
    metadata.write_text(metadata.read_text().replace("file:/checkpoint", f"file:{folder}/checkpoint"))


def emitted(query: wr.Query, *some: Step) -> Counter[str]:
    return Counter(plain_rows(expected(query, some, lateness="5 seconds").table))


@pytest.mark.parametrize("name", ["0.2.0", "state-format-2"])
def test_a_stream_goes_on_from_a_checkpoint_of_an_earlier_version(
    spark: Any, tmp_path: Path, name: str
) -> None:
    """Then with fewer windows: what is left does not notice."""
    placed(name, tmp_path)
    before, third, fourth = (*STEPS[:BEGUN], PAUSE), (STEPS[2], PAUSE), (STEPS[3], PAUSE)
    given = run(spark, tmp_path, QUERY, 2)
    assert given
    assert Counter(given) == emitted(QUERY, *before, *third) - emitted(QUERY, *before)
    fewer = replace(QUERY, windows={name: QUERY.windows[name] for name in ("short", "rows")})
    given = run(spark, tmp_path, fewer, 3)
    assert given
    assert Counter(given) == emitted(fewer, *before, *third, *fourth) - emitted(fewer, *before, *third)
