"""The examples of the documentation run, and print what it says they print; so does the trader."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("windows.md", 15),
        ("at.md", 3),
        ("expressions.md", 4),
        ("sql.md", 3),
        ("spans.md", 7),
        ("data.md", 5),
        ("aggregates.md", 7),
        ("coming-from.md", 3),
        ("stores.md", 4),
        ("policies.md", 15),
        ("testing.md", 3),
        ("at.md", 6),
        ("index.md", 2),
        ("plots.md", 4),
        ("dashboard.md", 1),
    ],
)
def test_the_python_blocks_of_a_page_print_what_follows_them(name, least):
    page = ROOT / "docs" / name
    text = page.read_text("utf-8")
    namespace: dict[str, object] = {}
    compared = 0
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))  # so that an error names the line of the page
        source = compile("\n" * line + block[1], str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(source, namespace)
        if block[2]:
            assert printed.getvalue() == block[2], f"the example in line {line + 1}"
            compared += 1
    assert compared >= least, "examples show their output"


def test_the_commands_of_the_command_page_exist():
    from windrow.cli.app import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    text = (ROOT / "docs" / "command.md").read_text("utf-8")
    named = set(re.findall(r"^    windrow (\w+)", text, re.MULTILINE)) | set(
        re.findall(r"^\| `(\w+) ", text, re.MULTILINE)
    )
    assert len(named) >= 8
    assert named <= known


def test_the_windows_page_speaks_of_every_window():
    import windrow.windows as windows

    text = (ROOT / "docs" / "windows.md").read_text("utf-8")
    names = [name for name in windows.__all__ if name.islower()]
    assert [name for name in names if f"### {name}\n" not in text] == []


def test_the_cells_of_the_page_for_newcomers_can_be_said():
    """Ours, and those of the libraries that are here: nothing is named that does not exist."""
    page = ROOT / "docs" / "coming-from.md"
    text = page.read_text("utf-8")
    namespace: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in BLOCK.finditer(text):
            exec(block[1], namespace)
    seen = 0
    for row in re.finditer(r"^\| (`.*`) \| `(.*)` \|$", text, re.MULTILINE):
        theirs = (
            re.findall(r"`([^`]*)`", row[1]) if re.match(r"`(df\.(?!with)|df\[|lf\.|pl\.)", row[1]) else []
        )
        for cell in (*theirs, row[2]):
            assert eval(cell, namespace) is not None, cell
        seen += 1 + len(theirs)
    assert seen > 100


def test_the_aggregates_page_has_an_example_of_every_aggregate():
    import windrow.aggregates as aggregates

    text = (ROOT / "docs" / "aggregates.md").read_text("utf-8")
    names = [
        name for name in aggregates.__all__ if name.islower() and name not in ("bloom_filter", "moments")
    ]
    assert [name for name in names if f"wr.{name}(" not in text] == []


def test_the_folders_of_the_architecture_page_name_every_module_outside_the_collections():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tree = text.partition("## Folders\n")[2].partition("\n## ")[0]
    source = ROOT / "src" / "windrow"
    engine = source / "engine"
    kinds = ("aligned", "at", "intake", "ordered", "sessions", "snapshot", "spanning")
    engines = [engine / name for name in kinds]
    folders = [
        source,
        engine,
        *engines,
        source / "inputs",
        source / "outputs",
        source / "policies",
        source / "spark",
    ]
    names = {path.name for folder in folders for path in folder.glob("*.py")} - {"__init__.py"}
    assert [name for name in sorted(names) if f"{name} " not in tree and f"{name}:" not in tree] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_links_to_exist(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.fixture(scope="module")
def trader():
    spec = importlib.util.spec_from_file_location("trader", ROOT / "examples" / "trader.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# minutes     0         5         10        15  17  19   22  24
# price       12        12        11        9   9   9    9   9
#             |-------------------|                                10 minutes, every 5
#                       |-------------------|
#                                 |-------------------|
#                                           |---------|            5 minutes, every 2
#                                               |---------|
def test_the_window_of_the_trader_follows_the_price(trader, capsys):
    minutes, volumes = [0, 5, 10, 15, 17, 19, 22, 24], [10, 30, 10, 10, 20, 10, 10, 10]
    prices = [12.0, 12.0, 11.0, 9.0, 8.0, 9.0, 9.0, 9.0]
    times = pa.array([60 * minute for minute in minutes], pa.timestamp("s"))
    trader.main(pa.table({"ts": times, "stock": ["ACME"] * len(times), "price": prices, "volume": volumes}))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    reports = {(row[1], row[2]): row[-1] for row in lines}
    assert reports["00:05:00", "00:15:00"] == "11.75"  # (12 * 30 + 11 * 10) / 40
    assert reports["00:15:00", "00:22:00"] == "8.50"  # (9 * 10 + 8 * 20 + 9 * 10) / 40


def test_the_window_of_the_trader_is_first_in_first_out_on_a_long_stream(trader):
    rows = trader.REPORTS.run(trader.trades()).to_pylist()
    ends = [row["end"] for row in sorted(rows, key=lambda row: row["start"])]
    assert len(ends) > 12
    assert ends == sorted(ends)
