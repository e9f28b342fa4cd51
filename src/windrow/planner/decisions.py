"""The decision trees of general stream slicing, as functions of what a workload is like.

Scotty asks three questions before it processes a tuple, and answers each from the *characteristics*
of the workload: the order of the stream, the algebra of the aggregates, the class and the measure of
the windows (Scotty, section 4). Each answer comes with its reason, so that `explain` can give it.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.query import Query


@dataclass(frozen=True)
class Characteristics:
    """What the trees need to know of a workload.

    `session` windows are context aware, but never force a split (section 6.2). `count_measure` says
    that some window counts events, `needs_events` that an answer is made of the events themselves.
    """

    ordered: bool
    commutative: bool
    invertible: bool
    context_free: bool
    forward_context_free: bool
    session_only: bool
    count_measure: bool
    needs_events: bool = False

    @classmethod
    def of(cls, query: Query) -> Characteristics:
        algebras = [a.algebra for a in query.aggregates.values()]
        contexts = {w.context for w in query.windows.values()}
        return cls(
            ordered=query.ordered,
            commutative=all(a.commutative for a in algebras),
            invertible=all(a.invertible for a in algebras),
            context_free=contexts <= {"context free"},
            forward_context_free="forward context aware" not in contexts,
            session_only=contexts <= {"context free", "session"},
            count_measure=any(w.counts for w in query.windows.values()),
            needs_events=any(
                a.algebra.kind == "holistic" and not a.algebra.commutative for a in query.aggregates.values()
            ),
        )


@dataclass(frozen=True)
class Decision:
    """An answer and the sentence that justifies it."""

    answer: str
    reason: str


def keep_tuples(c: Characteristics) -> Decision:
    """Scotty, Figure 4: must single events be kept beside the partials?"""
    if c.needs_events:
        return Decision("kept", "the answer of an aggregate is made of the events themselves")
    if c.ordered:
        if c.forward_context_free:
            return Decision("dropped", "the stream is ordered and no window looks ahead")
        return Decision("kept", "a window is forward context aware: later events place its edges")
    if not c.commutative:
        return Decision("kept", "an aggregate is not commutative and events may come out of order")
    if not c.context_free and not c.session_only:
        return Decision("kept", "events may come out of order and move the edges of a context-aware window")
    if c.count_measure:
        return Decision("kept", "events may come out of order and shift the later ones of a count window")
    kinds = "context free" if c.context_free else "context free or sessions"
    return Decision("dropped", f"all windows are {kinds} and all aggregates commutative")


def splits(c: Characteristics) -> Decision:
    """Scotty, Figure 5: can a slice have to be split?"""
    if c.context_free:
        return Decision("never", "all edges are known in advance")
    if c.ordered and c.forward_context_free:
        return Decision("never", "the stream is ordered and no window looks ahead")
    if c.session_only:
        return Decision("never", "sessions split only in gaps, where there are no events")
    return Decision("possible", "a late event or a later event can place an edge inside a slice")


def removal(c: Characteristics) -> Decision:
    """Scotty, Figure 6: how are events taken out of a slice?"""
    if c.ordered:
        return Decision("never needed", "the stream is ordered, so nothing shifts from slice to slice")
    if not c.count_measure:
        return Decision("never needed", "no window counts events, so none shifts from slice to slice")
    if c.invertible:
        return Decision("by invert", "all aggregates are invertible")
    return Decision("by recomputation", "an aggregate is not invertible")
