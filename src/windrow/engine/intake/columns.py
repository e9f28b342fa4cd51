"""Arrow in: batches, times as ticks, values as codes, and codes back to Arrow.

Nothing here loops over rows in Python. A null is never turned into a number: times that are null
are reported, values that are null are left out before a kernel sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import is_text, kind_of, text_type
from windrow.errors import QueryError
from windrow.measure import Measure


def batches(events: Any) -> Iterator[pa.RecordBatch]:
    """Record batches from anything that speaks Arrow, or from an iterator of such things; without views of text."""
    if isinstance(events, pa.RecordBatch):
        yield viewless(events)
    elif isinstance(events, pa.Table):
        parts = events.to_batches()
        if len(parts) == 1:
            yield viewless(parts[0])
        else:  # several calls would cost more than to copy the table
            plain = pa.Table.from_batches(map(viewless, parts), viewless_schema(events.schema))
            yield from plain.combine_chunks().to_batches() or [_empty(plain.schema)]
    elif type(events).__module__.startswith("pyspark."):
        raise QueryError(
            f"this is a Spark {type(events).__name__}: query.on_spark(df) answers the query on Spark, and "
            "df.toArrow() brings its rows here"
        )
    elif isinstance(events, pa.RecordBatchReader):
        yield from _drained(events)
    elif hasattr(events, "__arrow_c_stream__"):
        yield from _drained(_imported(pa.RecordBatchReader.from_stream, events))
    elif hasattr(events, "__arrow_c_array__"):
        yield viewless(_imported(pa.record_batch, events))
    elif isinstance(events, Mapping):
        yield from batches(_from_python(dict(events)))
    elif isinstance(events, list) and events and all(isinstance(row, Mapping) for row in events):
        names = dict.fromkeys(name for row in events for name in row)
        yield from batches(_from_python({n: [row.get(n) for row in events] for n in names}))
    elif hasattr(events, "__iter__") and not isinstance(events, str | bytes):
        for part in events:
            yield from batches(part)
    else:
        raise QueryError(
            f"events of type {type(events).__name__} do not speak Arrow; "
            "give a table or batch of pyarrow, polars, pandas or duckdb, a list of rows or a dict of columns, "
            "or an iterator of them; query.run takes files, too"
        )


def is_whole(events: Any) -> bool:
    """Whether the data can be read at once, and is not a stream of batches."""
    if isinstance(events, pa.Table | pa.RecordBatch | Mapping):
        return True
    if isinstance(events, list):
        return bool(events) and isinstance(events[0], Mapping)
    streams = isinstance(events, pa.RecordBatchReader) or hasattr(events, "__next__")
    return hasattr(events, "__arrow_c_stream__") and not streams


def _from_python(values: Mapping[str, Any]) -> pa.Table:
    """A table of Python's own values, which have one type in each column."""
    try:
        return pa.table(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, OverflowError) as problem:
        raise QueryError(f"rows of Python do not make a table: {problem}") from problem


def _imported(read: Callable[[Any], Any], events: Any) -> Any:
    """Events as Arrow has them; an error if they are a column and not a table."""
    try:
        return read(events)
    except pa.ArrowInvalid as problem:
        raise QueryError(f"events of type {type(events).__name__} are not a table: {problem}") from problem


