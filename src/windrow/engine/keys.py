"""Key columns to dense key numbers 0, 1, 2, ... in order of first appearance.

Each column is turned into 64-bit words (a string by an index over its bytes), words are numbered by
an open-addressing table, and the numbers of several columns are joined pairwise by another such
table. Everything happens in a few compiled passes per batch; there is no Python object per key.

Keys are equal as in Spark SQL: null is a key of its own, all NaN are one key, -0.0 is 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from windrow.errors import QueryError

EMPTY = -1
PADDING = 8
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _mix(word):  # type: ignore[no-untyped-def]
    """A 64-bit finalizer (SplitMix64): neighbouring words land far apart."""
    h = np.uint64(word)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True)
def number_words(words, table, known, count, out, fresh):  # type: ignore[no-untyped-def]
    """Number each word; new words get the next numbers, their rows go to `fresh`.

    table: power-of-two array of numbers or EMPTY; known[number] is the word. Stops when the table
    is more than half full and returns (count, rows done), so that the caller can enlarge it.
    """
    mask = np.uint64(table.shape[0] - 1)
    limit = min(table.shape[0] // 2, known.shape[0])
    for i in range(words.shape[0]):
        word = words[i]
        place = _mix(word) & mask
        while True:
            number = table[place]
            if number == EMPTY:
                if count >= limit:
                    return count, i
                table[place] = count
                known[count] = word
                fresh[count] = i
                out[i] = count
                count += 1
                break
            if known[number] == word:
                out[i] = number
                break
            place = (place + np.uint64(1)) & mask
    return count, words.shape[0]


@njit(cache=True, nogil=True)
def refill(table, known, count, null):  # type: ignore[no-untyped-def]
    """Enter all known words into an empty table; the number of null has no word."""
    mask = np.uint64(table.shape[0] - 1)
    for number in range(count):
        if number == null:
            continue
        place = _mix(known[number]) & mask
        while table[place] != EMPTY:
            place = (place + np.uint64(1)) & mask
        table[place] = number


@njit(cache=True, nogil=True)
def hash_strings(offsets, words, out):  # type: ignore[no-untyped-def]
    """A 64-bit hash of each string; words[j] is the eight bytes that begin at byte j."""
    for i in range(out.shape[0]):
        j, end = offsets[i], offsets[i + 1]
        h = np.uint64(end - j) * GOLDEN
        while j + 8 <= end:
            h = (h ^ words[j]) * GOLDEN
            h ^= h >> np.uint64(29)
            j += 8
        if j < end:
            h ^= words[j] & lowest_bytes(end - j)
        out[i] = np.int64(_mix(h))


@njit(cache=True, nogil=True)
def lowest_bytes(count):  # type: ignore[no-untyped-def]
    """A mask of the first `count` < 8 bytes of a word."""
    return (np.uint64(1) << (np.uint64(8) * np.uint64(count))) - np.uint64(1)


@njit(cache=True, nogil=True)
def differing(numbers, rows, offsets, words, known_offsets, known_words, out):  # type: ignore[no-untyped-def]
    """Those of `rows` whose bytes are not the ones known by their number (two strings of one hash)."""
    count = 0
    for row in rows:
        number = numbers[row]
        a, size = offsets[row], offsets[row + 1] - offsets[row]
        c = known_offsets[number]
        same = known_offsets[number + 1] - c == size
        k = 0
        while same and k + 8 <= size:
            same = words[a + k] == known_words[c + k]
            k += 8
        if same and k < size:
            same = (words[a + k] ^ known_words[c + k]) & lowest_bytes(size - k) == 0
        if not same:
            out[count] = row
            count += 1
    return count


@njit(cache=True, nogil=True)
def append_bytes(rows, offsets, data, known_offsets, known_data, count):  # type: ignore[no-untyped-def]
    """Copy the bytes of `rows` behind the `count` strings that are known."""
    end = known_offsets[count]
    for i in range(rows.shape[0]):
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            known_data[end] = data[j]
            end += 1
        known_offsets[count + i + 1] = end


class Words:
    """Numbers 64-bit words in order of first appearance; null may have a number, but no word."""

    def __init__(self) -> None:
        self.count = 0
        self.null = -1
        self._known = np.empty(1024, np.int64)
        self._table = np.full(4096, EMPTY, np.int32)

    def number(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each word, and the rows at which new words first appear."""
        out = np.empty(len(words), np.int32)
        done, rows = 0, []
        while done < len(words):
            fresh = np.empty(len(self._known), np.int64)
            start = self.count
            self.count, passed = number_words(
                words[done:], self._table, self._known, self.count, out[done:], fresh
            )
            rows.append(fresh[start : self.count] + done)
            done += passed
            if done < len(words):
                self._grow()
        return out, np.concatenate(rows) if rows else np.empty(0, np.int64)

    def number_null(self) -> bool:
        """Give null a number, unless it has one; whether it is new."""
        if self.null >= 0:
            return False
        if self.count == len(self._known):
            self._grow()
        self.null = self.count
        self.count += 1
        return True

    def _grow(self) -> None:
        if self.count >= 2**30:
            raise QueryError(f"more than {self.count:,} different keys")
        self._known = np.concatenate([self._known, np.empty_like(self._known)])
        self._table = np.full(4 * len(self._known), EMPTY, np.int32)
        refill(self._table, self._known, self.count, self.null)

    @property
    def nbytes(self) -> int:
        return int(self._known.nbytes + self._table.nbytes)


