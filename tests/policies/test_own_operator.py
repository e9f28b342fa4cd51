"""Operators of one's own: the documented example, and what the base class does for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow as pa
import pytest

from windrow import policies as wp
from windrow.errors import QueryError, StateError

EXAMPLE = Path(__file__).parents[2] / "examples" / "policies" / "spectrum.py"


@pytest.fixture(scope="module")
def spectrum():
    spec = importlib.util.spec_from_file_location("spectrum", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_finds_the_frequency_of_each_machine(spectrum, capsys):
    spectrum.main()
    found = [tuple(line.split()[:2]) for line in capsys.readouterr().out.splitlines()]
    assert [hertz for machine, hertz in found if machine == "a"] == ["20.0"] * 4
    assert [hertz for machine, hertz in found if machine == "b"] == ["50.0", "50.0", "8.0", "8.0"]


def test_the_operator_of_the_example_has_fewer_than_40_lines():
    lines = EXAMPLE.read_text("utf-8").partition("# [operator]")[2].partition("# [/operator]")[0]
    assert len(lines.strip().splitlines()) < 40


@pytest.mark.parametrize(
    "window", ["sliding, count(256), count(128), partitioned", "tumbling, delta(n, 255), partitioned"]
)
def test_the_example_runs_with_any_window(spectrum, window):
    rows = spectrum.readings()
    rows = rows.append_column("n", pa.array([i // 2 for i in range(rows.num_rows)]))
    operator = spectrum.Spectrum(window, "x", rate=256, partition_by="machine", partial_windows=False)
    out = operator.process(rows)[0]
    assert {row["hertz"] for row in out.table.to_pylist() if row["machine"] == "a"} == {20.0}
    assert len(out.marks) == len(out) > 4


class Smallest(wp.Windowed):
    """The smallest value so far of each partition, told at each row."""

    state_fields = ("heard",)

    def __init__(self, window, **options):
        super().__init__(window, **options)
        self.heard = []

    def after_insert(self, event):
        self.heard.append((event.partition, event.tuple["x"][0].as_py()))

    def trigger(self, event):
        self.emit({"k": [event.partition], "smallest": [min(event.content["x"].to_pylist())]})
        self.punctuate()


def test_an_operator_is_told_of_the_events_that_it_has_methods_for():
    operator = Smallest("sliding, count(2), count(1), partitioned", partition_by="k")
    out = operator.process(pa.table({"k": ["a", "b", "a", "a"], "x": [3, 9, 5, 4]}))[0]
    assert out.table.to_pylist() == [
        {"k": "a", "smallest": 3},
        {"k": "b", "smallest": 9},
        {"k": "a", "smallest": 3},
        {"k": "a", "smallest": 4},
    ]
    assert out.marks.tolist() == [1, 2, 3, 4]
    assert operator.heard == [("a", 3), ("b", 9), ("a", 5), ("a", 4)]


def test_an_operator_of_ones_own_goes_on_from_a_snapshot():
    window = "sliding, count(2), count(1), partitioned"
    first, second = (Smallest(window, partition_by="k") for _ in range(2))
    first.process(pa.table({"k": ["a"], "x": [3]}))
    second.restore(first.snapshot())
    assert second.process(pa.table({"k": ["a"], "x": [5]}))[0].table.to_pylist() == [
        {"k": "a", "smallest": 3}
    ]
    assert second.heard == [("a", 3), ("a", 5)]


def test_a_snapshot_fits_an_equal_operator_only():
    first = Smallest("sliding, count(2), count(1), partitioned", partition_by="k")
    first.process(pa.table({"k": ["a"], "x": [3]}))
    state = first.snapshot()
    other = Smallest("sliding, count(3), count(1), partitioned", partition_by="k")
    for damaged, problem in [
        (state, "belongs to another operator"),
        (state[:-1], "truncated"),
        (state[:-1] + bytes([state[-1] ^ 1]), "corrupted"),
        (b"x" + state[1:], "not a windrow snapshot"),
    ]:
        with pytest.raises(StateError, match=problem):
            (other if problem.startswith("belongs") else first).restore(damaged)


def test_the_columns_of_a_stream_stay_as_they_are():
    operator = Smallest("sliding, count(2), count(1), partitioned", partition_by="k")
    operator.process(pa.table({"k": ["a"], "x": [3]}))
    with pytest.raises(QueryError, match="column 'x' was int64 before, and now is double"):
        operator.process(pa.table({"k": ["a"], "x": [3.0]}))
    with pytest.raises(QueryError, match="the columns were k, x before, and now are k"):
        operator.process(pa.table({"k": ["a"]}))


def test_an_operator_whose_class_is_loaded_again_goes_on():
    class Largest(wp.Windowed):
        def trigger(self, event):
            self.emit(event.content.sort_by("x")[-1:])

    operator = Largest("sliding, count(2), count(1)")
    operator.process(pa.table({"x": [3]}))
    del Largest.trigger
    assert operator.process(pa.table({"x": [1]}))[0].table["x"].to_pylist() == [3]


class Broken(wp.Windowed):
    """An operator that raises at a value of its own dislike."""

    def trigger(self, event):
        if event.content["x"].to_pylist()[-1] == 13:
            raise ZeroDivisionError("thirteen")
        self.emit(event.content)


def test_a_method_that_raises_leaves_the_operator_at_the_row_where_it_did():
    operator = Broken("sliding, count(2), count(1)")
    with pytest.raises(ZeroDivisionError) as found:
        operator.process(pa.table({"x": [1, 13, 5]}))
    assert "2 of 3 rows were taken" in found.value.__notes__[0]
    assert operator.window.content()["x"].to_pylist() == [1, 13]
    assert operator.process(pa.table({"x": [7]}))[0].table["x"].to_pylist() == [1, 13, 7]