def _drained(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    seen = False
    for batch in reader:
        seen = True
        yield viewless(batch)
    if not seen:
        yield viewless(_empty(reader.schema))


# The schema of the last batch that had no views: most batches have the schema of the one before.
_viewless_schema = pa.schema([])


def viewless(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose texts are no views, in which Arrow can neither look up nor put rows in another order."""
    global _viewless_schema
    schema = batch.schema
    if _viewless_schema.equals(schema):
        return batch
    if not any(map(_has_views, schema.types)):
        _viewless_schema = schema
        return batch
    arrays = list(map(_without_views, batch.columns))
    return pa.RecordBatch.from_arrays(arrays, schema=viewless_schema(schema))


def viewless_schema(schema: pa.Schema) -> pa.Schema:
    """The schema that `viewless` gives batches of this one."""
    return pa.schema([field.with_type(_viewless_type(field.type)) for field in schema], schema.metadata)


def _viewless_type(kind: pa.DataType) -> pa.DataType:
    if not _has_views(kind):
        return kind
    plain = text_type(kind)
    return pa.dictionary(kind.index_type, plain, kind.ordered) if pa.types.is_dictionary(kind) else plain


def _has_views(type_: pa.DataType) -> bool:
    kind = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _without_views(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_views(kind):
        return array
    if not pa.types.is_dictionary(kind):
        return array.cast(text_type(kind))
    texts = array.dictionary.cast(text_type(kind))
    return pa.DictionaryArray.from_arrays(array.indices, texts, ordered=kind.ordered)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def raw(array: pa.Array, dtype: type) -> np.ndarray:
    """The numbers of an array of 64-bit values, without a copy or a look at its type; no nulls."""
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype)[array.offset : array.offset + len(array)]


def as_array(numbers: np.ndarray, type_: pa.DataType) -> pa.Array:
    """64-bit numbers as an array of a type that has them in memory; much faster than `pa.array`."""
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def rows_of(array: pa.Array, rows: np.ndarray) -> pa.Array:
    """These rows of an array, in this order."""
    if not array.null_count and is_wide(array.type):
        return as_array(raw(array, np.int64)[rows], array.type)
    return array.take(as_array(rows.astype(np.int64, copy=False), pa.int64()))


def is_wide(type_: pa.DataType) -> bool:
    """Whether values are 64-bit integers in memory."""
    return bool(
        pa.types.is_int64(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_date64(type_)
        or pa.types.is_duration(type_)
        or pa.types.is_uint64(type_)
    )


def ticks_of(array: pa.Array, measure: Measure) -> tuple[np.ndarray, np.ndarray | None]:
    """Times as ticks, and a mask of the rows that have none (null or NaN), or None."""
    missing = None
    if array.null_count:
        missing = array.is_null().to_numpy(zero_copy_only=False)
        array = array.fill_null(_zero(array.type))
    if measure.wide:
        return raw(array, np.int64), missing
    if measure.floating:
        values = _doubles(array)
        nan = np.isnan(values)
        if nan.any():
            missing = nan if missing is None else missing | nan
            values = np.where(nan, 0.0, values)
        return values, missing
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    return array.cast(pa.int64()).to_numpy(zero_copy_only=False), missing


def shown(scalar: pa.Scalar) -> Any:
    """A value for a message; a time that Python's calendar cannot express as its number."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return scalar.value


def settled(array: pa.Array) -> pa.Array:
    """The array in a form whose nulls are all marked and that Arrow can look up in."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = _without_views(array)
        return array.cast(text_type(kind)) if array.dictionary.null_count else array
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return array.cast(text_type(kind))
    return array


def takeable(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """These columns of a batch, in forms whose rows Arrow can put in another order."""
    arrays = [settled(batch.column(name)) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def is_readable(type_: pa.DataType) -> bool:
    """Whether an aggregate can read values of this type; all can count them."""
    try:
        kind_of(type_, what="an aggregate")
    except QueryError:
        return False
    return True


def kept_as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of a schema out of a batch, in forms that can be put in another order and behind other batches.

    They are null where the batch has no such column. One that a query does not read may be of another type in
    another batch, and is null there, too.
    """
    arrays = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        array = None if at < 0 else batch.column(at)
        plain = text_type(field.type)
        if array is None or text_type(array.type) != plain:
            array = pa.nulls(batch.num_rows, plain)
        arrays.append(array if array.type == plain else array.cast(plain))
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


class Coder:
    """Values of one column as int64 or float64 codes, and back.

    Strings are coded by their rank in a sorted dictionary, so that codes compare as strings do.
    New strings shift ranks: `encode` then returns how old codes become new ones, and whoever holds
    codes must apply it.
    """

    def __init__(self, column: str, type_: pa.DataType) -> None:
        self.column = column
        self.type = type_
        self.text = is_text(type_)
        self.kept = 0
        self._wide = is_wide(type_)
        self._is_settled = self._wide or pa.types.is_floating(type_)
        self.may_be_oversized = pa.types.is_uint64(type_) or pa.types.is_decimal128(type_)
        self.dictionary: pa.Array = pa.array([], text_type(type_)) if self.text else None

    def oversized(self, array: pa.Array) -> np.ndarray | None:
        """A mask of the rows whose value does not fit in 64 bits with a sign, or None."""
        if not self.may_be_oversized or not len(array):
            return None
        width = self.type.bit_width // 64
        words = np.frombuffer(array.buffers()[1], np.int64)[width * array.offset :][: width * len(array)]
        wrong = words < 0 if width == 1 else words[1::2] != words[0::2] >> 63
        if array.null_count:
            wrong = wrong & array.is_valid().to_numpy(zero_copy_only=False)
        return wrong if wrong.any() else None

    def encode(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Codes, positions of non-null rows (None if all), and old-to-new codes (None if unchanged).

        Rows that are `oversized` must have been taken out.
        """
        if self._is_settled:
            # What a buffer holds where the array is null is anything, but it is a number, and nobody reads it.
            present = _present(array) if array.null_count else None
            return raw(array, np.int64) if self._wide else _doubles(array), present, None
        array = settled(array)
        present = None
        if array.null_count:
            present = _present(array)
        if self.text:
            codes, moved = self._ranks(array)
            return codes, present, moved
        if pa.types.is_decimal(array.type):
            halves = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array)]
            return np.ascontiguousarray(halves[0::2]), present, None
        if array.null_count:
            array = array.fill_null(False if pa.types.is_boolean(array.type) else _zero(array.type))
        if pa.types.is_date32(array.type):
            array = array.cast(pa.int32())
        return array.cast(pa.int64()).to_numpy(zero_copy_only=False), present, None

    def _ranks(self, array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode()
        local = array.dictionary.cast(self.dictionary.type)
        ranks = pc.index_in(local, value_set=self.dictionary)
        moved = None
        if ranks.null_count:
            fresh = local.filter(ranks.is_null()).drop_null().unique()
            together = pa.concat_arrays([self.dictionary, fresh])
            order = pc.sort_indices(together).to_numpy()
            places = np.empty(len(order), np.int64)
            places[order] = np.arange(len(order))
            moved = places[: len(self.dictionary)]
            self.dictionary = together.take(pa.array(order))
            ranks = pc.index_in(local, value_set=self.dictionary)
        table = ranks.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        local_codes = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        codes = table[local_codes] if len(table) else np.zeros(len(array), np.int64)
        return codes, moved

    def prune(self, used: np.ndarray) -> np.ndarray:
        """Forget all codes but `used` (sorted); the map from old codes to new ones."""
        self.dictionary = self.dictionary.take(pa.array(used))
        return np.searchsorted(used, np.arange(int(used[-1]) + 1 if len(used) else 0))

    def decode(self, codes: np.ndarray, defined: np.ndarray | None = None) -> pa.Array:
        """Codes as an array of the column's type, null where not `defined`."""
        mask = None if defined is None or defined.all() else ~defined
        if self.text:
            return self.dictionary.take(pa.array(codes, pa.int64(), mask=mask))
        if pa.types.is_decimal(self.type):
            halves = np.column_stack([codes, codes >> 63])
            valid = None if mask is None else pa.array(~mask).buffers()[1]
            buffers = [valid, pa.py_buffer(np.ascontiguousarray(halves))]
            return pa.Array.from_buffers(self.type, len(codes), buffers)
        if mask is not None:
            codes = np.where(mask, 0, codes)
        if pa.types.is_boolean(self.type):
            return pa.array(codes.astype(bool), mask=mask)
        if pa.types.is_date32(self.type):
            return pa.array(codes.astype(np.int32), mask=mask).cast(self.type)
        return pa.array(codes, mask=mask).cast(self.type)


def _present(array: pa.Array) -> np.ndarray:
    """The rows that are not null."""
    return np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))


def _doubles(array: pa.Array) -> np.ndarray:
    """Floats of any width as float64."""
    return raw(array if pa.types.is_float64(array.type) else array.cast(pa.float64()), np.float64)


def _zero(type_: pa.DataType) -> pa.Scalar:
    if pa.types.is_floating(type_):
        return pa.scalar(0.0, pa.float64()).cast(type_)
    if pa.types.is_date32(type_):
        return pa.scalar(0, pa.int32()).cast(type_)
    return pa.scalar(0, pa.int64()).cast(type_)


def whole(table: pa.Table) -> pa.RecordBatch:
    """A table as one batch."""
    return next(iter(table.combine_chunks().to_batches()), None) or _empty(table.schema)


def as_table(events: Any) -> pa.Table:
    """Events as one table of one chunk."""
    parts = list(batches(events))
    if not parts:
        raise QueryError(
            "a list without rows has no columns: give a table or a batch, which may have no rows"
        )
    return pa.Table.from_batches(parts).combine_chunks()
