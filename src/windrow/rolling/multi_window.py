"""Windows of several lengths over one stream: one pass, and one set of chunks for all of them.

What a window of PBA is made of hardly depends on its length. `csa` belongs to the row that it ends with, `lcs` to
the row that it begins with, and both are the same for all windows that end or begin there. Only the whole chunks in
between differ, and these change with each chunk and not with each row:

    chunks     |       |       |       |       |       |    .
    short                              |   lcs |  csa|
    long            | lcs |  between           |  csa|

For each row, `lcs` and `csa` take one combine each, for all lengths together, and each length takes two more;
windows on their own take four. A chunk suits the shortest window. One that is long beyond measure would spend its
time on what lies between: it gets chunks of its own, and shares them with others that are about as long.

Zhang, Akbarinia and Toumani, Efficient incremental computation of aggregations over sliding windows, KDD 2021,
name several queries as future work in section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, require_aggregate
from windrow.errors import QueryError
from windrow.rolling.bulk_loops import slide_several
from windrow.rolling.counts import Counts
from windrow.rolling.held import Held, Rows
from windrow.rolling.rings import ALL, parts
from windrow.rolling.rolling import one_batch
from windrow.stores.base import power_of_two
from windrow.stores.chunks import chunk_of_rows
from windrow.stores.sba import SBA
from windrow.windows.arguments import require_count


class Several:
    """The aggregate of the last rows, for several numbers of rows at once; an answer with each row.

    Parameters
    ----------
    aggregate
        What is computed.
    rows
        How many rows each window has.

    Raises
    ------
    QueryError
        If `rows` is no list of whole numbers from 1 on.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> from windrow.rolling import Several
    >>> windows = Several(wr.max("x"), rows=[2, 3])
    >>> [answers.to_pylist() for answers in windows.process(pa.table({"x": [3, 1, 2, 0]}))]
    [[3, 2, 2], [3, 2]]
    """

    def __init__(self, aggregate: Aggregate, *, rows: Sequence[int]) -> None:
        require_aggregate(aggregate)
        if not isinstance(rows, Iterable):
            raise QueryError(f"rows must be a list of whole numbers, not {rows!r}")
        self._aggregate = aggregate
        self._sizes = [require_count(size, what="rows") for size in rows]
        self._shared = [_Shared(aggregate, group) for group in groups(self._sizes)]

    def process(self, events: Any) -> list[pa.Array]:
        """Take in rows, all or none.

        Parameters
        ----------
        events
            Anything that speaks Arrow, or an iterator of such batches.

        Returns
        -------
        list of pa.Array
            For each number of rows an answer for each window that ends with one of these rows.
        """
        batch = one_batch(events, self._aggregate.columns)
        if batch is None:
            return [pa.nulls(0, pa.null()) for _ in self._sizes]
        for shared in self._shared:
            shared.prepare(batch.schema)
        found: dict[int, pa.Array] = {}
        with ExitStack() as all_or_none:
            for shared in self._shared:
                found |= all_or_none.enter_context(shared.taking_in(batch))
        return [found[size] for size in self._sizes]


def groups(sizes: Sequence[int]) -> list[list[int]]:
    """Sizes that go with the same chunks: no more chunks lie between than a chunk has rows.

    >>> groups([100, 5, 7, 2000, 5])
    [[5, 7], [100, 2000]]
    """
    found: list[list[int]] = []
    for size in sorted(set(sizes)):
        if found and size <= chunk_of_rows(found[-1][0]) ** 2:
            found[-1].append(size)
        else:
            found.append([size])
    return found


class _Shared:
    """Windows of some sizes, smallest first, that share chunks."""

    def __init__(self, aggregate: Aggregate, sizes: list[int]) -> None:
        self._aggregate = aggregate
        self._sizes = sizes
        self._chunk = chunk_of_rows(sizes[0])
        self._ring = power_of_two(sizes[-1] + self._chunk)
        self._turns = power_of_two(sizes[-1] // self._chunk + 2)
        self._held: Held | None = None
        self._counts = [Counts(size) for size in sizes]
        self._seen = 0

    def prepare(self, schema: pa.Schema) -> None:
        """Make room, unless it is there."""
        if self._held is None:
            held = Held(self._aggregate, schema, SBA, 1)
            held.make_room(self._ring + self._chunk + self._turns, window=self._sizes[-1])
            self._held = held

    @contextmanager
    def taking_in(self, batch: pa.RecordBatch) -> Iterator[dict[int, pa.Array]]:
        """The answers of each size; rows are taken in if all goes well until the end."""
        held = self._held
        assert held is not None
        rows = held.read(batch)
        ends = [max(0, self._seen + rows.count - size + 1) for size in self._sizes]
        made = [end - max(0, self._seen - size + 1) for end, size in zip(ends, self._sizes, strict=True)]
        bounds = np.concatenate([[0], np.cumsum(made)])
        with ExitStack() as all_or_none:
            all_or_none.enter_context(held.as_before_on_failure(rows.count, self._parts(rows.count)))
            column = None
            if all(counts.are_known for counts in self._counts):
                guard = held.as_before_on_failure(rows.count, self._parts(rows.count))
                slide = partial(self._slide, held, rows, bounds, lowers=True)
                column, _ = held.answers_of_loop(rows, int(bounds[-1]), guard, slide)
            if column is not None:
                answers = [column[low:high] for low, high in pairwise(bounds.tolist())]
            else:
                out = held.room(int(bounds[-1]))
                if not held.is_count:
                    self._slide(held, rows, bounds, out)
                answers = []
                for k, size in enumerate(self._sizes):
                    counted = self._counts[k].counted(rows.present, rows.count, self._seen, made[k])
                    n = all_or_none.enter_context(counted)
                    part = tuple(column[bounds[k] : bounds[k + 1]] for column in out)
                    answers.append(held.answers(part, n, self._where(size)))
            yield dict(zip(self._sizes, answers, strict=True))
        self._seen += rows.count
        if held.log is not None:
            held.log.forget(held.log.end - self._sizes[-1])

    def _slide(
        self,
        held: Held,
        rows: Rows,
        bounds: np.ndarray,
        out: tuple[np.ndarray, ...],
        *,
        lowers: bool = False,
    ) -> None:
        ring, chunk = self._ring, self._chunk
        kept = held.cells, ring - 1, ring, ring + chunk, self._turns - 1, bounds[:-1].copy(), out
        taken = rows.count, np.array(self._sizes), chunk, self._seen, held.current, held.identity
        held.current = held.run(slide_several, rows, *taken, *kept, lowers=lowers)

    def _parts(self, rows: int) -> Sequence[slice]:
        """The cells that a number of rows write: partials, and lcs of chunks that they fill; each chunk as a whole."""
        chunk, end = self._chunk, self._seen + rows
        filled = range(self._seen // chunk, end // chunk)
        partials = parts(self._ring, [(filled.start * chunk if filled else self._seen, end)])
        wholes = parts(self._turns, [(filled.start, filled.stop)])
        if ALL in (partials, wholes):
            return ALL
        offset = self._ring + chunk
        return [*partials, *(slice(offset + part.start, offset + part.stop) for part in wholes)]

    def _where(self, size: int) -> Any:
        first = max(0, size - 1 - self._seen)
        return lambda i: (first + i, f"the {size} rows that end with row {first + i}")
