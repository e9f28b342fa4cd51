"""Key numbers are dense, in order of first appearance, and equal exactly where keys are."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from windrow.engine.intake import keys as module
from windrow.engine.intake.keys import Keys, bytes_of, in_words

VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-3, 3),
    pa.uint64(): st.sampled_from([0, 2**64 - 1, 2**63]),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5]),
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, 0.5]),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=20) | st.sampled_from(["", "a", "a\0", "aaaaaaaa", "aaaaaaaab"]),
    pa.large_string(): st.text(max_size=9),
    pa.binary(): st.binary(max_size=17),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(20, 2): st.decimals(-(10**15), 10**15, places=2),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.integers(-3, 3),
    pa.dictionary(pa.int32(), pa.string()): st.sampled_from(["", "x", "y"]),
}


def canonical(value):
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


class Model:
    """A dictionary of tuples."""

    def __init__(self):
        self.known = {}

    def numbers(self, batch):
        rows = zip(*(c.to_pylist() for c in batch.columns), strict=True)
        return [self.known.setdefault(tuple(canonical(v) for v in row), len(self.known)) for row in rows]


@st.composite
def tables(draw, most=3):
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=most))
    names = [f"k{i}" for i in range(len(types))]
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 12))
        columns = []
        for type_ in types:
            values = draw(st.lists(st.none() | VALUES[type_], min_size=size + 2, max_size=size + 2))
            # A slice in the middle, so that offsets are not zero.
            columns.append(pa.array(values, type_).slice(1, size))
        batches.append(pa.RecordBatch.from_arrays(columns, names=names))
    return batches


def check(batches):
    keys, model = Keys(batches[0].schema), Model()
    for batch in batches:
        assert keys.numbers(batch).tolist() == model.numbers(batch)
    assert keys.count == len(model.known)
    stored = zip(*(c.to_pylist() for c in keys.columns), strict=True)
    assert [tuple(canonical(v) for v in row) for row in stored] == list(model.known)
    return keys


@examples(150)
@given(tables())
def test_numbers_are_those_of_a_dictionary(batches):
    check(batches)


@examples(40)
@given(tables())
def test_kept_keys_are_renumbered_in_their_order(batches):
    keys = check(batches)
    kept = keys.kept(np.arange(0, keys.count, 2))
    assert kept.count == len(range(0, keys.count, 2))
    again = pa.RecordBatch.from_arrays(kept.columns, schema=kept.schema)
    if kept.count:
        assert kept.numbers(again).tolist() == list(range(kept.count))


def test_no_keys_can_be_kept():
    for type_ in VALUES:
        keys = Keys(pa.schema([("k", type_)]))
        assert keys.kept(np.empty(0, np.int64)).count == 0


def colliding(count, size):
    """Different byte strings of one length and one 64-bit hash (see `hash_string`)."""
    mask, mixer, golden = 2**64 - 1, int(module.MIXER), int(module.GOLDEN)
    found = []
    for i in range(count):
        if size < 16:
            one, rest = (12345 ^ ((i | size << 56) * mixer & mask)) & mask, i.to_bytes(size - 8, "little")
        else:
            one = i
            h = (one ^ (int(module.LONG) * mixer & mask)) * golden & mask
            rest = (12345 ^ h ^ h >> 32).to_bytes(8, "little") + b"t" * (size - 16)
        found.append(one.to_bytes(8, "little") + rest)
    offsets, data = bytes_of(pa.array(found, pa.binary()))
    words = in_words(data)
    hashes = set()
    for i in range(count):
        where = np.uint64(offsets[i]), np.uint64(size)
        head = [np.uint64(word) for word in module.head_of(words, *where)]
        hashes.add(int(module.hash_string(*head, words, *where)))
    assert len(set(found)) == count
    assert len(hashes) == 1
    return found


@pytest.mark.parametrize("size", [9, 15, 16, 19, 24, 40])
@examples(25)
@given(data=st.data())
def test_strings_of_one_hash_are_told_apart(size, data):
    values = st.none() | st.sampled_from(colliding(30, size)) | st.sampled_from([b"", b"x"])
    lists = st.lists(values, min_size=1, max_size=40)
    batches = [pa.RecordBatch.from_arrays([pa.array(data.draw(lists), pa.binary())], ["k"]) for _ in range(3)]
    keys = check(batches)
    rebuilt = Keys.of(keys.schema, keys.columns)
    assert rebuilt.numbers(batches[-1]).tolist() == keys.numbers(batches[-1]).tolist()


@pytest.mark.parametrize("size", [7, 8, 9, 15, 16, 17, 23, 24, 25])
def test_strings_that_differ_in_one_byte_are_told_apart(size):
    base = bytearray(b"a" * size)
    found = [bytes(base)]
    for position in range(size):
        other = bytearray(base)
        other[position] = 0
        found.append(bytes(other))
    found += [bytes(base[:-1]), bytes(base) + b"\0", b"\0" * size, b"\0" * (size - 1)]
    check([pa.RecordBatch.from_arrays([pa.array(found * 2, pa.binary())], names=["k"])])


def test_many_columns_and_many_keys():
    rng = np.random.default_rng(1)
    columns = [pa.array(rng.integers(0, 3, 20_000)) for _ in range(9)]
    batch = pa.RecordBatch.from_arrays(columns, names=[f"k{i}" for i in range(9)])
    check([batch.slice(0, 7000), batch.slice(7000)])


def test_tables_grow_while_a_batch_is_numbered():
    values = np.random.default_rng(2).permutation(50_000)
    texts = pa.array([f"key {v}" for v in values])
    batch = pa.RecordBatch.from_arrays([texts], names=["k"])
    keys = check([batch, batch])
    assert keys.count == 50_000


def test_long_and_empty_strings():
    values = ["", "x" * 1_000_000, "", "x" * 999_999 + "y", "x" * 1_000_000, "\U0001f600" * 1000, None, ""]
    check([pa.RecordBatch.from_arrays([pa.array(values)], names=["k"])])


def test_a_null_that_comes_late_is_numbered_where_it_first_appears():
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", None, "c", None])], names=["k"])
    assert Keys(batch.schema).numbers(batch).tolist() == [0, 1, 2, 3, 2]
