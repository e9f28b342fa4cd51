"""Windows as columns: a row for each key and end, and in it what each window says that ends there.

window  end  n              end  1m_n  1h_n
1m       60  2              60      2
1h       60  5      ->              5
1m      120  1              120     1  null
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.outputs.rows import key_codes, measure_of, ticks, window_codes
from windrow.spec import QuerySpec


def wide_names(query: QuerySpec) -> dict[str, tuple[str, str]]:
    """The columns that windows become: WINDOW_AGGREGATE; an error if two have one name."""
    names: dict[str, tuple[str, str]] = {}
    for window in query.windows:
        for aggregate in (*query.aggregates, *query.select):
            name = f"{window}_{aggregate}"
            if name in names or name in (*query.key, "end"):
                raise QueryError(
                    f"wide=True would make two columns {name!r}: call a window or an aggregate otherwise"
                )
            names[name] = window, aggregate
    return names


def widened(query: QuerySpec, table: pa.Table) -> pa.Table:
    """One row for each key and end, in this order."""
    names = wide_names(query)
    measure = measure_of(query, table)
    keys, _ = key_codes(table, query.key)
    windows, ends = window_codes(table, list(query.windows)), ticks(table, "end", measure)
    order = np.lexsort((ends, keys))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (np.diff(keys[order]) != 0) | (np.diff(ends[order]) != 0)
    row = np.empty(len(order), np.int64)
    row[order] = np.cumsum(fresh) - 1
    firsts = pa.array(order[fresh])
    columns = {name: table[name].take(firsts) for name in (*query.key, "end")}
    source = {}
    for number, window in enumerate(query.windows):
        here = np.flatnonzero(windows == number)
        source[window] = np.full(len(firsts), -1)
        source[window][row[here]] = here
        if np.count_nonzero(source[window] >= 0) < len(here):
            raise QueryError(
                f"window {window!r} ({query.windows[window]}) has several windows of a key that end at once: "
                "they cannot be one row, leave out wide=True"
            )
    for name, (window, aggregate) in names.items():
        columns[name] = table[aggregate].take(pa.array(source[window], mask=source[window] < 0))
    return pa.table(columns)
