"""Every kind of bad input: which error it is, what its message names, and that nothing was half done."""

from __future__ import annotations

import math
import re
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import windrow as wr
from windrow.engine.compiler import InterpretedWarning


def query(**parts):
    """A query over `ts` with one tumbling window of 10 and a count, unless said otherwise."""
    usual = {"time": "ts", "windows": {"w": wr.tumbling(10)}, "aggregates": {"n": wr.count()}}
    return wr.query(**{**usual, **parts})


def stream(**parts):
    return query(**parts).operator()


def times(values, type_=None):
    return pa.table({"ts": pa.array(values, type_ or pa.int64())})


def counts(table):
    return {(row["start"], row["end"]): row["n"] for row in table.to_pylist()}


# -- times ---------------------------------------------------------------------------------------

TIME_TYPES = [
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.date64(),
    pa.timestamp("s"),
    pa.timestamp("ns", "Europe/Berlin"),
]


def column_of(values, type_):
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    return pa.array(values, pa.int64()).cast(type_)


@pytest.mark.parametrize("type_", TIME_TYPES, ids=str)
def test_a_null_time_is_named_with_its_column_and_row(type_):
    table = pa.table({"ts": column_of([40, 41, None], type_)})
    with pytest.raises(wr.DataError, match=r"column 'ts', row 2, value None.*needs a time") as caught:
        query().run(table)
    assert (caught.value.column, caught.value.row, caught.value.value) == ("ts", 2, None)


@pytest.mark.parametrize("type_", TIME_TYPES, ids=str)
def test_a_null_time_is_diverted(type_):
    operator = query().operator(on_bad="divert")
    operator.process(pa.table({"ts": column_of([40, None, 41], type_)}))
    bad = operator.bad().to_pylist()
    assert [row["ts"] for row in bad] == [None]
    assert "needs a time" in bad[0]["bad_reason"]
    assert operator.metrics().bad == 1
    assert operator.finish()["n"].to_pylist() == [2]


def test_not_a_time_of_pandas_is_refused():
    frame = pandas.DataFrame({"ts": [pandas.Timestamp("2020-01-01"), pandas.NaT]})
    with pytest.raises(wr.DataError, match="column 'ts', row 1"):
        query().run(frame)


def test_nan_as_a_time_is_refused():
    with pytest.raises(wr.DataError, match=r"column 'ts', row 1, value nan.*needs a time"):
        query().run(times([1.0, math.nan], pa.float64()))


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_as_a_time_is_refused(value):
    with pytest.raises(wr.DataError, match=r"column 'ts', row 0, value -?inf"):
        query().run(times([value, 1.0], pa.float64()))


def test_an_unsigned_time_too_large_for_int64_is_a_bad_row():
    table = times([100, 2**63 + 5], pa.uint64())
    with pytest.raises(wr.DataError, match=f"column 'ts', row 1, value {2**63 + 5}"):
        query().run(table)
    operator = query().operator(on_bad="divert")
    operator.process(table)
    assert operator.bad()["ts"].to_pylist() == [2**63 + 5]


@pytest.mark.parametrize("type_", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
def test_an_unsigned_time_may_begin_at_zero(type_):
    assert counts(query().run(times([0, 5, 12], type_))) == {(0, 10): 2, (10, 20): 1}


def test_windows_at_the_ends_of_a_small_type_are_answered_where_they_fit():
    assert counts(query().run(times([-120, 119], pa.int8()))) == {(-120, -110): 1, (110, 120): 1}


@pytest.mark.parametrize("value", [-128, 127])
def test_a_window_that_the_type_cannot_express_makes_a_bad_row(value):
    with pytest.raises(wr.DataError, match=f"row 0, value {value}.*overflow"):
        query().run(times([value], pa.int8()))


def test_a_window_too_long_for_the_type_is_refused():
    with pytest.raises(wr.QueryError, match=r"tumbling 200 is longer than column 'ts' \(int8\)"):
        query(windows={"w": wr.tumbling(200)}).run(times([1], pa.int8()))


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_the_ends_of_int64_do_not_wrap(value):
    with pytest.raises(wr.DataError, match=f"row 0, value {value}.*overflow"):
        query().run(times([value]))


# -- columns and types ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"time": "when"}, "when"),
        ({"key": "user"}, "user"),
        ({"aggregates": {"a": wr.sum("amount")}}, "amount"),
        ({"aggregates": {"a": wr.weighted_mean("x", weight="weight")}}, "weight"),
        ({"aggregates": {"a": wr.count("amount")}}, "amount"),
    ],
    ids=["time", "key", "value", "second column", "count"],
)
def test_an_unknown_column_is_named_with_those_that_exist(parts, name):
    table = pa.table({"ts": [1], "x": [1.0]})
    with pytest.raises(wr.QueryError, match=f"unknown column '{name}'.*'ts', 'x'"):
        query(**parts).run(table)


