"""The referee: check your own windows and aggregates, and windrow itself, against plain Python.

    oracle              the answer of a query, recomputed from scratch for every window
    ReferenceOperator   watermarks, lateness and revisions, by definition
    assert_same         compare two tables of results; `replay` turns a changelog into one
    check_aggregate     properties of an aggregate: associative, neutral identity, invertible ...
    check_window        a window type through the engine agrees with the oracle
    check_steps         the engine's operator agrees with the reference operator after every step
    run_transcript      a YAML file of events, watermarks and expected rows, on any engine
    Transcript          such a file, read: for a test that drives an engine in a way of its own

Hypothesis strategies for streams and queries are in `windrow.testing.strategies`, for events that last in
`windrow.testing.span_strategies` (they need the `hypothesis` package; transcripts need `pyyaml`).
"""

from windrow.testing.answers import Answer, Answers
from windrow.testing.checks import check_aggregate, check_steps, check_window
from windrow.testing.compare import assert_same, replay
from windrow.testing.oracle import answers, oracle
from windrow.testing.placement import windows_of
from windrow.testing.registry import register
from windrow.testing.stream import ReferenceOperator
from windrow.testing.transcripts import EmbeddedEngine, Engine, ReferenceEngine, Transcript, run_transcript

__all__ = [
    "Answer",
    "Answers",
    "EmbeddedEngine",
    "Engine",
    "ReferenceEngine",
    "ReferenceOperator",
    "Transcript",
    "answers",
    "assert_same",
    "check_aggregate",
    "check_steps",
    "check_window",
    "oracle",
    "register",
    "replay",
    "run_transcript",
    "windows_of",
]
