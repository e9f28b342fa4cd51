"""The README shows one question twice, to windrow on Spark and to Spark itself: the answer is the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_readme import BLOCK, README

CSV = str(README.parent / "examples" / "storm.csv")


def test_windrow_and_spark_give_the_same_answer_to_the_question_of_the_readme(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(README.parent)
    readme: dict[str, Any] = {}
    for source, _ in BLOCK.findall(README.read_text("utf-8")):
        exec(compile(source, str(README), "exec"), readme)
    schema = "scheduled timestamp, origin string, carrier string, delay bigint"
    flights = spark.read.csv(CSV, header=True, schema=schema)
    numbers = ["flights", "departed", "p90"]
    ours = readme["with_windrow"](flights).select("window", "origin", "start", "end", *numbers).collect()
    theirs = [
        (name, row.origin, row.window.start, row.window.end, *(row[number] for number in numbers))
        for name, windows in zip(("12 hours", "a day"), readme["with_spark"](flights), strict=True)
        for row in windows.collect()
    ]
    assert {tuple(row[:-1]) for row in ours} == {row[:-1] for row in theirs}
    assert len(ours) == len(theirs) == readme["windows"].num_rows
    expected = {row[:-1]: row[-1] for row in theirs}
    for *identity, p90 in ours:
        wanted = expected[tuple(identity)]
        assert (p90 is None) == (wanted is None)
        assert p90 is None or p90 == pytest.approx(wanted, rel=1e-12)