def test_a_column_that_occurs_twice_is_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"])
    with pytest.raises(wr.QueryError, match="column 'ts' occurs 2 times"):
        query().run(table)


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.bool_(), pa.list_(pa.int64()), pa.decimal128(5, 2)], ids=str
)
def test_a_time_of_another_type_is_refused(type_):
    with pytest.raises(wr.QueryError, match=r"column 'ts' of type .* cannot be a time"):
        query().run(times([None], type_))


@pytest.mark.parametrize("type_", [pa.string(), pa.bool_(), pa.timestamp("s")], ids=str)
def test_a_sum_of_another_type_is_refused(type_):
    table = pa.table({"ts": [1], "x": pa.array([None], type_)})
    with pytest.raises(wr.QueryError, match=r"aggregate 'a': sum\(x\) needs a numeric column, not "):
        query(aggregates={"a": wr.sum("x")}).run(table)


@pytest.mark.parametrize(
    "type_",
    [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.null(), pa.month_day_nano_interval()],
    ids=str,
)
def test_a_key_of_a_type_without_equality_is_refused(type_):
    table = pa.table({"ts": [1], "k": pa.array([None], type_)})
    with pytest.raises(wr.QueryError, match=r"key column 'k' of type .* cannot be a key"):
        query(key="k").run(table)


def test_a_schema_that_changes_between_batches_is_refused():
    operator = stream(aggregates={"a": wr.sum("x")})
    operator.process(pa.table({"ts": [1], "x": [1]}))
    with pytest.raises(wr.QueryError, match="column 'x' was int64 in the first batch and is double"):
        operator.process(pa.table({"ts": [2], "x": [2.0]}))
    with pytest.raises(wr.QueryError, match="unknown column 'x'"):
        operator.process(pa.table({"ts": [2]}))
    assert operator.finish()["a"].to_pylist() == [1]


def test_late_rows_survive_a_column_that_is_not_read_and_comes_later():
    operator = stream()
    operator.process(times([1, 35]))
    operator.advance(30)
    operator.process(times([6]))
    operator.process(pa.table({"ts": [5], "extra": ["x"]}))
    assert operator.late()["ts"].to_pylist() == [6, 5]


def test_bad_rows_survive_a_column_that_is_not_read_and_comes_later():
    operator = query().operator(on_bad="divert")
    operator.process(times([1, None]))
    operator.process(pa.table({"ts": pa.array([5, None], pa.int64()), "extra": ["x", "y"]}))
    assert operator.bad().num_rows == 2


def test_an_empty_table_gives_an_empty_answer_of_the_right_types():
    result = query(key="k").run(pa.schema([("ts", pa.timestamp("s")), ("k", pa.string())]).empty_table())
    assert result.num_rows == 0
    assert result.schema.field("start").type == pa.timestamp("s")
    assert result.schema.field("k").type == pa.string()


def test_no_table_at_all_gives_an_empty_answer():
    assert query().run(iter([])).num_rows == 0
    assert query().run(iter([])).column_names == ["window", "start", "end", "n"]


def test_a_table_without_columns_is_refused():
    with pytest.raises(wr.QueryError, match="unknown column 'ts'; the columns are: none at all"):
        query().run(pa.table({}))


@pytest.mark.parametrize("events", [5, "events", {"ts": [1]}, [1, 2]], ids=repr)
def test_what_does_not_speak_arrow_is_refused(events):
    with pytest.raises(wr.QueryError, match="do not speak Arrow"):
        stream().process(events)