class Column:
    """Numbers the values of one key column."""

    def __init__(self, field: pa.Field) -> None:
        self._words = Words()
        self._hashed = _is_bytes(field.type) or pa.types.is_decimal128(field.type)
        self._offsets = np.zeros(1025, np.int64)
        self._data = np.empty(1024, np.uint8)

    def number(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row, and the rows at which new values first appear."""
        if not array.null_count:
            return self._number(array) if self._hashed else self._words.number(words_of(array))
        null = array.is_null().to_numpy(zero_copy_only=False)
        if self._words.null < 0:
            # Null gets its number where it first appears, between what comes before and after.
            first = int(np.flatnonzero(null)[0])
            before, fresh = self.number(array.slice(0, first))
            self._words.number_null()
            if self._hashed:
                self._remember(np.zeros(1, np.int64), np.zeros(2, np.int64), np.empty(0, np.uint8))
            after, later = self.number(array.slice(first))
            return np.concatenate([before, after]), np.concatenate([fresh, [first], later + first])
        valid = np.flatnonzero(~null)
        numbers = np.full(len(array), self._words.null, np.int32)
        numbers[valid], fresh = self.number(array.take(pa.array(valid)))
        return numbers, valid[fresh]

    def _number(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Number by hash, then compare the bytes; rows that only share a hash get another word."""
        rows = np.arange(len(array))
        offsets, data = bytes_of(array)
        eights = in_words(data)
        words = np.empty(len(array), np.int64)
        hash_strings(offsets, eights, words)
        numbers = np.empty(len(array), np.int32)
        fresh = []
        while len(rows):
            part, new = self._words.number(words[rows])
            numbers[rows] = part
            self._remember(rows[new], offsets, data)
            fresh.append(rows[new])
            wrong = np.empty(len(rows), np.int64)
            known = in_words(self._data)
            count = differing(numbers, rows, offsets, eights, self._offsets, known, wrong)
            rows = wrong[:count]
            words[rows] += 1
        return numbers, fresh[0] if len(fresh) == 1 else np.concatenate([rows, *fresh])

    def _remember(self, rows: np.ndarray, offsets: np.ndarray, data: np.ndarray) -> None:
        count = self._words.count - len(rows)
        need = self._offsets[count] + int((offsets[rows + 1] - offsets[rows]).sum())
        if self._words.count + 1 > len(self._offsets):
            size = 2 * (self._words.count + 1)
            self._offsets = np.concatenate([self._offsets, np.zeros(size - len(self._offsets), np.int64)])
        if need + PADDING > len(self._data):
            self._data = np.concatenate([self._data, np.empty(2 * need + PADDING, np.uint8)])
        append_bytes(rows, offsets, data, self._offsets, self._data, count)

    @property
    def nbytes(self) -> int:
        return self._words.nbytes + (self._offsets.nbytes + self._data.nbytes if self._hashed else 0)


class Keys:
    """The keys of an operator: numbers for rows, and key columns for numbers.

    `columns` are kept as Arrow arrays, one row per key, in the order of the numbers.
    """

    def __init__(self, schema: pa.Schema) -> None:
        for field in schema:
            _require_hashable(field)
        self.schema = pa.schema([f.with_type(_stored(f.type)) for f in schema])
        self._columns = [Column(f) for f in self.schema]
        self._joins = [Words() for _ in range(len(schema) - 1)]
        self._parts: list[pa.RecordBatch] = []
        self.count = 0 if len(schema) else 1

    def numbers(self, batch: pa.RecordBatch) -> np.ndarray | None:
        """The key number of each row; None where the query has no key."""
        if not len(self.schema):
            return None
        arrays = [normalised(batch.column(f.name), f.type) for f in self.schema]
        numbers, fresh = self._columns[0].number(arrays[0])
        for i in range(1, len(arrays)):
            other, _ = self._columns[i].number(arrays[i])
            pairs = numbers.astype(np.int64) << 32 | other.astype(np.int64)
            numbers, fresh = self._joins[i - 1].number(pairs)
        if len(fresh):
            rows = pa.array(fresh)
            self._parts.append(pa.RecordBatch.from_arrays([a.take(rows) for a in arrays], schema=self.schema))
            self.count += len(fresh)
        return numbers

    @property
    def columns(self) -> list[pa.Array]:
        if not self._parts:
            return [pa.array([], f.type) for f in self.schema]
        if len(self._parts) > 1:
            self._parts = pa.Table.from_batches(self._parts).combine_chunks().to_batches()
        return list(self._parts[0].columns)

    @property
    def nbytes(self) -> int:
        tables = sum(c.nbytes for c in self._columns) + sum(j.nbytes for j in self._joins)
        return tables + sum(p.nbytes for p in self._parts)

    def kept(self, numbers: np.ndarray) -> Keys:
        """The keys with these numbers alone, renumbered in this order."""
        rows = pa.array(numbers)
        return Keys.of(self.schema, [column.take(rows) for column in self.columns])

    @classmethod
    def of(cls, schema: pa.Schema, columns: list[pa.Array]) -> Keys:
        """Keys that are numbered in the order of the rows of `columns`, which must be different."""
        keys = cls(schema)
        if len(schema):
            rows = pa.RecordBatch.from_arrays(columns, schema=keys.schema)
            numbers = keys.numbers(rows)
            if numbers is not None and not np.array_equal(numbers, np.arange(len(rows))):
                # Two strings of one hash are numbered late in a batch, but not one by one.
                keys = cls(schema)
                for i in range(len(rows)):
                    keys.numbers(rows.slice(i, 1))
        return keys


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type in which a key column is kept and handed out."""
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _require_hashable(field: pa.Field) -> None:
    kind = _stored(field.type)
    fine = pa.types.is_primitive(kind) or pa.types.is_decimal128(kind) or _is_bytes(kind)
    if not fine or pa.types.is_interval(kind):
        raise QueryError(f"key column {field.name!r} of type {field.type} cannot be a key")


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def normalised(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """-0.0 as 0.0 and every NaN as the same NaN; other types as they are stored."""
    if array.type != kind:
        array = array.cast(kind)
    if not pa.types.is_floating(kind):
        return array
    values = array.fill_null(pa.scalar(0.0, pa.float64()).cast(kind)).to_numpy(zero_copy_only=False)
    values = values + values.dtype.type(0.0)
    values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, kind, mask=mask)


def words_of(array: pa.Array) -> np.ndarray:
    """A 64-bit word per row, different for different values; the array has no nulls."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    width = kind.bit_width // 8
    raw = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :][: len(array) * width]
    return raw.view(f"i{width}").astype(np.int64)


def in_words(data: np.ndarray) -> np.ndarray:
    """The eight bytes that begin at each byte of `data`, as numbers, without a copy."""
    return np.ndarray((len(data) - PADDING + 1,), np.uint64, data, strides=(1,))


def bytes_of(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and bytes of an array of strings, binaries or decimals, readable a little beyond the end."""
    kind = array.type
    if pa.types.is_decimal128(kind) or pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        offsets = np.arange(len(array) + 1, dtype=np.int64) * width
        return offsets, padded(array.buffers()[1], array.offset * width, len(array) * width)
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)[array.offset :][: len(array) + 1]
    return offsets, padded(buffers[2], 0, int(offsets[-1]))


def padded(buffer: pa.Buffer | None, begin: int, size: int) -> np.ndarray:
    """The bytes of a buffer with some to spare behind them, so that words can be read at the end."""
    data = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)[begin:]
    if len(data) >= size + PADDING:
        return data
    return np.concatenate([data[:size], np.zeros(PADDING, np.uint8)])
