"""What flows between operators, and what operator models say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow import policies as wp
from windrow.errors import QueryError
from windrow.policies.ports import joined


def test_punctuations_cut_a_stretch_into_parts():
    stretch = wp.Punctuated.of(pa.table({"x": [1, 2, 3]}), [0, 2, 2, 3])
    parts = [(part["x"].to_pylist(), ends) for part, ends in stretch.parts()]
    assert parts == [([], True), ([1, 2], True), ([], True), ([3], True)]


def test_a_stretch_without_punctuations_is_one_part():
    stretch = wp.Punctuated.of(pa.record_batch({"x": [1, 2]}))
    assert [(part.num_rows, ends) for part, ends in stretch.parts()] == [(2, False)]


@pytest.mark.parametrize("marks", [[2, 1], [-1], [4]])
def test_punctuations_come_in_order_and_within_the_rows(marks):
    with pytest.raises(QueryError, match="must come in order and after 0 to 3 rows"):
        wp.Punctuated.of(pa.table({"x": [1, 2, 3]}), marks)


def test_stretches_are_joined_with_their_punctuations():
    one = wp.Punctuated.of(pa.table({"x": [1, 2]}), [1])
    two = wp.Punctuated.of(pa.table({"x": [3]}), [0, 1])
    both = joined([one, two])
    assert both.table["x"].to_pylist() == [1, 2, 3]
    np.testing.assert_array_equal(both.marks, [1, 2, 3])


def test_a_window_bound_port_expects_punctuations_with_a_punctuation_window_only():
    port = wp.Input("in", wp.WINDOW_BOUND, lambda window: None)
    assert port.expects(wp.tumbling(wp.punct()))
    assert not port.expects(wp.tumbling(wp.count(3)))
    assert wp.Input("in", wp.EXPECTING).expects(None)
    assert not wp.Input("in", wp.OBLIVIOUS).expects(wp.tumbling(wp.punct()))


def test_a_port_preserves_the_punctuations_of_an_input_that_there_is():
    with pytest.raises(
        QueryError, match="preserves the punctuations of input 1, and inputs are numbered 0 to 0"
    ):
        wp.Model((wp.Input(),), (wp.Output("out", wp.PRESERVING, of=1),))