# -- queries -------------------------------------------------------------------------------------


def test_a_window_name_is_given_once():
    with pytest.raises(wr.QueryError, match="duplicate window name 'w'"):
        query(windows=[("w", wr.tumbling(1)), ("w", wr.tumbling(2))])
    for operator in (stream(), stream()):
        with pytest.raises(wr.QueryError, match="duplicate window name 'w'"):
            operator.add_window("w", wr.tumbling(2))
        operator.process(times([1]))
    with pytest.raises(wr.QueryError, match="duplicate aggregate name 'n'"):
        query(aggregates=[("n", wr.count()), ("n", wr.count())])


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_name_is_a_string_that_is_not_empty(name):
    with pytest.raises(wr.QueryError, match="name of a window is a string"):
        query(windows=[(name, wr.tumbling(1))])
    with pytest.raises(wr.QueryError, match="name"):
        stream().add_window(name, wr.tumbling(1))
    with pytest.raises(wr.QueryError, match="name"):
        stream().add_aggregate(name, wr.count())


@pytest.mark.parametrize(
    "size", [0, -1, 0.0, "0 seconds", "-5 seconds", timedelta(0), timedelta(-1)], ids=str
)
@pytest.mark.parametrize(
    "window",
    [
        wr.tumbling,
        lambda size: wr.sliding(size, every=1),
        lambda size: wr.sliding(1, every=size),
        lambda size: wr.cumulate(size, step=1),
        lambda size: wr.cumulate(1, step=size),
        lambda size: wr.band(0, length=size),
    ],
    ids=["tumbling", "length", "slide", "size", "step", "band"],
)
def test_a_length_of_zero_or_less_is_refused(window, size):
    with pytest.raises(wr.QueryError, match="must be longer than zero, not"):
        window(size)


def test_a_slide_of_a_nanosecond_over_years_is_refused_with_the_number_of_windows():
    with pytest.raises(wr.QueryError, match="puts each event into 94,608,000,000,000,000 windows"):
        wr.sliding("1095 days", every="1 nanosecond")
    with pytest.raises(wr.QueryError, match="up to 86,400,000 windows"):
        wr.cumulate("1 day", step="1 millisecond")


@pytest.mark.parametrize(
    "value",
    ["ten seconds", "", "10", "5 parsecs", "1 minute x", [1], None, True, math.nan, math.inf],
    ids=repr,
)
def test_a_duration_that_is_none_is_refused(value):
    with pytest.raises(wr.QueryError, match="length"):
        wr.tumbling(value)


@pytest.mark.parametrize("value", ["1 month", "2 quarters", "1 year"])
def test_a_month_has_no_fixed_length(value):
    with pytest.raises(
        wr.QueryError, match=f"length '{value}': a .* has no fixed length; use windrow.calendar"
    ):
        wr.tumbling(value)


def test_a_length_of_time_needs_a_time():
    with pytest.raises(
        wr.QueryError, match=r"length '1 second' is a length of time, but column 'ts' \(int64\)"
    ):
        query(windows={"w": wr.tumbling("1 second")}).run(times([1]))


def test_a_length_finer_than_a_tick_is_refused():
    table = times([1], pa.timestamp("s"))
    with pytest.raises(wr.QueryError, match="'1 millisecond' is finer than the ticks of column 'ts'"):
        query(windows={"w": wr.tumbling("1 millisecond")}).run(table)
    with pytest.raises(wr.QueryError, match=r"length 2.5 is not a whole number of ticks"):
        query(windows={"w": wr.tumbling(2.5)}).run(times([1]))


def test_a_calendar_needs_a_calendar():
    with pytest.raises(wr.QueryError, match=r"needs a timestamp or date, not column 'ts' \(int64\)"):
        query(windows={"w": wr.calendar("1 day")}).run(times([1]))
    with pytest.raises(wr.QueryError, match="calendar period '1 hour'"):
        wr.calendar("1 hour")
    with pytest.raises(wr.QueryError, match="longer than zero"):
        wr.calendar("0 days")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", ""])
