"""Which windows of a query share slices, and in what kind of state these are kept.

    aligned     windows of time: all keys are cut at the same instants        spanning, prorated   the same, of span events
    sessions    sessions and snapshot windows: runs of slices for each key    also of span events
    ordered     windows that depend on the order of events

Windows of different kinds do not share slices, on purpose: cuts of one kind that are finer than a key's events would destroy the
runs of another, and apart no kind holds the others back or is stricter than they are about late events.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.windows.base import Window


def kind_of(query: QuerySpec) -> str:
    """The kind of state that serves all windows of a query; "" if several are needed."""
    kinds = {_kind(window, query) for window in query.windows.values()}
    return kinds.pop() if len(kinds) == 1 else ""


def _kind(window: Window, query: QuerySpec) -> str:
    if window.layout == "aligned" and isinstance(query.time, Span) and not query.time.is_point:
        return "prorated" if query.time.contributes == "prorated" else "spanning"
    return window.layout


def shared(query: QuerySpec) -> list[tuple[str, QuerySpec]]:
    """The kinds of state that serve a query, each with the windows that share its slices."""
    groups: dict[str, dict[str, Window]] = {}
    for name, window in query.windows.items():
        groups.setdefault(_kind(window, query), {})[name] = window
    return [(kind, replace(query, windows=MappingProxyType(windows))) for kind, windows in groups.items()]
