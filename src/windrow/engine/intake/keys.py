"""Key columns to dense key numbers 0, 1, 2, ... in order of first appearance.

Numbers and the like are 64-bit words, looked up directly where they lie close together and else in
an open-addressing table; strings have such a table over their hashes and bytes. The numbers of
several columns are joined pairwise by another table. Everything happens in a few compiled passes per batch; there is no Python object per key.

Keys are equal as in Spark SQL: null is a key of its own, all NaN are one key, -0.0 is 0.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import extent
from windrow.engine.intake.columns import rows_of
from windrow.errors import QueryError

SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}

EMPTY = -1
SMALL_RANGE = 1 << 22
# Keys can be spread over so many buckets.
BUCKETS = 256
# Where an unknown string is met, others are likely: so many rows are numbered before finding goes on.
UNKNOWN_ROWS = 16384
PADDING = 8
# A table of numbers of strings that fits into cache, and is nearly empty as long as they are few.
FIRST_TABLE = 1 << 14
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIXER = np.uint64(0xBF58476D1CE4E5B9)
EIGHT = np.uint64(8)
# The second word of the head of a string that does not fit into a head: more than a length below sixteen can make it.
LONG = np.uint64(255 << 56)


@jit
def _mix(word):  # type: ignore[no-untyped-def]
    """A 64-bit finalizer (SplitMix64): neighbouring words land far apart."""
    h = np.uint64(word)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@jit
def number_words(words, table, known, count, out, fresh):  # type: ignore[no-untyped-def]
    """Number each word by an open-addressing table; the rows of new words go to `fresh`.

    table: a power of two of numbers or EMPTY; known[number] is the word. Stops when a new word finds
    no room and returns (count, rows done), so that the caller can make room and go on.
    """
    mask = np.uint64(table.shape[0] - 1)
    for i in range(words.shape[0]):
        word = words[i]
        place = _mix(word) & mask
        while table[place] != EMPTY and known[table[place]] != word:
            place = (place + np.uint64(1)) & mask
        number = table[place]
        if number == EMPTY:
            if count == known.shape[0]:
                return count, i
            number = count
            table[place] = number
            known[number] = word
            fresh[number] = i
            count += 1
        out[i] = number
    return count, words.shape[0]


@jit
def number_directly(words, base, table, known, count, out, fresh):  # type: ignore[no-untyped-def]
    """As `number_words`, for words in a small range: `table[word - base]` is the number."""
    for i in range(words.shape[0]):
        number = table[words[i] - base]
        if number == EMPTY:
            if count == known.shape[0]:
                return count, i
            number = count
            table[words[i] - base] = number
            known[number] = words[i]
            fresh[number] = i
            count += 1
        out[i] = number
    return count, words.shape[0]


@jit
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


@jit
def lowest_bytes(count):  # type: ignore[no-untyped-def]
    """A mask of the first `count` < 8 bytes of a word."""
    return (np.uint64(1) << (EIGHT * count)) - np.uint64(1)


@jit
def head_of(words, begin, size):  # type: ignore[no-untyped-def]
    """The first eight bytes of a string as a word, zeros behind its end, and the others with their number, or LONG.

    words[j] is the eight bytes that begin at byte j. Here and below places and sizes have no sign, so that nobody asks
    whether they count from the end.
    """
    if size >= np.uint64(16):
        return words[begin], LONG
    rest = lowest_bytes(size & np.uint64(7))
    length = size << np.uint64(56)
    if size >= EIGHT:
        return words[begin], (words[begin + EIGHT] & rest) | length
    return words[begin] & rest, length


@jit
def hash_string(one, two, words, begin, size):  # type: ignore[no-untyped-def]
    """A 64-bit hash, best in its highest bits, of a string whose head is (one, two)."""
    h = (one ^ two * MIXER) * GOLDEN
    h ^= h >> np.uint64(32)
    if two == LONG:
        k = EIGHT
        while k < size:
            word = words[begin + k]
            if size - k < EIGHT:
                word &= lowest_bytes(size - k)
            h = (h ^ word) * GOLDEN
            h ^= h >> np.uint64(32)
            k += EIGHT
    return h * GOLDEN


@jit
def same_tail(words, begin, size, others, place):  # type: ignore[no-untyped-def]
    """Whether a long string equals the one whose size is at `place` and is followed by its bytes, beyond the first eight."""
    if others[place] != size:
        return False
    place += EIGHT
    k = EIGHT
    while k + EIGHT <= size:
        if words[begin + k] != others[place + k]:
            return False
        k += EIGHT
    return k >= size or (words[begin + k] ^ others[place + k]) & lowest_bytes(size - k) == 0


@jit
def find_strings(offsets, words, table, heads, known_words, out):  # type: ignore[no-untyped-def]
    """The numbers of known strings, up to the first unknown one; how many rows that is.

    As `number_strings`, without writing to what it reads, which makes it twice as fast.
    """
    mask = np.uint64(table.shape[0] - 1)
    shift = highest_bits(table.shape[0])
    begin = np.uint64(offsets[0])
    for i in range(out.shape[0]):
        end = np.uint64(offsets[i + 1])
        size = end - begin
        one, two = head_of(words, begin, size)
        place = hash_string(one, two, words, begin, size) >> shift
        while True:
            number = table[place]
            if number == EMPTY:
                return i
            at = np.uint64(number)
            if (heads[at, 0] ^ one) | (heads[at, 1] ^ two) == 0:
                break
            long = two == LONG and heads[at, 0] == one and heads[at, 1] > LONG
            if long and same_tail(words, begin, size, known_words, heads[at, 1] - LONG):
                break
            place = (place + np.uint64(1)) & mask
        out[i] = number
        begin = end
    return out.shape[0]


@jit
def number_strings(  # type: ignore[no-untyped-def]
    offsets, words, data, table, heads, known_words, known_data, count, end, out, fresh
):
    """As `number_words`, for strings; returns (count, end, rows done).

    heads[number] is the head of a known string. Behind the LONG of a long one is a place in `known_data`, where its size
    and all of its bytes are; `end` bytes are in use there. `words` and `known_words` are the same bytes as `data` and
    `known_data`, read eight at a time.
    """
    mask = np.uint64(table.shape[0] - 1)
    shift = highest_bits(table.shape[0])
    for i in range(out.shape[0]):
        begin = np.uint64(offsets[i])
        size = np.uint64(offsets[i + 1]) - begin
        one, two = head_of(words, begin, size)
        place = hash_string(one, two, words, begin, size) >> shift
        while True:
            number = table[place]
            if number == EMPTY:
                break
            at = np.uint64(number)
            if (heads[at, 0] ^ one) | (heads[at, 1] ^ two) == 0:
                break
            long = two == LONG and heads[at, 0] == one and heads[at, 1] > LONG
            if long and same_tail(words, begin, size, known_words, heads[at, 1] - LONG):
                break
            place = (place + np.uint64(1)) & mask
        if number == EMPTY:
            bytes_needed = np.int64(size) + 2 * PADDING if two == LONG else 0
            if count == heads.shape[0] or end + bytes_needed > known_data.shape[0]:
                return count, end, i
            number = np.int32(count)
            table[place] = number
            heads[number, 0] = one
            heads[number, 1] = two
            fresh[number] = i
            if two == LONG:
                heads[number, 1] += np.uint64(end)
                known_words[end] = size
                for k in range(np.int64(size)):
                    known_data[end + PADDING + k] = data[np.int64(begin) + k]
                end += PADDING + np.int64(size)
            count += 1
        out[i] = number
    return count, end, out.shape[0]


@jit
def mix_words(words, hashes):  # type: ignore[no-untyped-def]
    """Hash a word into each of `hashes`."""
    for i in range(hashes.shape[0]):
        hashes[i] = _mix(hashes[i] ^ np.uint64(words[i]))


@jit
def mix_strings(offsets, words, hashes):  # type: ignore[no-untyped-def]
    """As `mix_words`, of strings as `number_strings` takes them."""
    for i in range(hashes.shape[0]):
        begin = np.uint64(offsets[i])
        size = np.uint64(offsets[i + 1]) - begin
        one, two = head_of(words, begin, size)
        hashes[i] = _mix(hashes[i] ^ hash_string(one, two, words, begin, size))


@jit
def fill_buckets(hashes, out, sizes):  # type: ignore[no-untyped-def]
    """The highest byte of each hash, and how often each byte occurs."""
    for i in range(hashes.shape[0]):
        out[i] = hashes[i] >> np.uint64(56)
        sizes[out[i]] += 1


@jit
def highest_bits(size):  # type: ignore[no-untyped-def]
    """How far to shift a 64-bit hash so that it is a place in a table of `size`, a power of two."""
    shift = np.uint64(64)
    while size > 1:
        size >>= 1
        shift -= np.uint64(1)
    return shift


@jit
def refill_strings(table, heads, known_words, count, null):  # type: ignore[no-untyped-def]
    """As `refill`, for strings."""
    mask = np.uint64(table.shape[0] - 1)
    shift = highest_bits(table.shape[0])
    for number in range(count):
        if number == null:
            continue
        one, two = heads[number, 0], heads[number, 1]
        begin = size = np.uint64(0)
        if two > LONG:
            begin, size, two = two - LONG + EIGHT, known_words[two - LONG], LONG
        place = hash_string(one, two, known_words, begin, size) >> shift
        while table[place] != EMPTY:
            place = (place + np.uint64(1)) & mask
        table[place] = number


class Words:
    """Numbers 64-bit words in order of first appearance; null may have a number, but no word.

    As long as all words lie in a small range, they are looked up directly and not hashed.
    """

    def __init__(self) -> None:
        self.count = 0
        self.null = -1
        self._known = np.empty(1024, np.int64)
        self._table = np.full(0, EMPTY, np.int32)
        self._direct: np.ndarray | None = np.full(0, EMPTY, np.int32)
        self._base = 0

    def number(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each word, and the rows at which new words first appear."""
        out = np.empty(len(words), np.int32)
        direct = len(words) > 0 and self._reach(words)
        done, rows = 0, []
        while done < len(words):
            fresh = np.empty(len(self._known), np.int64)
            start = self.count
            state = (self._known, self.count, out[done:], fresh)
            if direct:
                self.count, passed = number_directly(words[done:], self._base, self._direct, *state)
            else:
                self.count, passed = number_words(words[done:], self._table, *state)
            if self.count > start:
                rows.append(fresh[start : self.count] + done)
            done += passed
            if done < len(words):
                self._grow()
        return out, np.concatenate(rows) if rows else np.empty(0, np.int64)

    def _reach(self, words: np.ndarray) -> bool:
        """Make the direct table reach all words, if they lie near enough to each other."""
        if self._direct is None:
            return False
        low, high = extent(words)
        size = len(self._direct)
        if size and low >= self._base and high < self._base + size:
            return True
        if size:
            low, high = min(low, self._base), max(high, self._base + size - 1)
        if high - low >= SMALL_RANGE:
            self._direct = None
            self._rehash(len(self._table))
            return False
        # Some room on both sides, so that a slowly growing range is not copied for each batch.
        room = (high - low) // 4
        base, last = max(low - room, -(2**63)), min(high + room, 2**63 - 1)
        table = np.full(last - base + 1, EMPTY, np.int32)
        table[self._base - base :][:size] = self._direct
        self._base, self._direct = base, table
        return True

    def number_null(self) -> None:
        """Give null a number."""
        if self.count == len(self._known):
            self._grow()
        self.null = self.count
        self.count += 1

    def _grow(self) -> None:
        _require_fewer(self.count)
        self._known = np.concatenate([self._known, np.empty_like(self._known)])
        if self._direct is None:
            self._rehash(4 * len(self._known))

    def _rehash(self, size: int) -> None:
        size = max(size, 4 * len(self._known))
        self._table = np.full(size, EMPTY, np.int32)
        refill(self._table, self._known, self.count, self.null)

    @property
    def nbytes(self) -> int:
        direct = 0 if self._direct is None else self._direct.nbytes
        return int(self._known.nbytes + self._table.nbytes + direct)