def test_an_unknown_time_zone_is_refused(zone):
    with pytest.raises(wr.QueryError, match=f"unknown time zone '{re.escape(zone)}'"):
        wr.calendar("1 day", tz=zone)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_quantile_out_of_range_is_refused(q):
    with pytest.raises(wr.QueryError, match=f"between 0 and 1, not at {q}"):
        wr.quantile("x", q)


@pytest.mark.parametrize("name", ["window", "start", "end", "op", "revision", "k"])
def test_an_output_column_has_one_name(name):
    with pytest.raises(wr.QueryError, match=f"aggregate '{name}' clashes"):
        query(key="k", aggregates={name: wr.count()})
    operator = stream(key="k")
    with pytest.raises(wr.QueryError, match=f"aggregate '{name}' clashes"):
        operator.add_aggregate(name, wr.count())


@pytest.mark.parametrize("name", ["window", "start", "end", "op", "revision"])
def test_a_key_has_a_name_of_its_own(name):
    with pytest.raises(wr.QueryError, match=f"key column '{name}' clashes"):
        query(key=name)
    with pytest.raises(wr.QueryError, match="key column 'a' clashes"):
        query(key=["a", "a"])


def test_a_query_needs_windows_and_aggregates_that_are_such():
    with pytest.raises(wr.QueryError, match="at least one window"):
        query(windows={})
    with pytest.raises(wr.QueryError, match="at least one aggregate"):
        query(aggregates={})
    with pytest.raises(wr.QueryError, match="window 'w' is a str, not a window"):
        query(windows={"w": "1 minute"})
    with pytest.raises(wr.QueryError, match=r"aggregate 'a' is a Tumbling, not a aggregate|not an aggregate"):
        query(aggregates={"a": wr.tumbling(1)})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"mode": "complete"}, "mode must be one of append, update, not 'complete'"),
        ({"on_bad": "ignore"}, "on_bad must be raise or divert, not 'ignore'"),
        ({"lateness": -1}, "lateness must not be negative"),
        ({"lateness": "soon"}, "lateness 'soon' is not a duration"),
        ({"max_ahead": 0}, "max_ahead must be longer than zero"),
        ({"max_slices": 0}, "max_slices must be at least 1"),
        ({"max_slices": "many"}, "max_slices"),
    ],
    ids=str,
)
def test_an_option_that_means_nothing_is_refused(option, message):
    with pytest.raises(wr.QueryError, match=message):
        query().operator(**option)


@pytest.mark.parametrize("lateness", [2**63, 2**64, 10**30])
def test_a_lateness_that_overflows_is_refused(lateness):
    operator = query().operator(lateness=lateness)
    with pytest.raises(wr.QueryError, match=f"lateness of {lateness} overflow column 'ts'"):
        operator.process(times([1]))


@pytest.mark.parametrize(
    ("start", "type_"), [(2**63 - 5, pa.int64()), (datetime(9000, 1, 1), pa.timestamp("ns"))], ids=str
)
def test_a_band_beyond_the_measure_is_refused(start, type_):
    with pytest.raises(wr.QueryError, match="band from"):
        query(windows={"b": wr.band(start, length=10)}).run(times([1], type_))


# -- watermarks ----------------------------------------------------------------------------------


def test_a_watermark_cannot_go_back():
    operator = stream()
    operator.process(times([1, 25]))
    operator.advance(20)
    with pytest.raises(wr.QueryError, match="watermark went back from 20 to 19"):
        operator.advance(19)
    assert counts(operator.finish()) == {(20, 30): 1}


def test_a_watermark_cannot_go_back_before_the_first_event():
    operator = stream()
    operator.advance(20)
    with pytest.raises(wr.QueryError, match="watermark went back from 20 to 19"):
        operator.advance(19)


@pytest.mark.parametrize("value", ["soon", None, math.nan, math.inf, True, datetime(2020, 1, 1)], ids=repr)
def test_a_watermark_that_is_no_point_of_the_measure_is_refused(value):
    operator = stream()
    operator.process(times([1]))
    with pytest.raises(wr.QueryError, match="watermark"):
        operator.advance(value)
    assert operator.metrics().watermark is None


