"""A window says of itself what the engine needs: nobody asks for its class, and one from elsewhere works."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import windrow as wr
from windrow import windows
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.windows.base import Periodic, Window
from windrow.windows.stepping import Stepping, Value

SOURCE = Path(windows.__file__).parents[1]
CLASSES = {cls.__name__ for cls in Window.__subclasses__()} | {"PlacedBand", "PlacedCalendar"}


def asked_by_name(path: Path) -> list[str]:
    """The places in a file where `isinstance` asks for a window by its class."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            named = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            found += [f"{path.relative_to(SOURCE)}:{node.lineno} {name}" for name in named & CLASSES]
    return found


def test_nobody_but_windows_themselves_asks_for_the_class_of_a_window() -> None:
    others = [
        path
        for path in SOURCE.rglob("*.py")
        # The windows of policies have classes of the same names.
        if not {"windows", "policies"} & set(path.relative_to(SOURCE).parts)
    ]
    assert len(others) > 100
    assert [place for path in others for place in asked_by_name(path)] == []


@dataclass(frozen=True)
class EveryThird(Window):
    """From one value that three divides to the next."""

    column: str

    context = "forward context free"
    layout = "ordered"

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def stepping(self, schema: pa.Schema) -> Stepping:
        return Stepping(at_multiples, (Value(self.column),))


def at_multiples(parameters, state, time, value):  # type: ignore[no-untyped-def]
    (opened,) = state
    if value % 3 == 0:
        return (1,), opened, 1, 0
    return (opened,), 0, 0, 0


def test_a_window_with_a_step_needs_its_own_file_only() -> None:
    query = wr.query(time="t", windows={"w": EveryThird("x")}, aggregates={"all": wr.collect("x")})
    rows = query.run(pa.table({"t": range(7), "x": [1, 3, 4, 6, 7, 8, 9]})).to_pylist()
    assert [(row["start"], row["end"], row["all"]) for row in rows] == [
        (1, 3, [3, 4]),
        (3, 6, [6, 7, 8]),
        (6, 7, [9]),
    ]


@dataclass(frozen=True)
class Shifts(Window):
    """Eight of every ten ticks."""

    def place(self, measure: Measure) -> tuple[Periodic, ...]:
        return (Periodic.of(length=8, every=10, offset=0),)


def test_a_window_of_time_needs_its_own_file_only() -> None:
    query = wr.query(time="t", windows={"w": Shifts(), "t": wr.tumbling(5)}, aggregates={"n": wr.count()})
    rows = query.run(pa.table({"t": [0, 7, 8, 9, 10]})).to_pylist()
    assert [(row["start"], row["end"], row["n"]) for row in rows if row["window"] == "w"] == [
        (0, 8, 2),
        (10, 18, 1),
    ]


@dataclass(frozen=True)
class Nowhere(Window):
    layout = "sessions"


def test_a_window_that_nothing_places_is_refused() -> None:
    query = wr.query(time="t", windows={"w": Nowhere()}, aggregates={"n": wr.count()})
    with pytest.raises(QueryError, match="window 'w': Nowhere does not place windows"):
        query.run(pa.table({"t": [1]}))


@dataclass(frozen=True)
class Given(Window):
    """A window that is placed as the test says."""

    placed: object

    def place(self, measure: Measure) -> tuple[Periodic, ...]:
        return self.placed  # type: ignore[return-value]


@pytest.mark.parametrize(
    "placed",
    [
        (Periodic(-5, 0, 1, 0),),
        (Periodic(0, 0, 1, 0),),
        (Periodic(5, 0, 0, 0),),
        (Periodic(5, 0, -1, 0),),
        (Periodic(2.5, 0.0, 1, 0.0),),
        (Periodic(1, 0, 2**40, 0),),
    ],
    ids=str,
)
def test_a_placement_that_makes_no_windows_is_refused(placed: object) -> None:
    query = wr.query(time="t", windows={"w": Given(placed)}, aggregates={"n": wr.count()})
    with pytest.raises(QueryError, match=r"no length or no slide|into 1,099,511,627,776 windows"):
        query.run(pa.table({"t": [1]}))


def test_a_list_of_placements_will_do() -> None:
    query = wr.query(time="t", windows={"w": Given([Periodic(5, 0, 1, 0)])}, aggregates={"n": wr.count()})
    assert query.run(pa.table({"t": [1, 6]}))["n"].to_pylist() == [1, 1]


def test_a_landmark_beyond_all_times_is_refused() -> None:
    query = wr.query(
        time="t", windows={"w": wr.landmark(since=-(2**64), every=3)}, aggregates={"n": wr.count()}
    )
    with pytest.raises(QueryError, match="since -18446744073709551616 is beyond"):
        query.run(pa.table({"t": [1]}))


def test_windows_may_come_from_a_generator() -> None:
    query = wr.query(
        time="t", windows=((name, wr.tumbling(5)) for name in "ab"), aggregates={"n": wr.count()}
    )
    assert list(query.windows) == ["a", "b"]
