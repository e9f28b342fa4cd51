"""Windows that make no sense are refused at once."""

from __future__ import annotations

import math
from datetime import timedelta

import pyarrow.compute as pc
import pytest
from bad_input.windows.support import stay

import windrow as wr

SPECS = {
    "gap of zero": (lambda: wr.session(0), "gap of a session must be longer than zero"),
    "negative gap": (lambda: wr.session("-5 seconds"), "gap of a session must be longer than zero"),
    "gap of no time": (lambda: wr.session(timedelta(0)), "gap of a session must be longer than zero"),
    "NaN as a gap": (lambda: wr.session(math.nan), "gap must be finite"),
    "infinite gap": (lambda: wr.session(math.inf), "gap must be finite"),
    "boolean gap": (lambda: wr.session(True), "not the boolean True"),
    "no gap": (lambda: wr.session(None), "gap must be a string, a timedelta or a number"),
    "empty gap": (lambda: wr.session(""), "duration or the name of a column"),
    "unknown unit": (lambda: wr.session("5 bananas"), "unknown unit 'bananas'"),
    "no rows": (lambda: wr.tumbling(rows=0), "rows must be between 1 and"),
    "more rows than can be": (lambda: wr.tumbling(rows=2**70), "rows must be between 1 and"),
    "half a row": (lambda: wr.tumbling(rows=1.5), "rows must be a whole number"),
    "rows as a boolean": (lambda: wr.tumbling(rows=True), "rows must be a whole number"),
    "rows and a length": (lambda: wr.tumbling(5, rows=3), "either a length .* or rows"),
    "rows and an offset": (lambda: wr.tumbling(rows=3, offset=2), "takes no offset"),
    "rows without a slide": (lambda: wr.sliding(rows=5), "needs every_rows"),
    "no slide": (lambda: wr.sliding(rows=5, every_rows=0), "every_rows must be between 1 and"),
    "a slide without rows": (lambda: wr.sliding(every_rows=5), "every_rows goes with rows"),
    "a duration on a column": (lambda: wr.tumbling("5 seconds", on="km"), "must be a plain number"),
    "no length on a column": (lambda: wr.tumbling(0, on="km"), "greater than zero"),
    "NaN on a column": (lambda: wr.tumbling(math.nan, on="km"), "must be finite"),
    "too many at once": (lambda: wr.sliding(2**60, every=1, on="km"), "slide by more"),
    "no marks": (lambda: wr.punctuated(), "needs where=..., or both"),
    "a start without an end": (lambda: wr.punctuated(start="b"), "needs where=..., or both"),
    "too many marks": (lambda: wr.punctuated(where="a", start="b"), "not both"),
    "a number as a mark": (lambda: wr.punctuated(where=5), "must be the name of a boolean column"),
    "a mark of any columns": (lambda: wr.punctuated(where=lambda *a: True), r"has the parameter '\*a'"),
    "a mark of no column": (lambda: wr.punctuated(where=lambda: True), "reads no column"),
    "a constant mark": (lambda: wr.punctuated(where=pc.scalar(True)), "reads no column"),
    "negative move": (lambda: wr.delta("x", by=-1), "must not be negative"),
    "NaN as a move": (lambda: wr.delta("x", by=math.nan), "must be finite"),
    "move as text": (lambda: wr.delta("x", by="3"), "must be a plain number"),
    "no moves": (lambda: wr.delta("x", by=1, moves=0), "moves of a delta window must be between"),
    "negative least": (lambda: wr.threshold("b", at_least=-1), "longer than zero"),
    "no least rows": (lambda: wr.threshold("b", at_least_rows=0), "at_least_rows must be between"),
    "landmark without steps": (lambda: wr.landmark(since=0, every=0), "longer than zero"),
    "landmark at no time": (lambda: wr.landmark(since=math.nan, every=1), "not a point in time"),
    "looking back by nothing": (lambda: wr.slide_by_rows(0, every_rows=1), "longer than zero"),
    "looking back never": (lambda: wr.slide_by_rows(5, every_rows=0), "every_rows must be between"),
    "the latest none": (lambda: wr.latest(rows=0, every=5), "rows must be between"),
    "the latest at once": (lambda: wr.latest(rows=1, every=0), "longer than zero"),
    "two measures": (lambda: wr.latest(rows=1, every="5 seconds", offset=1), "both as durations"),
    "a step that is none": (lambda: wr.deterministic(5, state=0), "step must be a function, not int"),
    "a step without a state": (lambda: wr.deterministic(lambda: 0, state=0), "needs a parameter"),
    "a state that is text": (lambda: wr.deterministic(stay, state="a"), "integers and floats only"),
    "a state that is empty": (lambda: wr.deterministic(stay, state=()), "not an empty tuple"),
    "a state that is nested": (lambda: wr.deterministic(stay, state=((1,),)), "integers and floats only"),
    "a state too large": (lambda: wr.deterministic(stay, state=2**63), "beyond 64-bit integers"),
    "columns too many": (lambda: wr.deterministic(stay, state=0, columns=["a", "b"]), "columns names 2"),
    "an eviction that is none": (
        lambda: wr.nondeterministic(evict=5, trigger=lambda i: True),
        "evict must be a function",
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_window_that_makes_no_sense_is_refused_at_once(name):
    make, message = SPECS[name]
    with pytest.raises(wr.QueryError, match=message):
        make()
