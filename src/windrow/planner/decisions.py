"""The three questions of general stream slicing, and how they are answered here.

Scotty asks them before it processes a tuple (section 4, Figures 4, 5 and 6): must single events be kept beside the
partials, can a slice have to be split, how are events taken out of a slice? Its trees keep tuples in slices, and then
split, shift and recompute. Here events whose order matters wait until no earlier one can come, and enter slices in
order; so nothing is ever split or taken out. Where a stream promises order, nothing waits. Each answer comes with its
reason, so that `explain` can give it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.span import Span
from windrow.spec import QuerySpec


@dataclass(frozen=True)
class Decision:
    """An answer and the sentence that justifies it."""

    answer: str
    reason: str


def in_order(query: QuerySpec) -> str:
    """The windows that depend on the order of events, by name; "" if none does."""
    return ", ".join(name for name, window in query.windows.items() if window.layout == "ordered")


def keep_tuples(query: QuerySpec, read_again: Sequence[str]) -> Decision:
    """Figure 4: must single events be kept beside the partials? `read_again` are aggregates that read them anew."""
    reasons = []
    if in_order(query) and not query.ordered:
        reasons.append(
            f"windows depend on their order ({in_order(query)}): they wait until the watermark less lateness has passed them"
        )
    if read_again:
        reasons.append(
            f"aggregates read them again for each window that holds them ({', '.join(read_again)})"
        )
    if isinstance(query.time, Span) and query.time.id is not None:
        reasons.append("those without an end are open until it comes")
    if reasons:
        return Decision("kept", "; ".join(reasons))
    order = "events come in order" if in_order(query) else "no window depends on their order"
    return Decision("dropped", f"{order}, and all aggregates are made of partials")


def splits(query: QuerySpec) -> Decision:
    """Figure 5: can a slice have to be split?"""
    if in_order(query):
        return Decision("never", "events enter slices in order, when all edges before them are known")
    if all(w.layout == "aligned" for w in query.windows.values()):
        return Decision("never", "all edges are known in advance")
    return Decision("never", "a new slice only comes to lie between events, and parts none")


def removal(query: QuerySpec) -> Decision:
    """Figure 6: how are events taken out of a slice?"""
    if any(window.counts for window in query.windows.values()):
        return Decision("never needed", "events enter slices in order, so none shifts from slice to slice")
    return Decision("never needed", "no window counts events, so none shifts from slice to slice")