def moments():
    operator = stream(windows={"w": wr.tumbling("1 minute")})
    operator.process(times([0, 120_000], pa.timestamp("ms")))
    return operator


def test_not_a_time_is_no_watermark():
    for value in (np.datetime64("NaT"), pandas.NaT):
        with pytest.raises(wr.QueryError, match="watermark"):
            moments().advance(value)


@pytest.mark.parametrize(
    "value",
    [
        60_000,
        datetime(1970, 1, 1, 0, 1),
        datetime(1970, 1, 1, 0, 1, tzinfo=UTC),
        np.datetime64("1970-01-01T00:01"),
        pa.scalar(60, pa.timestamp("s")),
        pa.scalar(60_000, pa.timestamp("ms")),
        pa.scalar(60_000_000_000, pa.timestamp("ns", "UTC")),
    ],
    ids=repr,
)
def test_a_watermark_may_be_of_another_unit(value):
    operator = moments()
    assert operator.advance(value)["n"].to_pylist() == [1]
    assert operator.metrics().watermark == datetime(1970, 1, 1, 0, 1)


@pytest.mark.parametrize(
    "value", [date(1970, 1, 2), pa.scalar(date(1970, 1, 2)), np.datetime64("1970-01-02")], ids=repr
)
def test_a_watermark_may_be_a_date(value):
    operator = moments()
    operator.advance(value)
    assert operator.metrics().watermark == datetime(1970, 1, 2)


def test_a_watermark_in_a_far_year_does_not_wrap():
    operator = moments()
    operator.advance(np.datetime64("2500-01-01"))
    assert operator.metrics().watermark == datetime(2500, 1, 1)


def test_an_early_watermark_that_does_not_fit_stays_an_error():
    operator = stream()
    operator.advance(datetime(2020, 1, 1))
    for _ in range(2):
        with pytest.raises(wr.QueryError, match="watermark"):
            operator.process(times([1]))


def test_early_watermarks_of_two_kinds_are_refused():
    operator = stream()
    operator.advance(5)
    with pytest.raises(wr.QueryError, match="watermark"):
        operator.advance(datetime(2020, 1, 1))


def test_an_operator_with_a_watermark_and_no_events_can_be_saved():
    operator = stream()
    operator.advance(20)
    restored = operator.query.restore(operator.snapshot())
    restored.process(times([1, 25]))
    assert restored.late().num_rows == 1


@pytest.mark.parametrize("end", ["finish", "advance"])
def test_events_after_the_end_of_time_are_late(end):
    operator = stream()
    operator.process(times([1]))
    operator.finish() if end == "finish" else operator.advance(2**63 - 1)
    operator.process(times([5, 10**15]))
    assert operator.late()["ts"].to_pylist() == [5, 10**15]
    assert operator.metrics().late == 2
    assert operator.finish().num_rows == 0


# -- rows that promise something and do not keep it ----------------------------------------------


def test_an_event_far_ahead_of_the_watermark_is_a_bad_row():
    operator = query().operator(max_ahead=100)
    operator.process(times([1]))
    operator.advance(5)
    with pytest.raises(wr.DataError, match="column 'ts', row 1, value 10000: is more than 100 ahead"):
        operator.process(times([6, 10_000]))
    assert counts(operator.finish()) == {(0, 10): 1}


def test_an_event_far_ahead_is_diverted():
    operator = query().operator(max_ahead=100, on_bad="divert")
    operator.advance(5)
    operator.process(times([6, 10_000, 7]))
    (bad,) = operator.bad().to_pylist()
    assert bad["ts"] == 10_000
    assert "more than 100 ahead of the watermark" in bad["bad_reason"]
    assert counts(operator.finish()) == {(0, 10): 2}


def test_an_event_out_of_order_breaks_a_promise():
    operator = query(ordered=True).operator()
    operator.process(times([1, 5]))
    with pytest.raises(wr.DataError, match=r"column 'ts', row 1, value 4.*ordered=True"):
        operator.process(times([6, 4]))
    with pytest.raises(wr.DataError, match=r"column 'ts', row 0, value 4.*ordered=True"):
        operator.process(times([4]))
    assert counts(operator.finish()) == {(0, 10): 2}


