"""Modules that import each other, however far around, can only be read together: there are a few such knots, and no more.

Imports for type checkers and those inside functions count.
"""

from __future__ import annotations

import grimp

# Two or three modules each that are one thing: a window and its tape, an engine and what it emits.
KNOTS = [
    {"engine.emission", "engine.engine", "engine.loads"},
    {"engine.operator", "engine.snapshot", "engine.snapshot.format"},
    {"engine.partials.merging", "engine.partials.scalars"},
    {"engine.spanning.engine", "engine.spanning.parcels"},
]


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


def test_no_module_is_tied_to_another_but_in_the_knots_that_are_known() -> None:
    graph = grimp.build_graph("windrow")
    found = knots({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    short = [{module.removeprefix("windrow.") for module in knot} for knot in found]
    assert [knot for knot in short if not any(knot <= known for known in KNOTS)] == []
