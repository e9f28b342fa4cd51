"""Checks for windows, aggregates and jobs of your own; the guide is docs/testing.md.

    check_aggregate     an aggregate is associative, has a neutral identity, is inverted exactly ...
    check_window        a window gives the same rows however its events come
    run_transcript      a YAML file of events, watermarks and expected rows
    Transcript          such a file, read: for a test that drives an engine in a way of its own
    assert_same         compare two tables of results
    replay              the table that a changelog builds

The first two need the `hypothesis` package, transcripts in files `pyyaml`.
"""

from windrow.testing.aggregates import check_aggregate
from windrow.testing.compare import assert_same, replay
from windrow.testing.transcripts import EmbeddedEngine, Transcript, run_transcript
from windrow.testing.windows import check_window

__all__ = [
    "EmbeddedEngine",
    "Transcript",
    "assert_same",
    "check_aggregate",
    "check_window",
    "replay",
    "run_transcript",
]
