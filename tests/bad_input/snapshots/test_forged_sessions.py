"""The same for runs of sessions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from bad_input.snapshots.support import backwards, bound, changed, parts_of

import windrow as wr

QUERY = wr.query(
    time="ts",
    key="k",
    windows={"short": wr.session(2), "long": wr.session(6), "gaps": wr.session("gap"), "at": wr.snapshot()},
    aggregates={"n": wr.count(), "first": wr.first("s"), "all": wr.collect("x"), "middle": wr.median("x")},
)


def happened(*times: int) -> pa.Table:
    number = np.arange(len(times))
    columns = {"ts": pa.array(times, pa.int64()), "k": [f"k{i % 3}" for i in number], "x": number * 1.0}
    return pa.table(columns | {"s": [f"s{i % 9}" for i in number], "gap": 2 + number % 4})


@cache
def parts() -> dict:
    """Of a snapshot with sessions that are emitted, changed since, and open."""
    operator = QUERY.operator(mode="update", lateness=30)
    operator.process(happened(*range(0, 60, 2)))
    operator.advance(50)
    operator.process(happened(21, 33, 34, 70))
    return parts_of(QUERY.restore(operator.snapshot()).snapshot())


def arrays() -> dict[str, np.ndarray]:
    return {
        name.removeprefix("engine 0 "): np.frombuffer(data, dtype)
        for name, (dtype, data) in parts().items()
        if dtype not in ("json", "table")
    }


def refused(name: str, array: np.ndarray) -> None:
    forged = parts() | {f"engine 0 {name}": (str(array.dtype), array.tobytes())}
    with pytest.raises(wr.StateError):
        QUERY.restore(bound(forged, QUERY))


def test_the_snapshot_of_these_tests_can_be_restored_and_has_something_in_every_array():
    whole = bound(parts(), QUERY)
    assert min(map(len, arrays().values())) > 0
    operator = QUERY.restore(whole)
    operator.process(happened(25, 80))
    assert operator.advance(90).num_rows > 0


def test_an_array_that_is_not_of_its_type_or_length_is_refused():
    for name, array in arrays().items():
        refused(name, array.astype(np.int64 if array.dtype != np.int64 else np.float64))
        refused(name, array[:-1])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("slices lane", changed(0, -1)),
        ("slices lane", changed(-1, 10**6)),
        ("slices lane", backwards),
        ("slices first", changed(0, np.iinfo(np.int64).min)),
        ("slices first", changed(0, 10**9)),
        ("slices first", backwards),
        ("slices last", changed(0, -(10**9))),
        ("slices reach", changed(0, -(10**9))),
        ("slices reach", changed(0, np.iinfo(np.int64).max)),
        ("slices flags", changed(0, 255)),
        ("slices flags", changed(0, 6)),
        ("slices revision", changed(0, -1)),
        ("changed lane", changed(0, 10**6)),
        ("changed first", changed(0, 10**9)),
        ("changed revision", changed(0, -1)),
        ("store 0 n", changed(0, 0)),
        ("store 0 n", changed(0, -5)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sessions_that_no_events_lead_to_are_refused(name, change):
    forgery = change(arrays()[name])
    assert forgery.tobytes() != arrays()[name].tobytes(), "nothing was forged"
    refused(name, forgery)
