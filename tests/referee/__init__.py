"""The referee: windrow's answers by definition, in plain Python, slow and without anything shared.

    oracle              the answer of a query, recomputed from scratch for every window
    answers             the same with what each value was computed from, for `assert_same`
    ReferenceOperator   watermarks, lateness and revisions, by definition
    ReferenceEngine     the same for transcripts
    assert_same         compare with an answer: each value as exactly as its aggregate promises
    check_window        a window type through the engine agrees with the oracle
    check_steps         the engine's operator agrees with the reference operator after every step
    register            teach the referee another class of aggregates
    policies            windows and operators of `windrow.policies`, one tuple at a time

Hypothesis strategies for streams and queries are in `strategies`, for events that last in `span_strategies`.
"""

from tests.referee.answers import Answer, Answers
from tests.referee.checks import check_steps, check_window
from tests.referee.compare import assert_same
from tests.referee.oracle import answers, oracle
from tests.referee.placement import windows_of
from tests.referee.registry import register
from tests.referee.stream import ReferenceOperator
from tests.referee.transcripts import ReferenceEngine

__all__ = [
    "Answer",
    "Answers",
    "ReferenceEngine",
    "ReferenceOperator",
    "answers",
    "assert_same",
    "check_steps",
    "check_window",
    "oracle",
    "register",
    "windows_of",
]
