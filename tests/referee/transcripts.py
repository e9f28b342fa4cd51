"""Transcripts on the referee's own operator."""

from __future__ import annotations

from typing import Any

from tests.referee.stream import ReferenceOperator
from windrow.query import Query
from windrow.testing.transcripts import EmbeddedEngine


class ReferenceEngine(EmbeddedEngine):
    """The referee's own operator; it keeps everything, so a snapshot changes nothing."""

    def operator(self, query: Query, *, mode: str, lateness: Any, on_bad: str) -> Any:
        return ReferenceOperator(query, mode=mode, lateness=lateness, on_bad=on_bad)

    def through_snapshot(self, operator: Any) -> Any:
        return operator

    def add_window(self, operator: Any, name: str, window: Any, complete_from: Any) -> Any:
        return operator.add_window(name, window, complete_from=complete_from)

    def add_aggregate(self, operator: Any, name: str, aggregate: Any, complete_from: Any) -> Any:
        return operator.add_aggregate(name, aggregate, complete_from=complete_from)