def test_an_event_out_of_order_is_diverted():
    operator = query(ordered=True).operator(on_bad="divert")
    operator.process(times([1, 5, 3, 5, 6]))
    assert operator.bad()["ts"].to_pylist() == [3]
    assert counts(operator.finish()) == {(0, 10): 4}


LARGE = [
    (pa.array([1, 2**63], pa.uint64()), 2**63),
    (pa.array([Decimal(1), Decimal(10**30)], pa.decimal128(38, 0)), Decimal(10**30)),
    (pa.array([Decimal(1), Decimal(-(10**30))], pa.decimal128(38, 0)), Decimal(-(10**30))),
]


@pytest.mark.parametrize(("values", "value"), LARGE, ids=["uint64", "decimal", "negative decimal"])
@pytest.mark.parametrize("aggregate", [wr.sum("x"), wr.max("x"), wr.median("x"), wr.collect("x")], ids=str)
def test_a_value_that_does_not_fit_is_a_bad_row(aggregate, values, value):
    table = pa.table({"ts": [1, 2], "x": values})
    q = query(aggregates={"a": aggregate, "n": wr.count()})
    with pytest.raises(wr.DataError, match=r"column 'x', row 1, value .*does not fit in 64 bits"):
        q.run(table)
    operator = q.operator(on_bad="divert")
    operator.process(table)
    (bad,) = operator.bad().to_pylist()
    assert bad["x"] == value
    assert bad["bad_reason"] == "column 'x': does not fit in 64 bits"
    assert operator.finish()["n"].to_pylist() == [1]


def test_an_integer_sum_that_overflows_names_the_window_and_the_key():
    table = pa.table({"ts": [1, 2], "k": ["a", "a"], "x": [2**62, 2**62]})
    with pytest.raises(wr.DataError, match=r"window 'w' \[0, 10\) of key \{'k': 'a'\} overflows int64"):
        query(key="k", aggregates={"a": wr.sum("x")}).run(table)


# -- limits --------------------------------------------------------------------------------------


def test_more_slices_than_the_limit_are_refused_and_nothing_is_taken():
    operator = query().operator(max_slices=3)
    operator.process(times([1]))
    with pytest.raises(wr.LimitError, match="5 live slices, more than the limit of max_slices=3"):
        operator.process(times([2, 12, 22, 32, 42]))
    assert operator.metrics().events == 1
    operator.process(times([3]))
    assert counts(operator.finish()) == {(0, 10): 2}


def test_more_keys_than_the_limit_are_refused_and_nothing_is_taken():
    operator = query(key="k").operator(max_slices=4)
    operator.process(pa.table({"ts": [1, 2], "k": [1, 2]}))
    before = operator.metrics()
    with pytest.raises(wr.LimitError, match="1 slices of 50 keys are 50 live slices"):
        operator.process(pa.table({"ts": [1] * 50, "k": list(range(50))}))
    assert operator.metrics() == before
    operator.process(pa.table({"ts": [3], "k": [1]}))
    assert [(r["k"], r["n"]) for r in operator.finish().to_pylist()] == [(1, 2), (2, 1)]


@pytest.mark.parametrize("kind", ["bad", "late"])
def test_rows_set_aside_belong_to_the_batch_that_was_refused(kind):
    operator = query().operator(max_slices=2, on_bad="divert")
    operator.process(times([25]))
    operator.advance(20)
    with pytest.raises(wr.LimitError):
        operator.process(times([None if kind == "bad" else 1, 31, 41, 51]))
    assert (operator.metrics().bad, operator.metrics().late) == (0, 0)
    assert (operator.bad().num_rows, operator.late().num_rows) == (0, 0)


def test_a_frame_of_several_chunks_is_taken_whole_or_not_at_all():
    frame = polars.concat(
        [polars.DataFrame({"ts": [1, 2]}), polars.DataFrame({"ts": [3, None]})], rechunk=False
    )
    assert frame.n_chunks() == 2
    operator = stream()
    with pytest.raises(wr.DataError, match="column 'ts', row 3, value None"):
        operator.process(frame)
    assert operator.metrics().events == 0


