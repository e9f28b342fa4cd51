"""Every transcript that Spark can follow: as a batch, and its steps as micro-batches of a stream.

A stream's watermark is Spark's, in milliseconds; on a time column of plain numbers one millisecond is one. It
holds from the next micro-batch on, so the rows that come out are not those that the transcript writes down under each
step: the referee is driven in the same way, and everything that comes out of both is compared.

A stream takes seconds: one transcript is run for each kind of window that `test_streaming` does not have, all of
them if WINDROW_NIGHTLY is 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from functions import FUNCTIONS
from streams import NIGHTLY, Step, apart, expected, like, plain_rows, run_stream

from tests.referee import ReferenceOperator, assert_same
from windrow.testing import Transcript

# Where a transcript ends with `finish`: later than everything that could still be open.
FAR_NUMBER = 1_000_000
FAR_TIME = 4_000_000_000_000
# A DataFrame is what it is: nothing is added, and an error is another test.
UNLIKE_A_DATAFRAME = {"add_window", "remove_window", "add_aggregate", "remove_aggregate"}
NO_ZONE = "its calendar is that of the column's time zone; Spark's timestamps have none"
NOT_ON_SPARK = {"calendar_day_autumn": NO_ZONE, "spans_calendar_prorated": NO_ZONE}
NOT_AS_A_STREAM = {
    "sequence_windows_of_a_float_measure": "its watermarks are no whole numbers",
}


def follows(transcript: Transcript) -> bool:
    return not any("error" in s.expected or s.action in UNLIKE_A_DATAFRAME for s in transcript.steps)


PATHS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.yaml"))
READ = {path.stem: Transcript(path, functions=FUNCTIONS) for path in PATHS}
BATCHES = [name for name, read in READ.items() if follows(read) and name not in NOT_ON_SPARK]
STREAMS = [name for name in BATCHES if name not in NOT_AS_A_STREAM]
FEW = ["calendar_month", "late_for_one_window_only", "spans_open_closed_late"]


def in_sparks_types(table: pa.Table) -> pa.Table:
    """Spark's timestamps count microseconds."""
    fields = [
        f.with_type(pa.timestamp("us", f.type.tz)) if pa.types.is_timestamp(f.type) else f
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


def events_of(transcript: Transcript) -> pa.Table:
    tables = [step.argument for step in transcript.steps if step.action == "events"]
    return in_sparks_types(pa.concat_tables(tables).select(transcript.schema.names))


def milliseconds(point: Any) -> int:
    if isinstance(point, pa.Scalar):
        return (
            pa.array([point])
            .cast(pa.timestamp("ms", getattr(point.type, "tz", None)))
            .cast(pa.int64())[0]
            .as_py()
        )
    return int(point)


def micro_batches(transcript: Transcript) -> list[Step]:
    """What came between two watermarks is one micro-batch."""
    steps: list[Step] = []
    held = [in_sparks_types(transcript.schema.empty_table())]
    temporal = pa.types.is_temporal(transcript.schema.field(transcript.query.time_columns[0]).type)
    for step in transcript.steps:
        if step.action == "events":
            held.append(in_sparks_types(step.argument.select(transcript.schema.names)))
        if step.action in ("watermark", "finish"):
            far = FAR_TIME if temporal else FAR_NUMBER
            watermark = far if step.action == "finish" else milliseconds(step.argument)
            steps.append(Step(pa.concat_tables(held), watermark))
            held = held[:1]
    if len(held) > 1:
        steps.append(Step(pa.concat_tables(held), steps[-1].watermark))
    return steps


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_gives_what_the_transcripts_events_give_at_once(spark: Any, name: str) -> None:
    transcript = READ[name]
    events, options = events_of(transcript), {"mode": transcript.mode, "on_bad": transcript.on_bad}
    referee = ReferenceOperator(transcript.query, **options)
    referee.process(events)
    wanted = referee.finish()
    got = transcript.query.on_spark(spark.createDataFrame(events), **options).toArrow()
    assert referee.answers is not None
    assert_same(referee.answers, like(wanted, got))


@pytest.mark.parametrize("name", STREAMS if NIGHTLY else FEW)
def test_a_stream_gives_what_the_referee_gives(spark: Any, tmp_path: Path, name: str) -> None:
    transcript, steps = READ[name], micro_batches(READ[name])
    options = {"mode": transcript.mode, "lateness": transcript.lateness, "on_bad": transcript.on_bad}
    wanted = expected(transcript.query, steps, **options)
    side_rows = any({"late", "bad"} & set(step.expected) for step in transcript.steps)
    got = run_stream(spark, tmp_path, transcript.query, steps, side_rows=side_rows, **options)
    if side_rows:
        got, late, bad = apart(got)
        names = transcript.schema.names
        assert plain_rows(late.select(names)) == plain_rows(wanted.late)
        assert plain_rows(bad.select(names)) == plain_rows(wanted.bad.select(names))
    assert_same(wanted.answers, like(wanted.table, got))


def test_what_is_left_out_is_there_to_be_left_out() -> None:
    assert set(NOT_ON_SPARK) | set(NOT_AS_A_STREAM) <= {name for name, read in READ.items() if follows(read)}
    assert set(FEW) <= set(STREAMS)
    assert len(BATCHES) > 80
