"""Checks of the engine against the referee.

check_window(window)               the engine's answer is the oracle's
check_steps(query, steps)          the engine's operator does what the reference operator does
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings

from tests.referee.compare import assert_same
from tests.referee.oracle import answers
from tests.referee.strategies import streams
from tests.referee.stream import ReferenceOperator
from windrow.aggregates import collect, count
from windrow.aggregates import sum as total
from windrow.engine.operator import Operator
from windrow.query import Query, query
from windrow.testing.compare import rows_of
from windrow.windows import Window


def check_window(
    window: Window,
    *,
    time: pa.DataType | None = None,
    columns: Mapping[str, str] | None = None,
    days: bool = False,
    examples: int = 50,
) -> None:
    """Check that the engine's answer for a window is the oracle's, on streams of all kinds.

    `time` is the type of the time column (int64 by default), which is called `time`; `columns` are
    those that the window reads, with a kind of values for each (see `strategies.values`); `days`
    spreads the events over weeks.

    >>> import windrow as wr
    >>> from tests.referee import check_window
    >>> check_window(wr.sliding(5, every=2), examples=5)
    >>> check_window(wr.threshold("hot"), columns={"hot": "bool"}, examples=5)
    """
    type_ = time or pa.int64()
    asked = query(
        time="time",
        key="key0",
        windows={"window": window},
        aggregates={"n": count(), "total": total("x"), "all": collect("x")},
    )

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True, print_blob=False)
    @given(streams(time=type_, key=["int"], columns={**(columns or {}), "x": "int"}, days=days))
    def check(table: pa.Table) -> None:
        assert_same(answers(asked, table), asked.run(table), note=str(window))

    check()


def check_steps(
    query: Query,
    steps: Sequence[tuple[str, Any]],
    *,
    mode: str,
    lateness: Any = 0,
    on_bad: str = "raise",
) -> None:
    """Check that the engine's operator and the reference operator agree after every step.

    `steps` are `("process", table)` and `("advance", watermark)`, as `strategies.schedules` draws
    them; a finish comes last. Rows are compared after each advance, late and bad rows after each batch. The query
    changes with `("add_window", (name, window))`, `("add_aggregate", (name, aggregate))`, `("remove_window", name)`
    and `("remove_aggregate", name)`; `("restart", None)` saves the engine's operator and restores it.

    >>> import windrow as wr, pyarrow as pa
    >>> from tests.referee import check_steps
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    >>> check_steps(q, [("process", pa.table({"ts": [1, 2, 7]})), ("advance", 6)], mode="append")
    """
    reference = ReferenceOperator(query, mode=mode, lateness=lateness, on_bad=on_bad)
    operator = query.operator(mode=mode, lateness=lateness, on_bad=on_bad)
    for number, (step, argument) in enumerate([*steps, ("finish", None)]):
        note = f"step {number} ({step} {argument if step == 'advance' else ''})"
        if step == "restart":
            operator = Operator.restored(operator.query, operator.snapshot())
            continue
        if step in ("add_window", "add_aggregate"):
            start = getattr(operator, step)(*argument)
            getattr(reference, step)(*argument, complete_from=start)
            continue
        if step in ("remove_window", "remove_aggregate"):
            for each in (operator, reference):
                getattr(each, step)(argument)
            continue
        if step == "process":
            reference.process(argument)
            operator.process(argument)
            late, expected = rows_of(operator.late()), rows_of(reference.late())
            assert repr(late) == repr(expected), f"{note}: late rows {late}, expected {expected}"
            bad, wrong = (rows_of(o.bad().select(argument.column_names)) for o in (operator, reference))
            assert repr(bad) == repr(wrong), f"{note}: bad rows {bad}, expected {wrong}"
            continue
        if step == "advance":
            reference.advance(argument)
            emitted = operator.advance(argument)
        else:
            reference.finish()
            emitted = operator.finish()
        assert reference.answers is not None
        assert_same(reference.answers, emitted, note=note)