def test_an_iterator_that_raises_keeps_what_came_before():
    def batches():
        yield times([1])
        yield times([2, 12])
        raise RuntimeError("the source broke")

    operator = stream()
    with pytest.raises(RuntimeError, match="the source broke"):
        operator.process(batches())
    operator.process(times([3]))
    assert counts(operator.finish()) == {(0, 10): 3, (10, 20): 1}


# -- functions of the user's own -----------------------------------------------------------------


def lift_but_seven(x):
    if x == 7:
        raise ValueError("seven")
    return x


def plain(x):
    return x


def add(a, b):
    return a + b


def add_to_a_hundred(a, b):
    if a + b > 100:
        raise ValueError("a hundred")
    return a + b


def lower_to_a_hundred(a):
    if a > 100:
        raise ValueError("a hundred")
    return a


def own(lift=plain, combine=add, lower=None, **options):
    return wr.aggregate(
        lift=lift, combine=combine, lower=lower, identity=0, columns=["x"], name="mine", **options
    )


def test_a_lift_that_raises_is_named_with_its_row_and_leaves_no_trace():
    operator = stream(aggregates={"a": own(lift_but_seven), "total": wr.sum("x"), "last": wr.last("x")})
    operator.process(pa.table({"ts": [1, 12], "x": [1, 2]}))
    before = operator.metrics()
    with pytest.raises(
        wr.UserFunctionError, match="lift function 'lift_but_seven' of 'mine' raised ValueError at row 2"
    ):
        operator.process(pa.table({"ts": [3, 25, 4], "x": [5, 6, 7]}))
    assert operator.metrics() == before
    assert operator.finish().select(["a", "total", "last"]).to_pylist() == [
        {"a": 1.0, "total": 1, "last": 1},
        {"a": 2.0, "total": 2, "last": 2},
    ]


def test_a_combine_that_raises_is_named_with_its_row_and_leaves_no_trace():
    operator = stream(aggregates={"a": own(combine=add_to_a_hundred), "total": wr.sum("x")})
    operator.process(pa.table({"ts": [1], "x": [60]}))
    with pytest.raises(
        wr.UserFunctionError, match="combine function 'add_to_a_hundred' of 'mine' raised ValueError at row 1"
    ):
        operator.process(pa.table({"ts": [12, 13], "x": [60, 60]}))
    assert operator.finish().select(["start", "a", "total"]).to_pylist() == [
        {"start": 0, "a": 60.0, "total": 60}
    ]


def test_the_row_named_is_a_row_of_the_table_that_was_handed_in():
    table = pa.table({"ts": [9, 1, 5], "x": [7, 1, 2]})
    with pytest.raises(wr.UserFunctionError, match="at row 0 "):
        query(aggregates={"a": own(lift_but_seven)}).run(table)


@pytest.mark.parametrize("first", [None, 1], ids=["bad", "late"])
def test_rows_set_aside_do_not_shift_the_row_named(first):
    operator = query(aggregates={"a": own(lift_but_seven)}).operator(on_bad="divert")
    operator.process(pa.table({"ts": [50], "x": [1]}))
    operator.advance(40)
    table = pa.table({"ts": pa.array([first, first, 51, 52], pa.int64()), "x": [1, 1, 1, 7]})
    with pytest.raises(wr.UserFunctionError, match="at row 3 "):
        operator.process(table)
    assert (operator.metrics().late, operator.metrics().bad) == (0, 0)


def test_a_combine_that_raises_between_slices_is_named_with_the_window():
    windows = {"w": wr.tumbling(10), "v": wr.tumbling(20)}
    operator = query(windows=windows, aggregates={"a": own(combine=add_to_a_hundred)}).operator()
    operator.process(pa.table({"ts": [1, 12], "x": [60, 60]}))
    with pytest.raises(
        wr.UserFunctionError, match="combine function 'add_to_a_hundred' of 'mine' raised ValueError"
    ):
        operator.finish()
    assert operator.metrics().watermark is None


