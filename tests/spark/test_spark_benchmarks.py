"""The benchmarks on Spark compare like with like, and fill their tables. What they measure is not tested."""

from __future__ import annotations

from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from benchmarks.spark import price, queries, questions
from benchmarks.spark.__main__ import arguments
from benchmarks.spark.data import SCHEMA, write
from benchmarks.spark.queries import (
    ours,
    ours_that_last,
    sparks,
    sparks_that_last,
    sparks_that_last_by_window,
    ten,
)


def test_both_sides_compute_the_same(spark: Any, tmp_path: Path) -> None:
    source = write(tmp_path / "source", files=1, rows=2_000, keys=20, span=90)
    events = spark.read.schema(SCHEMA).parquet(str(source.folder))
    windows = ten(gap=0.2)
    compared = {name: windows[name] for name in ("10s", "1m every 10s", "session")}
    found = ours(compared).on_spark(events).select("k", "window", "start", "end", "n", "total").collect()
    for name, spec in compared.items():
        expected = sparks(events, spec).select("k", "w.start", "w.end", "n", "total").collect()
        assert sorted(map(tuple, expected)) == sorted(
            tuple(row)[:1] + tuple(row)[2:] for row in found if row.window == name
        )


def test_events_that_last_are_in_the_same_windows_in_sql(spark: Any, tmp_path: Path) -> None:
    source, spec = write(tmp_path / "source", files=1, rows=60, keys=2, span=90), (6.0, 1.0)
    events = spark.read.schema(SCHEMA).parquet(str(source.folder))
    found = ours_that_last(spec).on_spark(events).select("k", "start", "end", "n", "total").collect()
    for build in (sparks_that_last, sparks_that_last_by_window):
        expected = build(events, spec).select("k", "w.start", "w.end", "n", "total").collect()
        assert sorted(map(tuple, expected)) == sorted(map(tuple, found))


def test_a_table_has_a_line_for_each_number_of_keys(spark: Any, tmp_path: Path) -> None:
    runs = []

    def stream(source: Any, build: Any) -> Any:
        """Only the first is run."""
        runs.append(runs[0] if runs else measured(source, build))
        return runs[-1]

    bench = questions.Bench(spark, tmp_path, questions.SCALES["tiny"])
    measured, bench.stream = bench.stream, stream  # type: ignore[method-assign]
    for (table,) in (questions.pushed_down(bench), questions.tumbling(bench)):
        assert [line.name for line in table.lines] == ["100 keys", "500 keys"]
        assert all(line.figures["times Spark's"] == 1 for line in table.lines)
    assert len(runs) == 12
    assert runs[0].rate > 0
    assert runs[0].written > 0


def test_jobs_without_python_are_measured_beside_the_way_through_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []

    def batch(source: Any, build: Any, *, repeats: int) -> float:
        with redirect_stdout(StringIO()) as plan:
            build(spark.read.schema(SCHEMA).parquet(str(source.folder))).explain()
        plans.append(plan.getvalue())
        return 1.0

    monkeypatch.setattr(queries, "SIMPLE", {"tumbling 60 s": (60, 60)})
    bench = questions.Bench(spark, tmp_path, questions.SCALES["tiny"])
    bench.batch = batch  # type: ignore[method-assign]
    (table,) = questions.without_python(bench)
    assert [line.name for line in table.lines] == ["tumbling 60 s, 100 keys", "tumbling 60 s, 500 keys"]
    assert ["MapInArrow" in plan for plan in plans] == [False, True, False] * 10


def test_the_price_of_a_micro_batch_is_told_by_its_parts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price, "WARM", 0)
    source = write(tmp_path / "source", files=2, rows=200, keys=5, span=60)
    general = partial(ours({"w": (60, 60)}).on_spark, path="general")
    for name, build in {
        "nothing": price.nothing,
        "ours": price.watched(general, tmp_path / "clocks"),
    }.items():
        found = price.micro_batches(spark, source, build, tmp_path / name)
        assert list(found) == [*price.PARTS.values(), *price.OF_STATE.values()]
        assert found["all"] >= found["stages"] > 0
    spent = price.in_workers(tmp_path / "clocks")
    assert set(spent) == {
        "init",
        "read state",
        "process and advance",
        "write state",
        "timers",
        "calls",
        "task",
    }
    assert spent["task"][0] >= spent["calls"][0] > 0


@pytest.mark.parametrize("given", [["nothing"], ["--write", "sliding"], ["--write", "--scale", "tiny"]])
def test_what_cannot_be_meant_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(given)
    assert "error" in capsys.readouterr().err
