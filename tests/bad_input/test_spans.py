"""Bad rows of events that last: the column that is to blame is the one that is named."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow as wr
from windrow.errors import DataError

HIGHEST = 2**63 - 1
WINDOWS = {"w": wr.tumbling(10)}


def asked(**options):
    return wr.query(time=wr.span("since", "until", **options), windows=WINDOWS, aggregates={"n": wr.count()})


def rows(*pairs, type_=None, **columns):
    since, until = (pa.array([pair[i] for pair in pairs], type_ or pa.int64()) for i in range(2))
    return pa.table({"since": since, "until": until, **columns})


@pytest.mark.parametrize("contributes", ["whole", "prorated", "end"])
def test_an_end_that_no_window_can_have_is_the_fault_of_the_end(contributes):
    with pytest.raises(DataError, match=f"column 'until', row 0, value {HIGHEST}: the edges of its windows"):
        asked(contributes=contributes).run(rows((0, HIGHEST)))


def test_such_an_end_is_no_fault_where_only_the_start_counts():
    assert asked(contributes="start").run(rows((0, HIGHEST))).num_rows == 1


def test_an_end_that_is_more_than_a_tick_can_be_is_not_taken_for_one_before_the_start():
    with pytest.raises(DataError, match=f"column 'until', row 0, value {2**64 - 1}: the edges"):
        asked().run(rows((0, 2**64 - 1), type_=pa.uint64()))


OPEN = rows((5, None), who=[1])
CLOSINGS = {
    "too high": ((None, HIGHEST), "until", "the edges of its windows"),
    "too low": ((None, -HIGHEST), "until", "the edges of its windows"),
    "before the start": ((None, 3), "until", "ends before it starts"),
    "too long": ((None, 200), "until", "lasts longer than it may"),
    "open already": ((7, None), "who", "is open already"),
    "not ended": ((7, 9), "who", "the row that ends it has no start"),
}


@pytest.mark.parametrize("name", CLOSINGS)
def test_a_row_that_opens_or_closes_names_the_column_that_is_wrong(name):
    pair, column, why = CLOSINGS[name]
    operator = asked(id="who", longest=100).operator()
    operator.process(OPEN)
    with pytest.raises(DataError, match=f"column '{column}', row 0, .*{why}"):
        operator.process(rows(pair, who=[1]))


def test_a_row_that_closes_nothing_names_the_id():
    with pytest.raises(DataError, match="column 'who', row 0, value 2: closes nothing"):
        asked(id="who").operator().process(rows((None, 5), who=[2]))


def test_an_open_event_longer_than_an_int64_is_not_taken_for_a_short_one():
    operator = asked(id="who", longest=100).operator()
    operator.process(rows((-6 * 10**18, None), who=[1]))
    with pytest.raises(DataError, match="lasts longer than it may"):
        operator.process(rows((None, 6 * 10**18), who=[1]))


@pytest.mark.parametrize("closing", [False, True], ids=["complete", "closing"])
def test_an_end_too_far_ahead_is_the_fault_of_the_end(closing):
    operator = asked(id="who").operator(max_ahead=100)
    operator.process(OPEN)
    operator.advance(5)
    with pytest.raises(DataError, match="column 'until', row 0, value 500"):
        operator.process(rows((None if closing else 6, 500), who=[1 if closing else 2]))
