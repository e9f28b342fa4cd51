"""What imports what.

Modules that import each other, however far around, can only be read together: there are no such knots.
Imports for type checkers and those inside functions count. And a query imports what it needs, and nothing else: that is most of
what a first answer takes.
"""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import windrow


def knots(imports: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which leads to each other one."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            for imported in imports[waiting.pop()] - seen:
                seen.add(imported)
                waiting.append(imported)
        reached[module] = seen
    tied = {m: frozenset(o for o in seen if m in reached[o]) for m, seen in reached.items() if m in seen}
    return [set(knot) for knot in set(tied.values())]


def test_knots_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"d", "e"}, "e": set()}
    assert sorted(map(sorted, knots(imports))) == [["b", "c"], ["d"]]


def test_no_module_is_tied_to_another() -> None:
    graph = grimp.build_graph("windrow")
    assert knots({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}) == []


def kinds_asked_for(source: str) -> set[str]:
    """The kinds of windows that a module imports and asks objects for."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    windows = {
        alias.asname or alias.name
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("windrow.windows") and is_kind(str(node.module), alias.name)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 2]
    asked = [call.args[1] for call in calls if getattr(call.func, "id", "") in ("isinstance", "issubclass")]
    named = {node.id for kinds in asked for node in ast.walk(kinds) if isinstance(node, ast.Name)}
    return named & windows


def is_kind(module: str, name: str) -> bool:
    found = getattr(importlib.import_module(module), name, None)
    return isinstance(found, type) and issubclass(found, windrow.Window) and found is not windrow.Window


def test_questions_for_kinds_of_windows_are_found() -> None:
    source = (
        "from windrow.windows.session import Session as S\nisinstance(w, (int, S))\nisinstance(w, Other)\n"
    )
    assert kinds_asked_for(source) == {"S"}


def test_nothing_but_windows_asks_what_kind_of_window_it_has() -> None:
    """So that a new one touches its own file, and one line of a registry."""
    root = Path(windrow.__file__).parent
    asking = {
        str(path.relative_to(root)): kinds
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in ("windows", "testing")
        and (kinds := kinds_asked_for(path.read_text()))
    }
    assert asking == {}


FIRST_ANSWER = """
import sys

class WithoutPandas:  # PyArrow imports it by itself where it is installed
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, WithoutPandas())
import pyarrow as pa
import windrow as wr
table = pa.table({{"t": [1, 2, 7], "k": ["a", "b", "a"], "x": [1.5, 2.5, 3.5]}})
aggregates = {{"n": wr.count(), "s": wr.sum("x"), "q": wr.quantile("x", 0.5)}}
query = wr.query(time="t", key="k", windows={{"w": {window}}}, aggregates=aggregates)
assert query.run(table)["n"].to_pylist()
print(*sys.modules)
"""
COMPILER = {"numba", "llvmlite", "windrow.compiling.native", "windrow.compiling.checking"}
ARROW = {"pyarrow.acero", "pyarrow.dataset"}
ORDERED, SESSIONS, SPANS = (
    f"windrow.engine.{part}" for part in ("ordered.engine", "sessions.engine", "spanning.spans")
)


@pytest.mark.parametrize(
    ("window", "engines"),
    [
        ("wr.tumbling(5)", set()),
        ("wr.sliding(5, every=1)", set()),
        ("wr.session(2)", {SESSIONS}),
        ("wr.tumbling(rows=2)", {ORDERED}),
    ],
)
def test_a_first_answer_imports_no_compiler_and_no_engine_that_it_does_not_need(window, engines):
    environment = {**os.environ, "WINDROW_TIER": "auto"}
    command = [sys.executable, "-c", FIRST_ANSWER.format(window=window)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert imported & (COMPILER | ARROW | {ORDERED, SESSIONS, SPANS}) == engines
