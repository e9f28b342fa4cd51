"""Snapshots that somebody else wrote: refused with a sentence, before compiled code sees them."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from bad_input.snapshots.support import bound, in_a_process, parts_of, sealed, stream_of

import windrow as wr
from windrow.engine.snapshot import format as frame

SAVED = wr.query(
    time="ts",
    key="k",
    windows={"w": wr.tumbling(10), "s": wr.sliding(20, every=10)},
    aggregates={
        "n": wr.count(),
        "middle": wr.median("x"),
        "first": wr.first("s"),
        "all": wr.collect("x"),
        "kll": wr.kll_quantile("x", 0.5, k=8),
        "digest": wr.tdigest_quantile("x", 0.5),
    },
)


@cache
def saved():
    """A snapshot with revisions, bad rows, strings and every shape of partial."""
    operator = SAVED.operator(mode="update", lateness=50, on_bad="divert")
    count = 200
    operator.process(
        pa.table(
            {
                "ts": pa.array([*range(count - 1), None], pa.int64()),
                "k": [f"k{i % 5}" for i in range(count)],
                "x": [float(i) for i in range(count)],
                "s": [f"s{i % 9}" for i in range(count)],
            }
        )
    )
    operator.advance(60)
    operator.process(pa.table({"ts": [55], "k": ["k1"], "x": [1.0], "s": ["q"]}))
    operator.advance(61)
    return operator.snapshot()


def forged(**changes):
    return bound(parts_of(saved()) | {name.replace("_", " "): part for name, part in changes.items()}, SAVED)


def with_about(**changes):
    about = json.loads(parts_of(saved())["about"][1])
    for name, value in changes.items():
        (about["engines"][0] if name in about["engines"][0] else about)[name] = value
    return forged(about=("json", json.dumps(about).encode()))


def with_array(name, change):
    name = f"engine 0 {name}"
    dtype, data = parts_of(saved())[name]
    array = change(np.frombuffer(data, dtype).copy())
    return forged(**{name.replace(" ", "_"): (str(array.dtype), array.tobytes())})


def refused(state, message=None):
    """Restoring gives a StateError."""
    with pytest.raises(wr.StateError, match=message):
        SAVED.restore(state)


def test_the_snapshot_of_these_tests_can_be_restored():
    assert SAVED.restore(saved()).snapshot() == saved()
    assert SAVED.restore(forged()).snapshot() == saved()


@pytest.mark.parametrize("size", [0, 1, 8, 55, 56, 57, -1000, -1])
def test_a_truncated_snapshot_is_refused(size):
    refused(saved()[:size], "truncated|not a windrow snapshot")


def test_a_snapshot_with_a_flipped_byte_is_refused():
    for position in {*range(64), *np.linspace(64, len(saved()) - 1, 300).astype(int).tolist()}:
        damaged = bytearray(saved())
        damaged[position] ^= 0xFF
        refused(bytes(damaged))


@pytest.mark.parametrize("state", [b"", b"PAR1" * 100, b"\x80\x04" * 50, "text", None, 5], ids=repr)
def test_a_foreign_snapshot_is_refused(state):
    refused(state, "not a windrow snapshot|a snapshot is bytes")


def test_the_snapshot_of_another_query_is_refused():
    windows, aggregates = dict(SAVED.windows), dict(SAVED.aggregates)
    others = {
        "window 'w' was tumbling 10, is tumbling 11": wr.query(
            time="ts", key="k", windows=windows | {"w": wr.tumbling(11)}, aggregates=aggregates
        ),
        r"aggregate 'n' was count\(\), is sum\(x\)": wr.query(
            time="ts", key="k", windows=windows, aggregates=aggregates | {"n": wr.sum("x")}
        ),
        "the key was 'k', is nothing": wr.query(time="ts", windows=windows, aggregates=aggregates),
    }
    for difference, other in others.items():
        with pytest.raises(wr.StateError, match=difference):
            other.restore(saved())


def test_a_snapshot_of_another_version_is_refused():
    refused(
        sealed(saved()[frame.HEADER.size :], SAVED, version=99),
        "format version 99; this windrow reads versions 3, 5, 6 and 7",
    )


def test_a_body_that_is_no_arrow_stream_is_refused():
    refused(sealed(b"nonsense", SAVED), "invalid Arrow stream")
    refused(sealed(stream_of(pa.table({"a": [1]})), SAVED), "other columns")


ABOUT = {
    "mode": "complete",
    "on_bad": "ignore",
    "max_slices": math.inf,
    "lateness": ["x", None, -5],
    "max_ahead": 7,
    "counters": {"events": -1, "late": 0, "bad": 0},
    "watermark": "noon",
    "highest_time": "noon",
    "threshold": None,
    "mixed_until": "noon",
    "complete_from": {"window w": "noon"},
    "backlog": ["nobody"],
    "windows": ["w"],
    "engines": [],
    "revised": [["w", 0, 10]],
}


@pytest.mark.parametrize("name", ABOUT)
def test_a_forged_statement_is_refused(name):
    refused(with_about(**{name: ABOUT[name]}))


def test_a_statement_that_is_no_json_is_refused():
    refused(forged(about=("json", b"{")))
    refused(forged(about=("json", b"[]")))
    refused(forged(about=("json", b"[" * 100_000)))
    refused(forged(about=("int64", b"")))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("starts", lambda a: a[::-1].copy()),
        ("starts", lambda a: a[:-1]),
        ("starts", lambda a: a.astype(float)),
        ("starts", lambda a: np.where(np.arange(len(a)) == 0, -(2**63), a)),
        ("ends", lambda a: np.where(np.arange(len(a)) == len(a) - 1, 2**63 - 1, a)),
        ("ends", lambda a: a - 20),
        ("store 0 n", lambda a: a[:-1]),
        ("store 0 n", lambda a: a - 100),
        ("store 0 n", lambda a: a.astype(np.float64)),
        ("store 2 f0", lambda a: a + 10**6),
        ("store 2 f1", lambda a: a + 10**6),
        ("store 2 upto", lambda a: np.where(np.arange(len(a)) % 2 == 0, 10**6, a)),
        ("store 3 f2", lambda a: a + 10**6),
        ("store 3 f2", lambda a: a - 10**6),
        ("store 4 c0", lambda a: a + 10**6),
        ("store 4 c1", lambda a: a[:-1]),
        ("revisions 0", lambda a: a[:-1]),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_forged_array_is_refused(name, change):
    refused(with_array(name, change))


@pytest.mark.parametrize(
    ("part", "table"),
    [
        ("keys", pa.table({"k": ["a"] * 5})),
        ("keys", pa.table({"k": [1, 2, 3, 4, 5]})),
        ("keys", pa.table({"k": ["a", "b"]})),
        ("keys", pa.table({"k": list("abcde"), "j": list("abcde")})),
        ("schema", pa.table({"ts": pa.array([], pa.float64()), "k": pa.array([], pa.string())})),
        ("schema", pa.table({"ts": pa.array([], pa.string())})),
        ("engine 0 strings s", pa.table({"value": [1, 2]})),
        ("engine 0 strings s", pa.table({"value": ["z", "b", "b", "d", "e", "f", "g", "h", "i", "j"]})),
        ("late", pa.table({"a": [1]})),
        ("bad", pa.table({"a": [1]})),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_forged_table_is_refused(part, table):
    refused(forged(**{part.replace(" ", "_"): ("table", stream_of(table))}))


@pytest.mark.parametrize(
    "type_", [pa.uuid(), pa.list_(pa.uuid()), pa.struct([("a", pa.uuid())])], ids=["plain", "list", "struct"]
)
def test_an_extension_type_in_the_keys_is_refused(type_):
    array = pa.nulls(5, type_.storage_type if type_ == pa.uuid() else type_)
    array = pa.ExtensionArray.from_storage(type_, array) if type_ == pa.uuid() else array
    refused(forged(engine_0_keys=("table", stream_of(pa.table({"k": array})))))


CRASHES = {
    "values that are not sorted": ("store 2 values", lambda a: a[::-1].copy()),
    "levels of a KLL sketch": ("store 5 f2", lambda a: a * 0 + 10**12),
    "sizes of a t-digest": ("store 6 f3", lambda a: a * 0 + 10**12),
    "negative levels of a KLL sketch": ("store 5 f2", lambda a: a * 0 - 1),
    "negative sizes of a t-digest": ("store 6 f3", lambda a: a * 0 - 1),
}


def refuse_forgeries():
    """Restore each forgery; one that gets through may crash the process, or never come back."""
    for name in CRASHES:
        print(name, flush=True)
        try:
            operator = SAVED.restore(with_array(*CRASHES[name]))
        except wr.StateError:
            continue
        operator.process(pa.table({"ts": [70], "k": ["k1"], "x": [1.0], "s": ["q"]}))
        operator.advance(400)
        raise AssertionError("it was restored")


def test_forgeries_reach_no_compiled_code():
    in_a_process("module.refuse_forgeries()", __file__)
