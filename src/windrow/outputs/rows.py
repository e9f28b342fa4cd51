"""Rows of a result as numbers: keys and windows as codes that compare as they do.

keys      a dense number for each row's key, ascending as its columns are; null is the last value of a column
windows   the place of a window's name in the query
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.engine.intake.columns import ticks_of
from windrow.engine.results import WINDOW_TYPE
from windrow.measure import Measure
from windrow.spec import QuerySpec

# More different keys than this are numbered anew before another column is added to them.
MOST = 1 << 31


def key_codes(table: pa.Table, keys: Sequence[str]) -> tuple[np.ndarray, int]:
    """The number of each row's key, and a bound for these numbers."""
    codes, count = np.zeros(len(table), np.int64), 1
    for name in keys:
        column = table.column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode(null_encoding="encode")
        order = pc.sort_indices(column.dictionary).to_numpy()
        ranks = np.empty(len(order) + 1, np.int64)
        ranks[order] = np.arange(len(order))
        ranks[-1] = len(order)  # a null that is not in the dictionary
        codes = codes * len(ranks) + ranks[column.indices.cast(pa.int64()).fill_null(-1).to_numpy()]
        count *= len(ranks)
        if count > min(MOST, 4 * len(table) + 1):
            found, codes = np.unique(codes, return_inverse=True)
            count = len(found)
    return codes, count


def window_codes(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    """For each row the place of its window among `names`."""
    column = table.column("window").unify_dictionaries().combine_chunks()
    places = pc.index_in(column.dictionary, value_set=pa.array(list(names), pa.string()))
    found: np.ndarray = places.to_numpy(zero_copy_only=False)[column.indices.to_numpy()]
    return found.astype(np.int64)


def window_column(codes: np.ndarray, names: Sequence[str]) -> pa.Array:
    """The reverse of `window_codes`."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(list(names))).cast(
        WINDOW_TYPE
    )


def measure_of(query: QuerySpec, table: pa.Table) -> Measure:
    """What the starts and ends of a result are measured by."""
    return Measure(query.time_columns[0], table.schema.field("start").type)


def ticks(table: pa.Table, name: str, measure: Measure) -> np.ndarray:
    """The starts or the ends of all rows."""
    return ticks_of(table.column(name).combine_chunks(), measure)[0]


def in_order(query: QuerySpec, table: pa.Table) -> pa.Table:
    """The rows by key, window (as the query names them), start and end."""
    if len(table) < 2:
        return table
    measure = measure_of(query, table)
    keys, _ = key_codes(table, query.key)
    windows = window_codes(table, list(query.windows))
    order = np.lexsort((ticks(table, "end", measure), ticks(table, "start", measure), windows, keys))
    return table.take(pa.array(order))