def test_a_lower_that_raises_is_named_with_the_window():
    operator = stream(aggregates={"n": wr.count(), "a": own(lower=lower_to_a_hundred)})
    operator.process(pa.table({"ts": [1, 12], "x": [60, 600]}))
    with pytest.raises(
        wr.UserFunctionError, match="lower function 'lower_to_a_hundred' of 'mine' raised ValueError"
    ) as caught:
        operator.finish()
    assert "10" in str(caught.value), "the window is not named"
    operator.remove_aggregate("a")
    assert counts(operator.finish()) == {(0, 10): 1, (10, 20): 1}


@pytest.mark.parametrize(
    ("function", "aggregate"),
    [
        ("lift_but_seven", own(lift_but_seven, commutative=False)),
        ("add_to_a_hundred", own(combine=add_to_a_hundred, commutative=False)),
        ("lower_to_a_hundred", own(lower=lower_to_a_hundred, commutative=False)),
    ],
    ids=["lift", "combine", "lower"],
)
def test_functions_in_event_time_order_are_named_too(function, aggregate):
    operator = stream(aggregates={"a": aggregate})
    operator.process(pa.table({"ts": [1, 2, 3], "x": [7, 60, 60]}))
    with pytest.raises(wr.UserFunctionError, match=f"function '{function}' of 'mine' raised ValueError"):
        operator.finish()


def test_a_combine_that_raises_while_slices_are_joined_loses_no_row():
    windows = {"s": wr.tumbling(1), "d": wr.tumbling(100_000)}
    operator = query(windows=windows, aggregates={"a": own(combine=add_to_a_hundred)}).operator()
    operator.process(pa.table({"ts": list(range(3000)), "x": [60] * 3000}))
    emitted = 0
    try:
        emitted = operator.advance(2500).num_rows
    except wr.UserFunctionError:
        assert operator.metrics().watermark is None
    else:
        assert emitted == 2500


def test_a_failed_advance_counts_no_revision():
    operator = query(aggregates={"n": wr.count(), "a": own(lower=lower_to_a_hundred)}).operator(
        mode="update", lateness=100
    )
    operator.process(pa.table({"ts": [1], "x": [1]}))
    operator.advance(10)
    operator.process(pa.table({"ts": [2], "x": [1000]}))
    for _ in range(2):
        with pytest.raises(wr.UserFunctionError):
            operator.advance(11)
    operator.remove_aggregate("a")
    (row,) = operator.advance(12).to_pylist()
    assert (row["op"], row["revision"], row["n"]) == ("update", 1, 2)


def test_a_function_that_cannot_be_compiled_is_interpreted_with_one_warning():
    def digits(x):
        return sum(int(digit) for digit in str(int(x)))

    aggregate = wr.aggregate(lift=digits, combine=add, identity=0, columns=["x"], name="digits")
    windows = {"w": wr.tumbling(10), "v": wr.tumbling(20)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = query(windows=windows, aggregates={"a": aggregate}).run(
            pa.table({"ts": [12, 1, 2], "x": [123, 45, 6]})
        )
    assert {(r["window"], r["start"]): r["a"] for r in result.to_pylist()} == {
        ("w", 0): 15.0,
        ("w", 10): 6.0,
        ("v", 0): 21.0,
    }
    mine = [w for w in caught if issubclass(w.category, InterpretedWarning)]
    assert len(mine) == 1, [str(w.message) for w in mine]
    assert "'digits'" in str(mine[0].message)


@pytest.mark.filterwarnings("ignore::windrow.engine.compiler.InterpretedWarning")
@pytest.mark.parametrize(
    "aggregate",
    [own(lift=abs), own(combine=max), own(lower=float)],
    ids=["lift abs", "combine max", "lower float"],
)
def test_built_in_functions_of_python_are_functions_too(aggregate):
    table = pa.table({"ts": [1, 2], "x": [1, 2]})
    assert query(aggregates={"a": aggregate}).run(table)["a"].to_pylist()[0] in (2.0, 3.0)


def test_a_table_with_an_extension_type_can_be_saved_and_restored():
    operator = stream()
    operator.process(pa.table({"ts": [1], "id": pa.array([b"0" * 16], pa.uuid())}))
    assert counts(operator.query.restore(operator.snapshot()).finish()) == {(0, 10): 1}
