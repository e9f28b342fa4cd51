"""What imports what.

Modules that import each other, however far around, can only be read together: there are no such knots.
Imports for type checkers and those inside functions count. And a query imports what it needs, and nothing else: that is most of
what a first answer takes.
"""

from __future__ import annotations

import os
import subprocess
import sys

import grimp
import pytest


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
