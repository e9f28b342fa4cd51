"""`windrow pipeline FILE`: from the file to a stream that runs until its source ends or it is stopped."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.cli.check import check_pipeline
from windrow.cli.stopping import follow, signals
from windrow.errors import QueryError
from windrow.pipelines.schema import load
from windrow.pipelines.spec import Pipeline

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

FAILED = 1
INTERRUPTED = 128 + signal.SIGINT
# What windrow says on a worker is somewhere in a long report of Spark's.
_OWN_ERROR = re.compile(r"^(?:\S*\.)?errors\.\w+Error: (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Command:
    """What was asked for; `given` are the words of the command line."""

    file: str
    master: str | None
    settings: Sequence[tuple[str, str]]
    check: bool
    explain: bool
    given: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(["windrow", *self.given])


def pipeline_command(command: Command) -> int:
    """Check the file, and run what it says."""
    if command.check:
        print(check_pipeline(command.file))
        return 0
    pipeline = load(command.file)
    try:
        return _started(command, pipeline)
    except KeyboardInterrupt:
        _say("stopped before the pipeline had begun")
        return INTERRUPTED


def _started(command: Command, pipeline: Pipeline) -> int:
    # PySpark takes a second to load: whatever is wrong with the file is reported before.
    from windrow.pipelines.run import session

    spark = session(pipeline, master=command.master, settings=dict(command.settings))
    try:
        return _explained(spark, command, pipeline) if command.explain else _run(spark, command, pipeline)
    except QueryError as problem:
        raise QueryError(f"{command.file}: {problem}") from None
    finally:
        spark.stop()


def _explained(spark: SparkSession, command: Command, pipeline: Pipeline) -> int:
    from windrow.pipelines.run import events
    from windrow.spark.explain import explain

    print(explain(pipeline.query, events(spark, pipeline), **pipeline.options))
    return 0


def _run(spark: SparkSession, command: Command, pipeline: Pipeline) -> int:
    from pyspark.errors import PySparkException

    from windrow.cli.progress import shown
    from windrow.pipelines.listener import ProgressListener
    from windrow.pipelines.run import start

    with shown() as display, signals() as asked:
        listener = ProgressListener(show=display.show)
        spark.streams.addListener(listener)
        try:
            running = start(spark, pipeline)
            code = follow(running, asked)
        except PySparkException as problem:
            display.close()
            _say(f"the pipeline failed: {_reason(problem, pipeline.checkpoint)}")
            _say(_how_to_go_on(command, pipeline))
            return FAILED
        finally:
            spark.streams.removeListener(listener)
        listener.catch_up(running.recentProgress)
        display.close()
        _say(f"{'stopped' if code else 'done'}: {display.summary()}")
        if code:
            _say(_how_to_go_on(command, pipeline))
        return code


def _how_to_go_on(command: Command, pipeline: Pipeline) -> str:
    if pipeline.checkpoint is None:
        return "nothing was kept: a pipeline without a checkpoint begins anew"
    return f"to go on from the last finished micro-batch ({pipeline.checkpoint}): {command}"


def _reason(problem: PySparkException, checkpoint: str | None) -> str:
    """What was wrong, in a line: windrow's own sentence if there is one, else one for what Spark says."""
    from windrow.pipelines.failures import plainly

    own = _OWN_ERROR.findall(str(problem))
    if own or checkpoint is None:
        return str(own[-1]) if own else str(problem).strip().partition("\n")[0]
    return str(plainly(problem, checkpoint=checkpoint))


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
