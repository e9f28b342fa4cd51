"""The text form: it prints back, and an error points at the character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.compared import SPECS

from windrow import policies as wp
from windrow.errors import QueryError


@given(SPECS)
def test_what_a_spec_prints_is_the_same_spec(spec):
    assert wp.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("tumbling,count(100)", wp.tumbling(wp.count(100))),
        ("  sliding , count( 100 ) , count(10)  ", wp.sliding(wp.count(100), wp.count(10))),
        ("tumbling, punct()", wp.tumbling(wp.punct())),
        ("sliding, time(10.0), count(1)", wp.sliding(wp.time("10 seconds"), wp.count(1))),
        ("sliding, delta(my ts, 1 minute), time(2)", wp.sliding(wp.delta("my ts", "1 minute"), wp.time(2))),
        (
            "sliding, delta(ts, 100.0), delta(ts, 1e1), partitioned, partitionAge(3600)",
            wp.sliding(
                wp.delta("ts", 100),
                wp.delta("ts", 10),
                partitioned=True,
                partition_eviction=wp.partition_age("1 hour"),
            ),
        ),
        (
            "tumbling, count(2), partitioned, tupleCount(5), least frequently updated",
            wp.tumbling(
                wp.count(2),
                partitioned=True,
                partition_eviction=wp.tuple_count(5),
                selection="least frequently updated",
            ),
        ),
    ],
)
def test_texts_are_read(text, spec):
    assert wp.parse(text) == spec


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("", 0, "a word is expected"),
        ("hopping, count(1)", 0, "'tumbling' or 'sliding'"),
        ("tumbling", 8, "the eviction policy is missing"),
        ("tumbling,", 9, "a word is expected"),
        ("sliding, count(10)", 18, "the trigger policy is missing"),
        ("tumbling, cuont(10)", 10, "is not an eviction policy"),
        ("tumbling, count", 15, "needs parentheses"),
        ("tumbling, count()", 16, "needs a value"),
        ("tumbling, count(ten)", 16, "whole number"),
        ("tumbling, count(-1)", 16, "0 or more"),
        ("tumbling, count(10", 15, "never closed"),
        ("tumbling, count(10) partitioned", 20, "a comma is expected"),
        ("tumbling, count(10), count(2)", 21, "the text ends, or 'partitioned'"),
        ("tumbling, count(10), partitioned, count(2)", 34, "is not a partition eviction"),
        ("tumbling, count(1), partitioned, partitionCount(5), newest", 52, "a selection is one of"),
        ("tumbling, count(1), partitioned, partitionAge(5), oldest", 50, "selects nothing"),
        ("tumbling, count(1), partitioned, partitionCount(5), oldest, count(1)", 60, "should end here"),
        ("sliding, punct(), count(1)", 9, "punct"),
        ("sliding, count(1), punct()", 19, "punct"),
        ("sliding, count(1), count(0)", 19, "never come"),
        ("tumbling, count(0)", 10, "always be full"),
        ("tumbling, delta(5)", 17, "needs a threshold"),
        ("tumbling, delta(, 5)", 16, "name of a column"),
        ("tumbling, delta(ts, -5)", 20, "must not be negative"),
        ("tumbling, delta(ts, 5 parsecs)", 20, "unknown unit"),
        ("tumbling, time(soon)", 15, "not a duration"),
        ("tumbling, punct(3)", 16, "takes nothing"),
        ("tumbling, 5", 10, "a word is expected"),
        ("tumbling count(3)", 9, "a comma is expected before this"),
        ("tumbling, count(\u0663)", 16, "whole number"),
        ('tumbling, delta("a, 3)', 15, "never closed"),
        ('tumbling, delta("a" b, 3)', 20, "no name in quotes"),
    ],
)
def test_an_error_points_at_the_character(text, at, words):
    with pytest.raises(QueryError, match=words) as raised:
        wp.parse(text)
    lines = str(raised.value).splitlines()
    assert lines[-2:] == [f"    {text}", f"    {' ' * at}^"]


def test_a_bad_trigger_is_not_offered_punctuations():
    with pytest.raises(QueryError, match=r"\?\): count\(\.\.\), delta\(\.\.\), time\(\.\.\)\n"):
        wp.parse("sliding, count(1), cuont(2)")
    with pytest.raises(QueryError, match=r"punct\(\.\.\)\n"):
        wp.parse("tumbling, cuont(2)")


@given(st.text(min_size=1))
def test_a_column_of_any_name_is_read_back(name):
    spec = wp.tumbling(wp.delta(name, 3))
    assert wp.parse(str(spec)) == spec


def test_the_character_is_found_in_a_text_of_several_lines():
    with pytest.raises(QueryError) as raised:
        wp.parse("tumbling,\n  count(x)")
    assert str(raised.value).splitlines()[1:] == ["    tumbling,   count(x)", "                      ^"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("tumbilng, count(1)", "tumbling"),
        ("Sliding, count(1), count(1)", "sliding"),
        ("tumbling, cuont(1)", "count"),
        ("sliding, count(1), timer(1)", "time"),
        ("tumbling, count(1), partition", "partitioned"),
        ("tumbling, count(1), partitioned, partition count(5)", "partitionCount"),
        (
            "tumbling, count(1), partitioned, partitionCount(5), least recent updated",
            "least recently updated",
        ),
    ],
)
def test_a_word_that_is_nearly_right_is_met_with_the_right_one(text, meant):
    with pytest.raises(QueryError, match=rf"\(did you mean '{meant}'\?\)"):
        wp.parse(text)


def test_a_text_is_a_string():
    with pytest.raises(QueryError, match="is a string"):
        wp.parse(5)