class Strings:
    """Numbers strings in order of first appearance; the bytes of long ones are kept to tell them apart."""

    def __init__(self) -> None:
        self.count = 0
        self.null = -1
        self._heads = np.zeros((1024, 2), np.uint64)
        self._table = np.full(FIRST_TABLE, EMPTY, np.int32)
        self._data = np.zeros(1024, np.uint8)
        # Bytes in use; a place is never 0.
        self._end = PADDING

    def number(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """The number of each string, and the rows at which new strings first appear."""
        offsets, data = bytes_of(array)
        out = np.empty(len(array), np.int32)
        done, rows = 0, [np.empty(0, np.int64)]
        words = in_words(data)
        while True:
            known = (self._table, self._heads, in_words(self._data))
            done += find_strings(offsets[done:], words, *known, out[done:])
            if done == len(array):
                return out, np.concatenate(rows)
            some = slice(done, done + UNKNOWN_ROWS)
            fresh = np.empty(len(self._heads), np.int64)
            start = self.count
            room = (self._data, self.count, self._end)
            self.count, self._end, passed = number_strings(
                offsets[done:], words, data, *known, *room, out[some], fresh
            )
            rows.append(fresh[start : self.count] + done)
            done += passed
            if passed < len(out[some]):
                self._grow(int(offsets[done + 1] - offsets[done]))

    def number_null(self) -> None:
        """Give null a number."""
        if self.count == len(self._heads):
            self._grow(0)
        self.null = self.count
        self.count += 1

    def _grow(self, size: int) -> None:
        """Make room for more strings, and for one of `size` bytes."""
        need = self._end + size + 2 * PADDING
        if need > len(self._data):
            self._data = np.concatenate([self._data, np.zeros(2 * need - len(self._data), np.uint8)])
        if self.count == len(self._heads):
            _require_fewer(self.count)
            self._heads = np.concatenate([self._heads, self._heads[: self.count // 4]])
            if 2 * len(self._heads) > len(self._table):
                self._table = np.full(2 * len(self._table), EMPTY, np.int32)
                refill_strings(self._table, self._heads, in_words(self._data), self.count, self.null)

    @property
    def nbytes(self) -> int:
        return int(self._heads.nbytes + self._table.nbytes + self._data.nbytes)


def _require_fewer(count: int) -> None:
    if count >= 2**30:
        raise QueryError(f"more than {count:,} different keys")


class Column:
    """Numbers the values of one key column."""

    def __init__(self, field: pa.Field) -> None:
        self._index: Words | Strings = Strings() if _has_bytes(field.type) else Words()

    def number(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row, and the rows at which new values first appear."""
        if not array.null_count:
            return self._index.number(array if isinstance(self._index, Strings) else words_of(array))
        null = array.is_null().to_numpy(zero_copy_only=False)
        if self._index.null < 0:
            # Null gets its number where it first appears, between what comes before and after.
            first = int(np.flatnonzero(null)[0])
            before, fresh = self.number(array.slice(0, first))
            self._index.number_null()
            after, later = self.number(array.slice(first))
            return np.concatenate([before, after]), np.concatenate([fresh, [first], later + first])
        valid = np.flatnonzero(~null)
        numbers = np.full(len(array), self._index.null, np.int32)
        numbers[valid], fresh = self.number(array.take(pa.array(valid)))
        return numbers, valid[fresh]

    @property
    def nbytes(self) -> int:
        return self._index.nbytes


class Keys:
    """The keys of an operator: numbers for rows, and key columns for numbers.

    `columns` are kept as Arrow arrays, one row per key, in the order of the numbers.
    """

    def __init__(self, schema: pa.Schema) -> None:
        for field in schema:
            _require_hashable(field)
        self.schema = pa.schema([f.with_type(_stored(f.type)) for f in schema])
        self._kinds = [(f.name, f.type) for f in self.schema]
        self._columns = [Column(f) for f in self.schema]
        self._joins = [Words() for _ in range(len(schema) - 1)]
        self._parts: list[pa.RecordBatch] = []
        self.count = 0 if len(schema) else 1

    def numbers(self, batch: pa.RecordBatch) -> np.ndarray | None:
        """The key number of each row; None where the query has no key."""
        if not len(self.schema):
            return None
        arrays = [normalised(batch.column(name), kind) for name, kind in self._kinds]
        numbers, fresh = self._columns[0].number(arrays[0])
        for i in range(1, len(arrays)):
            other, _ = self._columns[i].number(arrays[i])
            pairs = numbers.astype(np.int64) << 32 | other.astype(np.int64)
            numbers, fresh = self._joins[i - 1].number(pairs)
        if len(fresh):
            parts = [rows_of(array, fresh) for array in arrays]
            self._parts.append(pa.RecordBatch.from_arrays(parts, schema=self.schema))
            self.count += len(fresh)
        return numbers

    def find_buckets(self, batch: pa.RecordBatch, out: np.ndarray) -> np.ndarray:
        """Spread the keys of a batch over buckets, a byte for each row in `out`; how many rows each bucket has.

        Equal keys share a bucket, in all batches. Nothing is numbered, and several threads may ask at once.
        """
        hashes = np.zeros(batch.num_rows, np.uint64)
        for f in self.schema:
            array = normalised(batch.column(f.name), f.type)
            if not array.null_count:
                _mix_in(array, hashes)
                continue
            valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
            some = hashes[valid]
            _mix_in(array.drop_null(), some)
            hashes[valid] = some
        sizes = np.zeros(BUCKETS, np.int64)
        fill_buckets(hashes, out, sizes)
        return sizes

    @property
    def columns(self) -> list[pa.Array]:
        if not self._parts:
            return [pa.array([], f.type) for f in self.schema]
        if len(self._parts) > 1:
            self._parts = pa.Table.from_batches(self._parts).combine_chunks().to_batches()
        return list(self._parts[0].columns)

    def taken(self, numbers: np.ndarray) -> list[pa.Array]:
        """The key columns of these numbers."""
        return [rows_of(column, numbers) for column in self.columns]

    @property
    def nbytes(self) -> int:
        tables = sum(c.nbytes for c in self._columns) + sum(j.nbytes for j in self._joins)
        return tables + sum(p.nbytes for p in self._parts)

    def kept(self, numbers: np.ndarray) -> Keys:
        """The keys with these numbers alone, renumbered in this order."""
        return Keys.of(self.schema, self.taken(numbers))

    def keep(self, numbers: np.ndarray) -> None:
        """Become what `kept` gives, for all who share these keys."""
        vars(self).update(vars(self.kept(numbers)))

    @classmethod
    def of(cls, schema: pa.Schema, columns: list[pa.Array]) -> Keys:
        """Keys that are numbered in the order of the rows of `columns`, which must be different."""
        keys = cls(schema)
        if len(schema):
            rows = pa.RecordBatch.from_arrays(columns, schema=keys.schema)
            keys.numbers(rows)
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


def _has_bytes(kind: pa.DataType) -> bool:
    """Whether values are told apart by their bytes, and not as 64-bit words."""
    return bool(_is_bytes(kind) or pa.types.is_decimal128(kind))


def _mix_in(array: pa.Array, hashes: np.ndarray) -> None:
    """Hash the values of a key column, which has no nulls, into these hashes."""
    if not len(array):
        return
    if _has_bytes(array.type):
        offsets, data = bytes_of(array)
        mix_strings(offsets, in_words(data), hashes)
    else:
        mix_words(words_of(array), hashes)


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
    # A copy, so that the loops over words are compiled for arrays that can be written alone.
    data = np.frombuffer(array.buffers()[1], SIGNED[width])
    return data[array.offset : array.offset + len(array)].astype(np.int64)


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
