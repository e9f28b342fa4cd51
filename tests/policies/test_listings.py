"""The paper's Listings 1 to 7, as they are written here, on streams small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from windrow import policies as wp


def near(sensors, queries):
    """Whether sensors lie within the radius of queries."""
    return pc.less_equal(distance(sensors, queries), queries["radius"])


def distance(sensors, queries):
    dx = pc.subtract(sensors["x"], queries["qx"])
    dy = pc.subtract(sensors["y"], queries["qy"])
    return pc.sqrt(pc.add(pc.multiply(dx, dx), pc.multiply(dy, dy)))


def sensor_query(clock):
    """Listing 1: the sensor readings of the last 10 seconds that lie near each query, and how far away."""
    flow = wp.Flow()
    sensors, queries = flow.source("Sensors"), flow.source("Queries")
    join = wp.Join("sliding, time(10.0), count(1)", "sliding, count(0), count(1)", match=near, clock=clock)
    matches = flow.add("Matches", join, sensors, queries)
    dx, dy = pc.field("x") - pc.field("qx"), pc.field("y") - pc.field("qy")
    far = pc.sqrt(dx * dx + dy * dy)
    return flow, flow.add("Results", wp.Project({"distance": far}, keep=True), matches)


SENSORS = pa.table({"sid": [1, 2, 3], "value": [0.5, 0.6, 0.7], "x": [0.0, 3.0, 9.0], "y": [0.0, 4.0, 9.0]})
QUERIES = pa.table({"qid": [7, 8], "qx": [0.0, 9.0], "qy": [0.0, 8.0], "radius": [5.0, 1.0]})


def test_listing_1_finds_the_readings_of_the_last_ten_seconds_near_each_query():
    clock = wp.VirtualClock()
    flow, _ = sensor_query(clock)
    flow.process("Sensors", SENSORS)
    out = flow.process("Queries", QUERIES)["Results"]
    found = [(row["qid"], row["sid"], row["distance"]) for row in out.table.to_pylist()]
    assert found == [(7, 1, 0.0), (7, 2, 5.0), (8, 3, 1.0)]
    assert out.marks.tolist() == [2, 3]
    clock.advance(11)
    assert flow.process("Queries", QUERIES) == {}


def test_listing_2_sums_each_transaction_of_a_hundred_tuples():
    totals = wp.Aggregate("tumbling, count(100)", {"totalValue": wr.sum("value")}, group_by="tid")
    rows = pa.table({"tid": ["a", "b", "b", "b"] * 25, "value": [1, 2, 3, 4] * 25})
    out = totals.process(rows)[0].table.to_pylist()
    assert out == [{"tid": "a", "totalValue": 25}, {"tid": "b", "totalValue": 225}]


def test_listing_3_sums_the_last_hundred_every_ten():
    totals = wp.Aggregate("sliding, count(100), count(10)", {"totalValue": wr.sum("value")}, group_by="tid")
    out = (
        totals.process(pa.table({"tid": ["a"] * 120, "value": range(120)}))[0].table["totalValue"].to_pylist()
    )
    assert out == [sum(range(max(0, end - 100), end)) for end in range(10, 121, 10)]


def test_listing_3_waits_for_a_full_window_if_told_so():
    totals = wp.Aggregate(
        "sliding, count(100), count(10)",
        {"totalValue": wr.sum("value")},
        group_by="tid",
        partial_windows=False,
    )
    out = (
        totals.process(pa.table({"tid": ["a"] * 120, "value": range(120)}))[0].table["totalValue"].to_pylist()
    )
    assert out == [sum(range(end - 100, end)) for end in (100, 110, 120)]


def test_listing_4_keeps_a_window_for_each_state():
    totals = wp.Aggregate(
        "sliding, count(100), count(10), partitioned",
        {"totalValue": wr.sum("value")},
        group_by="tid",
        partition_by="state",
    )
    rows = pa.table({"tid": ["t"] * 30, "state": ["NY", "CA", "NY"] * 10, "value": [1] * 30})
    out = totals.process(rows)[0].table.to_pylist()
    assert out == [
        {"state": "NY", "tid": "t", "totalValue": 10},
        {"state": "CA", "tid": "t", "totalValue": 10},
        {"state": "NY", "tid": "t", "totalValue": 20},
    ]


def test_listing_5_aggregates_what_belongs_to_one_query_because_the_join_punctuates():
    flow, results = sensor_query(wp.VirtualClock())
    smallest = {"minDistance": wr.min("distance")}
    flow.add("MinDists", wp.Aggregate("tumbling, punct()", smallest, group_by="qid"), results)
    flow.process("Sensors", SENSORS)
    out = flow.process("Queries", QUERIES)["MinDists"].table.to_pylist()
    assert out == [{"qid": 7, "minDistance": 0.0}, {"qid": 8, "minDistance": 1.0}]


def test_listing_6_forgets_pairs_of_addresses_that_were_silent_for_an_hour():
    clock = wp.VirtualClock()
    totals = wp.Aggregate(
        "sliding, delta(ts, 100.0), delta(ts, 10.0), partitioned, partitionAge(1 hour)",
        {"ts": wr.last("ts"), "totalTraffic": wr.sum("traffic")},
        partition_by=["srcIp", "dstIp"],
        clock=clock,
    )

    def rows(source, times, traffic):
        columns = {"ts": times, "srcIp": [source] * len(times), "dstIp": ["z"] * len(times)}
        return pa.table({**columns, "traffic": pa.array(traffic, pa.uint64())})

    out = totals.process(rows("a", [0.0, 8.0, 11.0, 22.0, 130.0], [1, 2, 4, 8, 16]))[0].table.to_pylist()
    assert [(row["ts"], row["totalTraffic"]) for row in out] == [(8.0, 3), (11.0, 7), (22.0, 15)]
    clock.advance("59 minutes")
    totals.process(rows("b", [5.0], [1]))
    assert totals.window.partitions()["srcIp"].to_pylist() == ["a", "b"]
    clock.advance("2 minutes")
    totals.process(rows("b", [6.0], [1]))
    assert totals.window.partitions()["srcIp"].to_pylist() == ["b"]


class Average(wp.Summarizer):
    """Listing 7's SummarizerHandler: a count and an average, and no tuples."""

    def open(self, partition):
        self.n, self.average = 0, 0.0

    def insert(self, rows):
        for value in rows["value"].to_pylist():
            self.average += (value - self.average) / (self.n + 1)
            self.n += 1


def test_listing_7_averages_with_a_summarizer_of_ones_own():
    rows = pa.table({"partition": ["a", "b"] * 600, "value": np.arange(1200.0)})
    window = wp.TumblingWindow(
        "tumbling, count(500), partitioned", rows.schema, partition_by="partition", summarizer=Average
    )
    averages = {}
    window.on_before_flush(lambda event: averages.__setitem__(event.partition, event.summary.average))
    window.insert(rows)
    np.testing.assert_allclose([averages["a"], averages["b"]], [499.0, 500.0])


def test_listing_7_averages_with_an_aggregate_in_the_place_of_the_summarizer():
    rows = pa.table({"partition": ["a", "b"] * 600, "value": np.arange(1200.0)})
    window = "tumbling, count(500), partitioned"
    operator = wp.Aggregate(window, {"average": wr.mean("value")}, partition_by="partition")
    assert operator.process(rows)[0].table["average"].to_pylist() == [499.0, 500.0]
    assert operator.window.log.rows == 0
