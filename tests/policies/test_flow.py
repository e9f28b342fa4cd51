"""Flows: what is refused before it runs, by the edge where it is wrong; and what flows through those that are right."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow import policies as wp
from windrow.errors import QueryError, StateError

MEAN = {"mean": wr.mean("x")}
LARGEST = {"largest": wr.max("x")}


def pairs(*, where="tumbling, count(2)"):
    return wp.Aggregate(where, {"x": wr.sum("x")})


def by_punctuations():
    return wp.Aggregate("tumbling, punct()", LARGEST)


def refused(flow):
    with pytest.raises(QueryError) as found:
        flow.check()
    return str(found.value)


def test_a_source_without_punctuations_cannot_feed_a_window_of_punctuations():
    flow = wp.Flow()
    flow.add("largest", by_punctuations(), flow.source("readings"))
    assert refused(flow).startswith(
        "edge readings -> largest.in: the input expects punctuations, and the source readings has none"
    )


def test_a_source_with_punctuations_can():
    flow = wp.Flow()
    flow.add("largest", by_punctuations(), flow.source("readings", punctuated=True))
    flow.check()


def test_an_operator_that_generates_punctuations_can():
    flow = wp.Flow()
    flow.add("largest", by_punctuations(), flow.add("pairs", pairs(), flow.source("readings")))
    flow.check()


def test_punctuations_pass_through_any_number_of_operators_that_preserve_them():
    flow = wp.Flow()
    stream = flow.add("pairs", pairs(), flow.source("readings"))
    for number in range(3):
        stream = flow.add(f"filter {number}", wp.Filter(pc.field("x") > 0), stream)
    flow.add("largest", by_punctuations(), stream)
    flow.check()
    assert flow.is_punctuated(stream)


def test_what_preserves_the_punctuations_of_a_stream_without_any_has_none():
    flow = wp.Flow()
    filtered = flow.add("filtered", wp.Filter(pc.field("x") > 0), flow.source("readings"))
    flow.add("largest", by_punctuations(), filtered)
    problem = refused(flow)
    assert "edge filtered -> largest.in" in problem
    assert "the output filtered preserves those of readings; the source readings has none" in problem


def test_two_punctuated_streams_merged_are_not_punctuated():
    flow = wp.Flow()
    readings = flow.source("readings")
    one, two = flow.add("one", pairs(), readings), flow.add("two", pairs(), readings)
    flow.add("largest", by_punctuations(), [one, two])
    assert refused(flow).startswith(
        "edge one + two -> largest.in: the input expects punctuations, and 2 streams are merged into it"
    )


def test_what_preserves_the_punctuations_of_merged_streams_is_not_punctuated_either():
    flow = wp.Flow()
    readings = flow.source("readings")
    one, two = flow.add("one", pairs(), readings), flow.add("two", pairs(), readings)
    filtered = flow.add("filtered", wp.Filter(pc.field("x") > 0), [one, two])
    flow.add("largest", by_punctuations(), filtered)
    assert "preserves those of merged streams (one + two), which are garbled" in refused(flow)


def test_merged_streams_may_feed_a_port_that_is_oblivious():
    flow = wp.Flow()
    one, two = flow.source("one"), flow.source("two")
    flow.add("pairs", pairs(), [one, two])
    flow.process("one", pa.table({"x": [1]}))
    assert flow.process("two", pa.table({"x": [2]}))["pairs"].table.to_pylist() == [{"x": 3}]


def test_an_operator_refuses_windows_that_it_does_not_take():
    with pytest.raises(
        QueryError, match="Sort does not take the window 'sliding, count\\(9\\), count\\(2\\)': a progressive"
    ):
        wp.Sort("sliding, count(9), count(2)", "x")
    with pytest.raises(
        QueryError, match="Join does not take the window 'tumbling, count\\(9\\)': the windows of a join"
    ):
        wp.Join("tumbling, count(9)", "sliding, count(9), count(1)")
    with pytest.raises(QueryError, match="the trigger is count\\(1\\)"):
        wp.Join("sliding, count(9), count(1)", "sliding, count(9), time(1)")


def test_partitions_need_columns_and_columns_need_partitions():
    with pytest.raises(QueryError, match="is partitioned: say by which columns with partition_by"):
        wp.Aggregate("tumbling, count(9), partitioned", MEAN)
    with pytest.raises(
        QueryError, match="partition_by names k, and the window 'tumbling, count\\(9\\)' is not"
    ):
        wp.Aggregate("tumbling, count(9)", MEAN, partition_by="k")


class Careless(wp.Windowed):
    """An operator that changes its mind after it was made, so that only the flow can see it."""

    def trigger(self, event):
        self.emit(event.content)


def test_the_edge_is_named_where_a_window_does_not_fit_its_operator():
    operator = Careless("sliding, count(2), count(1)")
    operator.model = wp.Model(
        (wp.Input("in", wp.OBLIVIOUS, lambda window: "it dislikes windows"),), (wp.Output(),)
    )
    flow = wp.Flow()
    flow.add("careless", operator, flow.source("readings"))
    assert refused(flow) == (
        "edge readings -> careless.in: Careless does not take the window 'sliding, count(2), count(1)': it dislikes windows"
    )


def test_a_port_that_nobody_feeds_is_refused():
    flow = wp.Flow()
    flow.add("pairs", pairs(), [])
    assert refused(flow) == "edge nothing -> pairs.in: the input is not fed by any stream"


def test_what_is_not_there_cannot_feed_and_names_differ():
    flow = wp.Flow()
    readings = flow.source("readings")
    with pytest.raises(
        QueryError, match=r"edge others -> pairs\.in: the flow has no 'others'; it has readings"
    ):
        flow.add("pairs", pairs(), wp.Flow().source("others"))
    with pytest.raises(QueryError, match="already has a 'readings'"):
        flow.source("readings")
    with pytest.raises(QueryError, match=r"'pairs' has 1 input \(in\), and 2 came to feed it"):
        flow.add("pairs", pairs(), readings, readings)
    with pytest.raises(QueryError, match="'nowhere' is no source of the flow; its sources are readings"):
        flow.process("nowhere", pa.table({"x": [1]}))


def test_every_port_of_an_outer_join_can_feed_somebody():
    flow = wp.Flow()
    orders, payments = flow.source("orders"), flow.source("payments")
    window = "sliding, count(1), count(1)"
    flow.add("paid", wp.Join(window, window, on="id", how="left", unmatched="apart"), orders, payments)
    unpaid = flow.output("paid", "left")
    flow.add("unpaid", wp.Aggregate("tumbling, count(1)", {"n": wr.count()}), unpaid)
    flow.process("orders", pa.table({"id": [1]}))
    out = flow.process("orders", pa.table({"id": [2]}))
    assert out["unpaid"].table.to_pylist() == [{"n": 1}]
    with pytest.raises(QueryError, match="'paid' has no output 'right'; it has matches, left"):
        flow.output("paid", "right")


def test_a_snapshot_of_a_flow_has_the_rows_that_timers_made_and_nobody_has_fetched():
    def made(clock):
        flow = wp.Flow()
        means = flow.add(
            "means", wp.Aggregate("tumbling, time(5)", MEAN, clock=clock), flow.source("readings")
        )
        flow.add("largest", wp.Aggregate("tumbling, punct()", {"largest": wr.max("mean")}), means)
        return flow

    clock = wp.VirtualClock()
    first = made(clock)
    first.process("readings", pa.table({"x": [1, 3]}))
    clock.advance(5)
    state = first.snapshot()
    second = made(wp.VirtualClock(clock.now()))
    second.restore(state)
    for flow in (first, second):
        assert flow.poll()["largest"].table.to_pylist() == [{"largest": 2.0}]
        assert flow.poll() == {}


class Echo(wp.Windowed):
    """Gives out what it gets, by the clock."""

    def before_flush(self, event):
        self.emit(event.content, punctuated=True)


def test_rows_that_nobody_has_fetched_come_once_with_their_columns_and_punctuations():
    clock = wp.VirtualClock()
    first, second = (Echo("tumbling, time(5)", clock=clock) for _ in range(2))
    first.process(pa.table({"x": [1]}))
    clock.advance(5)
    second.restore(first.snapshot())
    outputs = [[operator.poll()[0] for _ in range(2)] for operator in (first, second)]
    assert [(o.table.to_pylist(), o.marks.tolist(), o.table.column_names) for o in outputs[1]] == [
        ([{"x": 1}], [1], ["x"]),
        ([], [], ["x"]),
    ]
    assert [o.table for o in outputs[0]] == [o.table for o in outputs[1]]


def test_a_flow_goes_on_from_a_snapshot():
    def made():
        flow = wp.Flow()
        flow.add("largest", by_punctuations(), flow.add("pairs", pairs(), flow.source("readings")))
        return flow

    first, second = made(), made()
    first.process("readings", pa.table({"x": [1, 2, 3]}))
    second.restore(first.snapshot())
    for flow in (first, second):
        assert flow.process("readings", pa.table({"x": [4]}))["largest"].table.to_pylist() == [{"largest": 7}]
    with pytest.raises(
        QueryError, match="the snapshot is of the operators pairs; the flow has pairs, largest"
    ):
        made().restore({"pairs": b""})
    with pytest.raises(StateError, match="not a windrow snapshot"):
        made().restore({"pairs": b"", "largest": b""})
