"""Join: each row that comes meets the rows of the other side's window.

    left     a   b       c            a row is first inserted into its own window; then it is matched, oldest first, with
    right          x  y     z         what the other window holds: x with a, b; y with a, b; c with x, y; z with a, b, c

Windows are sliding, with the trigger count(1). `on` names columns that must be equal, found by hash; `match`
is any predicate over pairs, computed for many of them at once. Without `on`, every pair is tried. A window
of count(0) keeps nothing: its rows only look up (a one-sided join). With partitioned windows, rows meet
those of their own partition.

`how` is "inner", "left", "right" or "full". In an outer join, a row that leaves its window without ever
having had a match is given out too, with nulls for the other side; with `unmatched="apart"` it goes to a
port of its own, as it came.

    inputs    oblivious
    outputs   matches: generating, a punctuation behind the matches of each row; left, right: free

(Gedik 2013, section 6.1.2, and Listing 1.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.engine.columns import settled, whole
from windrow.engine.keys import Keys
from windrow.engine.snapshot.parts import stream_of, table_of
from windrow.errors import QueryError
from windrow.policies.clock import Clock
from windrow.policies.operators.base import Operator
from windrow.policies.operators.chains import FEW
from windrow.policies.operators.interleaved import take_together
from windrow.policies.operators.rows import taken
from windrow.policies.operators.side import OUTER, SIDES, Side
from windrow.policies.ports import FREE, GENERATING, OBLIVIOUS, Input, Model, Output, Punctuated
from windrow.policies.spec import Count, Sliding, Tumbling
from windrow.policies.window import Window
from windrow.wording import near

Predicate = Callable[[pa.Table, pa.Table], Any]
Probe = Callable[[np.ndarray, int, int], tuple[int, np.ndarray, np.ndarray]]
Pairs = str | Sequence[str | tuple[str, str]]

# So many pairs are looked at together.
PAIRS_AT_ONCE = 1 << 18


def _refusal(window: Tumbling | Sliding) -> str | None:
    if isinstance(window, Tumbling):
        return "the windows of a join are sliding"
    if window.trigger != Count(1):
        return "each row is matched when it comes, so the trigger is count(1)"
    return None


class Join(Operator):
    """See the module.

    >>> import pyarrow as pa
    >>> from windrow import policies as wp
    >>> join = wp.Join("sliding, count(10), count(1)", "sliding, count(0), count(1)", on="id")
    >>> _ = join.process(pa.table({"id": [1, 2, 2], "name": ["a", "b", "c"]}), port=0)
    >>> join.process(pa.table({"id": [2, 3]}), port=1)[0].table.to_pylist()
    [{'id': 2, 'name': 'b', 'id_right': 2}, {'id': 2, 'name': 'c', 'id_right': 2}]
    """

    _internals: ClassVar[tuple[str, ...]] = (
        *("how", "on", "suffix", "clock", "apart", "compared"),
        *("_match", "_lock", "_keys", "_sides", "_waiting"),
    )

    def __init__(
        self,
        left: Sliding | str,
        right: Sliding | str,
        *,
        on: Pairs = (),
        match: Predicate | None = None,
        how: str = "inner",
        unmatched: str = "together",
        partition_by: Pairs = (),
        clock: Clock | None = None,
        suffix: str = "_right",
    ) -> None:
        if how not in OUTER:
            raise QueryError(f"how is {', '.join(map(repr, OUTER))}, not {how!r}{near(how, OUTER)}")
        if unmatched not in ("together", "apart"):
            raise QueryError(f"unmatched is 'together' or 'apart', not {unmatched!r}")
        if match is not None and not callable(match):
            raise QueryError(f"match is a function of two tables of pairs, not {match!r}")
        self.how, self.on, self.suffix = how, _pairs(on), suffix
        self._match, self.clock = match, clock
        self.apart = unmatched == "apart"
        ports = tuple(Output(SIDES[side], FREE) for side in OUTER[how] if self.apart)
        inputs = tuple(Input(name, OBLIVIOUS, _refusal) for name in SIDES)
        self.model = Model(inputs, (Output("matches", GENERATING), *ports))
        by = _pairs(partition_by)
        super().__init__((left, right), ([a for a, _ in by], [b for _, b in by]))
        if self.windows[0].partitioned != self.windows[1].partitioned:  # type: ignore[union-attr]
            raise QueryError(
                f"both windows of a join are partitioned, or none: '{self.windows[0]}' and '{self.windows[1]}'"
            )
        self.compared = (*by, *self.on)
        self._lock = threading.RLock()
        self._keys: Keys | None = None
        self._sides = tuple(Side(self, place) for place in (0, 1))
        self._waiting: list[tuple[int, pa.Table]] = []

    def described(self) -> str:
        """See `Operator`."""
        return repr((super().described(), self.on, self.how, self.apart, self.suffix))

    # -- the stream ------------------------------------------------------------------------------

    def process(self, rows: Any, port: int = 0) -> list[Punctuated]:
        """See `Operator`; port 0 is the left side, port 1 the right one."""
        if port not in (0, 1):
            raise QueryError(f"a join has the inputs 0 (left) and 1 (right), not {port!r}")
        table = Punctuated.of(rows).table
        side, other = self._sides[port], self._sides[1 - port]
        with self._locked():
            side.fit(table.schema.remove_metadata())
            if self._schemas[0] is None and side.schema is not None and other.schema is not None:
                self._schemas[0] = self.with_nulls(port, side.schema.empty_table()).schema
            self._flush_waiting()
            if table.num_rows:
                self._take(whole(table), side, other)
        return self.poll()

    def process_together(
        self, rows: tuple[pa.Table, pa.Table], places: tuple[np.ndarray, np.ndarray]
    ) -> list[Punctuated]:
        """As `process`, of rows of both sides; `places` say where those of each stand in one order."""
        with self._locked():
            for side, table in zip(self._sides, rows, strict=True):
                side.fit(table.schema.remove_metadata())
            take_together(self, self._sides, tuple(map(whole, rows)), places)
            self._tidy()
        return self.poll()

    def _take(self, batch: pa.RecordBatch, side: Side, other: Side) -> None:
        """Match a batch with what the other side holds, which stays as it is meanwhile, and let it in."""
        if other.window is not None:
            other.left(other.window.advance())
        keys = self.numbers(batch, side)
        mine, theirs = self.matches(batch, keys, side, other, other.chains.probe)
        alone, when, late = side.insert(batch, keys, mine)
        other.chains.matched[theirs] = True
        self._give(batch, side, other, mine, theirs, alone, when, late)
        self._tidy()

    def numbers(self, batch: pa.RecordBatch, side: Side) -> np.ndarray:
        """The number of each row's key; -1 where a column that must be equal is null, which is equal to
        nothing.
        """
        if not self.compared:
            return np.zeros(batch.num_rows, np.int64)
        columns = [settled(batch.column(pair[side.place])) for pair in self.compared]
        names = [f"c{i}" for i in range(len(columns))]
        if self._keys is None:
            self._keys = Keys(pa.schema([pa.field(n, c.type) for n, c in zip(names, columns, strict=True)]))
        renamed = pa.RecordBatch.from_arrays(columns, names=names)
        numbers = self._keys.numbers(renamed)
        assert numbers is not None
        found = numbers.astype(np.int64)
        for column in columns:
            if column.null_count:
                found[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return found

    def matches(
        self, batch: pa.RecordBatch, keys: np.ndarray, side: Side, other: Side, probe: Probe
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a row of the batch and a row of the other side's log, in order; `probe` finds them."""
        if other.window is None or not other.keeps or not len(keys):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        other.chains.know(self.known)
        found: list[tuple[np.ndarray, np.ndarray]] = []
        begin = 0
        while begin < len(keys):
            begin, mine, theirs = probe(keys, begin, PAIRS_AT_ONCE)
            if self._match is not None and len(mine):
                kept = self._agreed(batch, mine, theirs, side, other)
                mine, theirs = mine[kept], theirs[kept]
            found.append((mine, theirs))
        return np.concatenate([m for m, _ in found]), np.concatenate([t for _, t in found])

    @property
    def known(self) -> int:
        return 1 if self._keys is None else self._keys.count

    def _agreed(
        self, batch: pa.RecordBatch, mine: np.ndarray, theirs: np.ndarray, side: Side, other: Side
    ) -> np.ndarray:
        assert self._match is not None
        mask = self._match(*self.pairs(batch, mine, theirs, side, other))
        if isinstance(mask, (pa.Array, pa.ChunkedArray)):
            mask = mask.fill_null(False).to_numpy(zero_copy_only=False)
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.shape != mine.shape:
            raise QueryError(
                f"match must give true or false for each of {len(mine):,} pairs, "
                f"not {mask.dtype} in the shape {mask.shape}"
            )
        return mask

    # -- output ----------------------------------------------------------------------------------

    def _give(
        self,
        batch: pa.RecordBatch,
        side: Side,
        other: Side,
        mine: np.ndarray,
        theirs: np.ndarray,
        alone: pa.Table,
        when: np.ndarray,
        late: bool,
    ) -> None:
        """Give out matches, and rows `alone`, in the order of the rows of the batch that caused them.

        A row that leaves to make space does so before the row that comes is matched, and one that is not
        kept at all after that (`late`).
        """
        if alone.num_rows and self.apart:
            self.lone(side, alone)
            alone, when = alone.slice(0, 0), when[:0]
        elif alone.num_rows and other.schema is None:
            self._waiting.append((side.place, alone))
            alone, when = alone.slice(0, 0), when[:0]
        if not len(mine) and not alone.num_rows:
            return
        matches = self.side_by_side(*self.pairs(batch, mine, theirs, side, other))
        ends = np.flatnonzero(np.diff(mine, append=-1)) + 1
        if alone.num_rows:
            together = pa.concat_tables([matches, self.with_nulls(side.place, alone)])
            order = np.argsort(np.concatenate([2 * mine + 1, 2 * when + 2 * late]), kind="stable")
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            matches, ends = together.take(pa.array(order)), place[ends - 1] + 1
        self.emit(matches, marks=ends)

    def lone(self, side: Side, rows: pa.Table) -> None:
        """Give out rows that left without a match, on their own."""
        if self.apart:
            self.emit(rows, port=1 + OUTER[self.how].index(side.place))
        elif self._sides[1 - side.place].schema is not None:
            self.emit(self.with_nulls(side.place, rows))
        else:
            self._waiting.append((side.place, rows))

    def _flush_waiting(self) -> None:
        """Give out rows that have waited for the types of the other side, once these are known."""
        if any(side.schema is None for side in self._sides):
            return
        waiting, self._waiting = self._waiting, []
        for place, rows in waiting:
            self.emit(self.with_nulls(place, rows))

    def pairs(
        self, batch: pa.RecordBatch, mine: np.ndarray, theirs: np.ndarray, side: Side, other: Side
    ) -> tuple[pa.Table, pa.Table]:
        """Rows of a batch of one side, and rows of the other one's log; the left ones first."""
        assert other.window is not None
        own, others = pa.Table.from_batches([batch]).take(pa.array(mine)), taken(other.window.log, theirs)
        return (own, others) if side.place == 0 else (others, own)

    def side_by_side(self, left: pa.Table, right: pa.Table) -> pa.Table:
        names = [*left.column_names, *(self._renamed(name) for name in right.column_names)]
        return pa.Table.from_arrays([*left.columns, *right.columns], names=names)

    def _renamed(self, name: str) -> str:
        left = self._sides[0].schema
        return name + self.suffix if left is not None and name in left.names else name

    def with_nulls(self, place: int, rows: pa.Table) -> pa.Table:
        schema = self._sides[1 - place].schema
        assert schema is not None
        nulls = [pa.nulls(rows.num_rows, field.type) for field in schema]
        empty = pa.Table.from_arrays(nulls, schema=schema.remove_metadata())
        return self.side_by_side(rows, empty) if place == 0 else self.side_by_side(empty, rows)

    def open_windows(self) -> list[Window]:
        """See `Operator`."""
        return [side.window for side in self._sides if side.window is not None]

    def finish(self) -> list[Punctuated]:
        """See `Operator`. Rows that are still in a window have not left it."""
        with self._locked():
            # What still waits never had another side.
            for _, rows in self._waiting:
                self.emit(rows)
            self._waiting = []
        return self.poll()

    # -- upkeep ----------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep timers of both windows away."""
        with self._lock, ExitStack() as held:
            for window in self.open_windows():
                held.enter_context(window.locked())
            yield

    def check_types(self) -> None:
        """An error if columns that must be equal are of different types."""
        schemas = [side.schema for side in self._sides]
        if schemas[0] is None or schemas[1] is None:
            return
        for a, b in self.compared:
            one, two = schemas[0].field(a).type, schemas[1].field(b).type
            if one != two:
                raise QueryError(
                    f"column {a!r} of the left side is {one}, and {b!r} of the right side is {two}"
                )
        taken_names = [*schemas[0].names, *(self._renamed(name) for name in schemas[1].names)]
        twice = sorted({name for name in taken_names if taken_names.count(name) > 1})
        if twice:
            raise QueryError(
                f"two columns of the output would be called {', '.join(map(repr, twice))}: choose a suffix"
            )

    def _tidy(self) -> None:
        """Forget keys of which no row is left, once they are most of them."""
        if self._keys is None or self._keys.count <= max(FEW, 4 * sum(len(side) for side in self._sides)):
            return
        live = np.zeros(self._keys.count, np.bool_)
        for side in self._sides:
            live |= side.chains.live(self._keys.count)
        kept = np.flatnonzero(live)
        self._keys = self._keys.kept(kept)
        for side in self._sides:
            side.chains.renumber(kept)

    # -- state -----------------------------------------------------------------------------------

    def _save(self) -> dict[str, bytes]:
        parts: dict[str, bytes] = {}
        for side in self._sides:
            parts |= side.save()
        for i, (place, rows) in enumerate(self._waiting):
            parts[f"waiting {i} {SIDES[place]}"] = stream_of(rows)
        return parts

    def _load(self, parts: dict[str, bytes]) -> None:
        self.close()
        self._keys, self._sides = None, tuple(Side(self, place) for place in (0, 1))
        for side in self._sides:
            side.load(parts)
        waiting = sorted(
            (name.split() for name in parts if name.startswith("waiting ")), key=lambda n: int(n[1])
        )
        self._waiting = [(SIDES.index(name[2]), table_of(parts[" ".join(name)])) for name in waiting]


def _pairs(columns: Pairs) -> tuple[tuple[str, str], ...]:
    """Columns of the left and of the right side: a name for both, or a pair of names."""
    if isinstance(columns, str):
        return ((columns, columns),)
    if not isinstance(columns, (list, tuple)):
        raise QueryError(f"columns of a join are names, or pairs of names; not {columns!r}")
    pairs = tuple((c, c) if isinstance(c, str) else c for c in columns)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or [type(name) for name in pair] != [str, str]:
            raise QueryError(f"a name for both sides or a pair of names is needed, not {pair!r}")
    return tuple((left, right) for left, right in pairs)
