"""Pictures show the numbers of the result, in every kind, and refuse what cannot be drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import windrow as wr
from windrow.cli.main import main
from windrow.plots import series
from windrow.plots.figures import KINDS, THEMES
from windrow.plots.series import Series

ROOT = Path(__file__).parents[2]
STORM = str(ROOT / "examples" / "storm.csv")
DAY = 86_400_000_000


def events() -> pa.Table:
    times = [0, 1, 2, 6, 7, 11, 30, 31]
    return pa.table(
        {
            "ts": pa.array([t * DAY for t in times], pa.timestamp("us")),
            "k": ["a", "b", "a", "a", None, "a", "b", "b"],
            "x": [1.0, 2.0, 3.0, 4.0, 5.0, None, 7.0, 8.0],
        }
    )


def query(**windows: Any) -> wr.Query:
    aggregates = {"total": wr.sum("x"), "n": wr.count(), "names": wr.collect("k")}
    chosen = windows or {"5 days": wr.tumbling("5 days"), "10 days": wr.sliding("10 days", every="5 days")}
    return wr.query(time="ts", key="k", windows=chosen, aggregates=aggregates)


def drawn(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """The points of the lines, by colour."""
    return {
        line.get_color(): [(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)]
        for line in axes.lines
    }


def test_lines_are_stairs_over_windows_in_a_row_and_lie_at_the_ends_of_windows_that_overlap() -> None:
    figure = query().plot(events(), kind="lines", aggregate=["total", "n"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["total", "", "n", ""]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["5 days", "10 days", "", ""]
    stairs, ends = (next(iter(drawn(axes).values())) for axes in figure.axes[:2])
    assert stairs[:4] == [(0, 4), (5, 4), (5, 4), (10, 4)]
    known = [point for point in ends if not np.isnan(point[1])]
    assert known == [(5.0, 4.0), (10.0, 8.0), (15.0, 4.0)]


def test_a_line_is_broken_where_windows_are_missing() -> None:
    lines = {line.key: line for line in Series.of(query().run(events()), "5 days", "n").lines("n", "5 days")}
    x, y = lines["b"].stairs()
    assert x.tolist() == [0, 5, 5, 30, 35]
    assert y[:2].tolist() == [1, 1]
    assert np.isnan(y[2])
    x, y = lines["b"].broken()
    assert np.isnan(y).sum() == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_kind_is_drawn_in_every_theme(kind: str, theme: str, tmp_path: Path) -> None:
    figure = query().plot(events(), kind=kind, theme=theme, title="events")
    figure.savefig(tmp_path / "out.png")
    assert (tmp_path / "out.png").stat().st_size > 5_000
    assert (figure.get_facecolor()[3] == 0) == (theme == "auto")


def test_a_heat_map_has_a_box_for_each_window_in_the_row_of_its_key() -> None:
    figure = query().plot(events(), kind="heatmap", window="5 days", aggregate="total")
    (boxes,) = figure.axes[0].collections
    assert sorted(boxes.get_array().tolist()) == [2, 4, 4, 5, 15]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b", "null"]


def test_bars_go_from_start_to_end_and_sessions_take_them_by_themselves() -> None:
    sessions = query(session=wr.session("3 days"))
    figure = sessions.plot(events(), aggregate="n")
    (boxes,) = figure.axes[0].collections
    edges = sorted((path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in boxes.get_paths())
    table = sessions.run(events())
    starts, ends = (np.asarray(table[name].cast(pa.int64())) / DAY for name in ("start", "end"))
    assert edges == sorted(zip(starts, ends, strict=True))


def test_more_keys_than_can_be_told_apart_are_a_heat_map() -> None:
    table = pa.table({"ts": range(100), "k": [f"key {i}" for i in range(50)] * 2})
    q = wr.query(time="ts", key="k", windows={"w": wr.tumbling(50)}, aggregates={"n": wr.count()})
    figure = q.plot(table)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [f"key {i}" for i in range(40)]
    assert "10 more are not shown" in figure.get_supxlabel()


def test_a_changelog_is_drawn_as_it_is_in_the_end() -> None:
    table = events().slice(0, 6)
    q = query(**{"5 days": wr.tumbling("5 days"), "session": wr.session("3 days")})
    op = q.operator(mode="update", lateness="30 days", emit=wr.each_batch())
    log = [op.process(table.slice(i, 1)) for i in range(len(table))]
    both = pa.concat_tables([*log, op.finish()])
    assert {"insert", "update", "delete"} == set(both["op"].to_pylist())

    def drawn(result: pa.Table) -> list[Any]:
        series = Series.of(result, None, "n")
        lines = [line for window in ("5 days", "session") for line in series.lines("n", window)]
        return [(line.key, line.window, line.starts.tolist(), line.values.tolist()) for line in lines]

    assert drawn(both) == drawn(q.run(table))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kind": "line"}, "kind cannot be 'line'; did you mean 'lines'?"),
        ({"theme": "black"}, "theme cannot be 'black'"),
        ({"window": "5 dayz"}, "there is no window '5 dayz'; did you mean '5 days'?"),
        ({"aggregate": "totl"}, "there is no aggregate 'totl'; did you mean 'total'?"),
        ({"aggregate": "names"}, "aggregate 'names' cannot be drawn"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(options: dict[str, str], error: str) -> None:
    with pytest.raises(wr.QueryError, match=error.replace("?", r"\?")):
        query().plot(events(), **options)  # type: ignore[arg-type]


def test_tables_without_windows_are_refused() -> None:
    with pytest.raises(wr.QueryError, match="a result has the columns window, start and end"):
        wr.plot(events())
    with pytest.raises(wr.QueryError, match="there is no window to draw"):
        wr.plot(query().run(events().slice(0, 0)))
    texts = wr.query(time="ts", windows={"w": wr.tumbling("5 days")}, aggregates={"a": wr.collect("k")})
    with pytest.raises(wr.QueryError, match="no aggregate that is a number"):
        texts.plot(events())


def test_times_are_shown_on_the_clocks_of_their_zone() -> None:
    table = events().set_column(0, "ts", events()["ts"].cast(pa.timestamp("us", "America/New_York")))
    q = wr.query(time="ts", windows={"w": wr.tumbling("1 day")}, aggregates={"n": wr.count()})
    (first, *_) = Series.of(q.run(table), None, None).lines("n", "w")
    assert first.starts[0] == -5 / 24


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_the_command_draws_a_query_over_files_or_a_file_of_windows(ending: str, tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text(
        "{time: scheduled, key: origin, windows: {half: {tumbling: 12 hours}}, aggregates: {flights: count}}"
    )
    output = tmp_path / f"out.{ending}"
    assert main(["plot", str(tmp_path / "q.yaml"), STORM, "-o", str(output)]) == 0
    assert output.stat().st_size > 5_000
    assert main(["run", str(tmp_path / "q.yaml"), STORM, "-o", str(tmp_path / "w.parquet")]) == 0
    again = tmp_path / f"again.{ending}"
    assert (
        main(["plot", str(tmp_path / "w.parquet"), "-o", str(again), "--kind", "heatmap", "--theme", "dark"])
        == 0
    )
    assert again.exists()


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text(
        "{time: scheduled, key: origin, windows: {half: {tumbling: 12 hours}}, aggregates: {flights: count}}"
    )
    assert (
        main(["plot", str(tmp_path / "q.yaml"), STORM, "-o", str(tmp_path / "out.html"), "--title", "a <b>"])
        == 0
    )
    text = (tmp_path / "out.html").read_text("utf-8")
    assert "<script src" not in text
    assert '<link rel="stylesheet" href' not in text
    assert "<title>a &lt;b&gt;</title>" in text


def test_the_command_refuses_before_it_computes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.yaml").write_text("{time: ts, windows: {w: {tumbling: 1 hour}}, aggregates: {n: count}}")
    query_file = str(tmp_path / "q.yaml")
    assert main(["plot", query_file, STORM, "-o", "out.gif"]) == 2
    assert "-o takes a file that ends in .png, .svg, .pdf, .html" in capsys.readouterr().err
    for option in ("--kind", "--theme"):
        assert main(["plot", query_file, STORM, "-o", str(tmp_path / "out.html"), option, "nonsense"]) == 2
        assert f"{option[2:]} cannot be 'nonsense'; choose from auto" in capsys.readouterr().err
    assert main(["plot", query_file, "-o", str(tmp_path / "out.png")]) == 2
    assert "takes files of events, too" in capsys.readouterr().err
    assert main(["explain", query_file, "--picture", "plan.png"]) == 2
    assert "--picture takes a file that ends in .svg" in capsys.readouterr().err


MANY = {
    "1m": wr.tumbling("1 minute"),
    "1h": wr.sliding("1 hour", every="1 second"),
    "month": wr.calendar("month", tz="America/New_York"),
    "steps": wr.cumulate("1 hour", step="10 minutes"),
    "short": wr.session("5 minutes"),
    "long": wr.session("30 minutes"),
    "rows": wr.tumbling(rows=100),
    "<&>": wr.threshold("fast"),
    "band": wr.band(date(2024, 1, 1), length="1 hour"),
    "all": wr.landmark(since=date(2024, 1, 1), every="1 day"),
}


@pytest.mark.parametrize("names", [*([name] for name in MANY), [*MANY]], ids=str)
def test_the_plan_of_every_window_is_a_picture(names: list[str], tmp_path: Path) -> None:
    q = wr.query(
        time="ts",
        key="k",
        windows={n: MANY[n] for n in names},
        aggregates={"n": wr.count(), "s": wr.sum("x")},
    )
    root = ET.fromstring(q.explain().picture)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for name in names:
        assert any(text.startswith(name) for text in texts)


def test_slices_say_of_how_many_windows_they_are_a_part() -> None:
    q = wr.query(
        time="ts", windows={"w": wr.tumbling(4), "s": wr.sliding(6, every=3)}, aggregates={"n": wr.count()}
    )
    root = ET.fromstring(q.explain().picture)
    shapes = [
        shape for shape in root.iter("{http://www.w3.org/2000/svg}rect") if shape.get("class") == "slice"
    ]
    titles = ["".join(shape.itertext()) for shape in shapes]
    assert len(titles) == 6
    assert {title.rpartition(", ")[2] for title in titles} == {"a part of 3 windows"}
    assert sorted(title.partition(" ")[0] for title in titles) == ["1", "1", "2", "2", "3", "3"]


def test_queries_operators_and_plans_show_themselves_in_a_notebook() -> None:
    q = query()
    assert q._repr_html_() == q.explain()._repr_html_()
    assert "<svg" in q._repr_html_()
    assert "one pass over &#x27;ts&#x27;, per k" in q._repr_html_()
    op = q.operator()
    op.process(events())
    assert "<td>8</td>" in op._repr_html_()
    assert "<svg" in op._repr_html_()


def test_a_query_that_is_asked_at_points_shows_what_it_is_made_of() -> None:
    q = wr.query(time="ts", windows={"<d>": wr.trailing("1 day")}, aggregates={"n": wr.count()})
    assert "<td>windows</td><td>&lt;d&gt;</td><td>trailing 1 day</td>" in q._repr_html_()


def test_the_command_writes_the_picture_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.yaml").write_text(
        "{time: scheduled, windows: {w: {tumbling: 1 hour}}, aggregates: {n: count}}"
    )
    picture = tmp_path / "plan.svg"
    assert main(["explain", str(tmp_path / "q.yaml"), STORM, "--picture", str(picture)]) == 0
    assert "1 window, 1 aggregate, one pass over 'scheduled'" in capsys.readouterr().out
    ET.fromstring(picture.read_text("utf-8"))


def test_a_result_on_disk_is_drawn_as_it_was(tmp_path: Path) -> None:
    windows = query().run(csv.read_csv(STORM).rename_columns(["ts", "k", "c", "x"]))
    assert len(wr.plot(windows, kind="lines").axes) == 4


def windows_of(**columns: Any) -> pa.Table:
    size = len(columns["n"])
    return pa.table(
        {"window": ["w"] * size, "start": [*range(size)], "end": [*range(1, size + 1)], **columns}
    )


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        (["x²", "10²", "9²"], ["9²", "10²", "x²"]),
        ([b"\xff", b"a", None], ["\\xff", "a", "null"]),
    ],
)
def test_every_key_can_be_written(keys: list[Any], labels: list[str]) -> None:
    table = windows_of(n=[1, 2, 3]).add_column(0, "k", [keys])
    assert sorted(Series.of(table, None, None).labels) == sorted(labels)
    assert [text.get_text() for text in wr.plot(table).legends[0].get_texts()] == Series.of(
        table, None, None
    ).labels


@pytest.mark.parametrize("kind", ["lines", "heatmap", "bars"])
def test_a_window_may_have_none_of_the_keys_that_are_shown(kind: str) -> None:
    keys = [f"k{i}" for i in range(50) for _ in range(2)]
    table = windows_of(n=[*range(101)]).add_column(0, "k", [[*keys, "rare"]])
    table = table.set_column(1, "window", [["a"] * 100 + ["b"]])
    assert len(wr.plot(table, kind=kind).axes) >= 1


def test_windows_that_end_together_are_boxes_from_their_starts() -> None:
    table = pa.table({"window": ["w", "w"], "start": [0, 2], "end": [5, 5], "n": [1, 2]})
    (line,) = Series.of(table, None, None).lines("n", "w")
    assert [edges.tolist() for edges in line.cells()] == [[0, 2], [5, 5]]


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(wr.QueryError, match=r"window=\[\] leaves nothing to draw"):
        wr.plot(windows_of(n=[1]), window=[])
    with pytest.raises(wr.QueryError, match=r"aggregate=\[\] leaves nothing to draw"):
        wr.plot(windows_of(n=[1]), aggregate=[])


def test_the_names_of_kinds_and_themes_are_those_of_what_draws_them() -> None:
    assert tuple(KINDS) == series.KINDS
    assert set(THEMES) == {"auto", *series.THEMES}
