"""Join: each row that comes meets the rows of the other side's window.

    left     a   b       c            a row is first inserted into its own window; then it is matched, oldest first, with
    right          x  y     z         what the other window holds: x with a, b; y with a, b; c with x, y; z with a, b, c

Windows are sliding, with the trigger count(1). `on` names columns that must be equal, found by hash; `match`
is any predicate over pairs, computed for many of them at once. Without `on`, every pair is tried. A window
of count(0) keeps nothing: its rows only look up (a one-sided join). With partitioned windows, rows meet
those of their own partition.

`how` is "inner", "left", "right" or "full". In an outer join, a row that leaves its window without ever
having had a match is emitted too, with nulls for the other side; with `unmatched="apart"` it goes to a
port of its own, as it came.

    inputs    oblivious
    outputs   matches: generating, a punctuation behind the matches of each row; left, right: free

(Gedik 2013, section 6.1.2, and Listing 1.)

Rows of both sides that stand in one order can be taken all at once (`process_together`):

    place     0   1   2   3   4   5         left:  a is there from 0 on, and leaves at 4, when c comes
    left      a   b           c             right: x meets a and b; y meets a and b; z meets b and c
    right             x   y       z

A window does not look at the other side. So each side lets all of its rows in, and its events tell at which place every
row left. Whom a row meets is then found in the chain of its key: those that came before its own place, and left
after it. That is what row by row would give, without a call for each change of sides.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import settled, whole
from windrow.engine.intake.keys import Keys
from windrow.engine.snapshot.parts import stream_of, table_of
from windrow.errors import QueryError, StateError
from windrow.policies.clock import Clock, weakly
from windrow.policies.operators.base import Operator
from windrow.policies.operators.chains import FEW
from windrow.policies.operators.join_side import OUTER, SIDES, JoinSide
from windrow.policies.operators.rows import taken
from windrow.policies.ports import FREE, GENERATING, OBLIVIOUS, Input, Model, Output, Punctuated
from windrow.policies.spec import Count, Sliding, Tumbling
from windrow.policies.tape import Tape
from windrow.policies.window import Window
from windrow.schema import require_columns
from windrow.wording import near

Predicate = Callable[[pa.Table, pa.Table], Any]
Probe = Callable[[np.ndarray, int, int], tuple[int, np.ndarray, np.ndarray]]
ColumnPairs = str | Sequence[str | tuple[str, str]]
# Rows of a batch, and the rows of the other side's log that they meet.
Pairs = tuple[np.ndarray, np.ndarray]

# Pairs that are matched at a time.
PAIRS_AT_ONCE = 1 << 18


def _refusal(window: Tumbling | Sliding) -> str | None:
    if isinstance(window, Tumbling):
        return "the windows of a join are sliding"
    if window.trigger != Count(1):
        return "each row is matched when it comes, so the trigger is count(1)"
    return None


class Join(Operator):
    """Rows of two streams that meet in windows, as pairs; in outer joins also rows that met none.

    Parameters
    ----------
    left, right
        The sliding windows of both sides, as values or as text; `count(0)` keeps no row of a side.
    on
        Columns whose values must be equal: names, or (left, right) pairs of names. None by default.
    match
        A function of two tables of pairs that says of each pair whether it belongs together; None (default)
        takes all.
    how
        "inner" (default), "left", "right" or "full": the sides of which unmatched rows are emitted, too.
    unmatched
        "together" (default) emits them with the pairs, "apart" on an output port of their own.
    partition_by
        Columns whose values make a partition, as `on`; none by default.
    clock
        For policies of time; None (default) is the machine's own clock.
    suffix
        What is added to the names of columns of the right side that the left one has, too; "_right" by
        default.

    Raises
    ------
    QueryError
        If a join does not take such windows, or an option makes no sense.

    Examples
    --------
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
        on: ColumnPairs = (),
        match: Predicate | None = None,
        how: str = "inner",
        unmatched: str = "together",
        partition_by: ColumnPairs = (),
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
        self._sides = self._new_sides()
        self._waiting: list[tuple[int, pa.Table]] = []

    def _new_sides(self) -> tuple[JoinSide, ...]:
        outer, lone = OUTER[self.how], weakly(self._lone)
        specs = (spec for spec in self.windows if spec is not None)
        return tuple(JoinSide(place, spec, place in outer, lone) for place, spec in enumerate(specs))

    def described(self) -> str:
        return repr((super().described(), self.on, self.how, self.apart, self.suffix))

    # -- the stream ------------------------------------------------------------------------------

    def process(self, rows: Any, port: int = 0) -> list[Punctuated]:
        """Insert rows on port 0, the left side, or port 1, the right one; the pairs, and what else is emitted."""
        if port not in (0, 1):
            raise QueryError(f"a join has the inputs 0 (left) and 1 (right), not {port!r}")
        table = Punctuated.of(rows).table
        with self._locked():
            self._fit(self._sides[port], table.schema.remove_metadata())
            self._take({port: table}, {port: np.arange(table.num_rows)})
        return self.poll()

    def process_together(
        self, rows: tuple[pa.Table, pa.Table], places: tuple[np.ndarray, np.ndarray]
    ) -> list[Punctuated]:
        """As `process`, of rows of both sides; `places` say where those of each stand in one order."""
        with self._locked():
            for side, table in zip(self._sides, rows, strict=True):
                self._fit(side, table.schema.remove_metadata())
            self._take(dict(enumerate(rows)), dict(enumerate(places)))
        return self.poll()

    def _fit(self, side: JoinSide, schema: pa.Schema, state: bytes | None = None) -> None:
        """The types of the rows of a side are known: make its window, or go on with that of a snapshot."""
        if side.schema is not None:
            if schema != side.schema:
                raise QueryError(
                    f"the columns of the {side.name} side have changed from {side.schema} to {schema}"
                )
            return
        require_columns(schema, tuple(pair[side.place] for pair in self.compared))
        schemas = [schema if one is side else one.schema for one in self._sides]
        if schemas[0] is not None and schemas[1] is not None:
            self._check_types(schemas[0], schemas[1])
        side.begin(schema, self.partition_by[side.place], self.clock, state)
        if schemas[0] is not None and schemas[1] is not None:
            self._schemas[0] = self._with_nulls(side.place, schema.empty_table()).schema
            # Rows that have waited for the types of the other side can go now.
            waiting, self._waiting = self._waiting, []
            for place, rows in waiting:
                self.emit(self._with_nulls(place, rows))

    def _take(self, tables: dict[int, pa.Table], places: dict[int, np.ndarray]) -> None:
        """Insert rows of one side or both; emit matches, and rows that leave without one, in order."""
        batches = {place: whole(table) for place, table in tables.items() if table.num_rows}
        for side in self._sides:
            side.pass_time()
        keys = {place: self._numbers(batch, place) for place, batch in batches.items()}
        if len(batches) == 2:
            happened, found = self._met_together(batches, keys, places)
        else:
            # The other side stays as it is meanwhile: whom rows meet is known before they are let in.
            found = {
                place: self._matches(
                    batch, keys[place], self._sides[place], self._sides[1 - place].chains.probe
                )
                for place, batch in batches.items()
            }
            happened = {place: self._sides[place].insert(batch) for place, batch in batches.items()}
            for place in batches:
                self._sides[place].link(keys[place], self._known)
        for place, (_, theirs) in found.items():
            self._sides[1 - place].chains.matched[theirs] = True
        self._give(batches, places, happened, found)
        self._tidy()

    def _met_together(
        self, batches: dict[int, pa.RecordBatch], keys: dict[int, np.ndarray], places: dict[int, np.ndarray]
    ) -> tuple[dict[int, Tape], dict[int, Pairs]]:
        """Let rows of both sides in: the events of both windows, and whom each row met then.

        Rows that one window refuses do nothing to the other; nor do any if a predicate of the user's raises.
        """
        happened: dict[int, Tape] = {}
        ends: dict[int, np.ndarray] = {}
        try:
            for side in self._sides:
                happened[side.place] = side.insert(batches[side.place], can_take_back=True)
            for side in self._sides:
                ends[side.place] = side.chains.ends()
                side.link(keys[side.place], self._known)
            found = {}
            for side in self._sides:
                me, them = side.place, 1 - side.place
                other = self._sides[them]
                lives = other.lives(happened[them], places[them])
                probe = partial(other.chains.probe, place=places[me], lives=lives)
                found[me] = self._matches(batches[me], keys[me], side, probe)
            return happened, found
        except BaseException:
            for place in happened:
                self._sides[place].take_back(ends.get(place))
            raise

    def _numbers(self, batch: pa.RecordBatch, place: int) -> np.ndarray:
        """The number of each row's key; -1 where a column that must be equal is null, which is equal to
        nothing.
        """
        if not self.compared:
            return np.zeros(batch.num_rows, np.int64)
        columns = [settled(batch.column(pair[place])) for pair in self.compared]
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

    def _matches(self, batch: pa.RecordBatch, keys: np.ndarray, side: JoinSide, probe: Probe) -> Pairs:
        """Pairs of a row of the batch and a row of the other side's log, in order; `probe` finds them."""
        other = self._sides[1 - side.place]
        if other.window is None or not other.keeps:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        other.chains.know(self._known)
        found: list[Pairs] = []
        begin = 0
        while begin < len(keys):
            begin, mine, theirs = probe(keys, begin, PAIRS_AT_ONCE)
            if self._match is not None and len(mine):
                kept = self._agreed(self._paired(batch, side, mine, theirs))
                mine, theirs = mine[kept], theirs[kept]
            found.append((mine, theirs))
        return np.concatenate([m for m, _ in found]), np.concatenate([t for _, t in found])

    @property
    def _known(self) -> int:
        return 1 if self._keys is None else self._keys.count

    def _agreed(self, pairs: tuple[pa.Table, pa.Table]) -> np.ndarray:
        assert self._match is not None
        mask = self._match(*pairs)
        if isinstance(mask, (pa.Array, pa.ChunkedArray)):
            mask = mask.fill_null(False).to_numpy(zero_copy_only=False)
        mask = np.asarray(mask)
        count = pairs[0].num_rows
        if mask.dtype != np.bool_ or mask.shape != (count,):
            raise QueryError(
                f"match must give true or false for each of {count:,} pairs, "
                f"not {mask.dtype} in the shape {mask.shape}"
            )
        return mask

    # -- output ----------------------------------------------------------------------------------

    def _give(
        self,
        batches: dict[int, pa.RecordBatch],
        places: dict[int, np.ndarray],
        happened: dict[int, Tape],
        found: dict[int, Pairs],
    ) -> None:
        """At each place there are three steps: rows leave, the row that comes is matched, and is not kept."""
        parts: list[pa.Table] = []
        at: list[np.ndarray] = []
        for place, batch in batches.items():
            mine, theirs = found[place]
            if len(mine):
                pairs = self._paired(batch, self._sides[place], mine, theirs)
                parts.append(self._side_by_side(*pairs))
                at.append(3 * places[place][mine] + 1)
        matched = sum(map(len, at))
        for place, batch in batches.items():
            alone, when, late = self._sides[place].outcome(happened[place], batch, found[place][0])
            if not alone.num_rows:
                continue
            if self.apart or self._sides[1 - place].schema is None:
                self._lone(place, alone)
                continue
            parts.append(self._with_nulls(place, alone))
            at.append(np.where(when < 0, -1, 3 * places[place][when] + 2 * late))
        if parts:
            rows, steps = pa.concat_tables(parts), np.concatenate(at)
            is_match = np.arange(len(steps)) < matched
            if len(parts) > 1:
                order = np.argsort(steps, kind="stable")
                rows, steps, is_match = rows.take(pa.array(order)), steps[order], is_match[order]
            self.emit(rows, marks=np.flatnonzero(is_match & (np.diff(steps, append=-2) != 0)) + 1)

    def _lone(self, place: int, rows: pa.Table) -> None:
        """Emit rows that left without a match, on their own."""
        if self.apart:
            self.emit(rows, port=1 + OUTER[self.how].index(place))
        elif self._sides[1 - place].schema is not None:
            self.emit(self._with_nulls(place, rows))
        else:
            self._waiting.append((place, rows))

    def _paired(
        self, batch: pa.RecordBatch, side: JoinSide, mine: np.ndarray, theirs: np.ndarray
    ) -> tuple[pa.Table, pa.Table]:
        """Rows of a batch of one side, and rows of the other one's log; the left ones first."""
        window = self._sides[1 - side.place].window
        assert window is not None
        own, others = pa.Table.from_batches([batch]).take(pa.array(mine)), taken(window.log, theirs)
        return (own, others) if side.place == 0 else (others, own)

    def _side_by_side(self, left: pa.Table, right: pa.Table) -> pa.Table:
        names = self._output_names(left.schema, right.schema)
        return pa.Table.from_arrays([*left.columns, *right.columns], names=names)

    def _output_names(self, left: pa.Schema, right: pa.Schema) -> list[str]:
        return [*left.names, *(name + self.suffix if name in left.names else name for name in right.names)]

    def _with_nulls(self, place: int, rows: pa.Table) -> pa.Table:
        schema = self._sides[1 - place].schema
        assert schema is not None
        nulls = [pa.nulls(rows.num_rows, field.type) for field in schema]
        empty = pa.Table.from_arrays(nulls, schema=schema.remove_metadata())
        return self._side_by_side(rows, empty) if place == 0 else self._side_by_side(empty, rows)

    def open_windows(self) -> list[Window]:
        return [side.window for side in self._sides if side.window is not None]

    def finish(self) -> list[Punctuated]:
        """The stream has ended. Rows that are still in a window have not left it, so they are not unmatched."""
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

    def _check_types(self, left: pa.Schema, right: pa.Schema) -> None:
        """An error if columns that must be equal are of different types, or two would have the same name."""
        for a, b in self.compared:
            one, two = left.field(a).type, right.field(b).type
            if one != two:
                raise QueryError(
                    f"column {a!r} of the left side is {one}, and {b!r} of the right side is {two}"
                )
        names = self._output_names(left, right)
        twice = sorted({name for name in names if names.count(name) > 1})
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
        self._keys, self._sides, self._waiting = None, self._new_sides(), []
        for side in self._sides:
            if f"{side.name} schema" not in parts:
                continue
            if f"{side.name} window" not in parts:
                raise StateError(f"the snapshot lacks the window of the {side.name} side")
            schema = pa.ipc.read_schema(pa.py_buffer(parts.pop(f"{side.name} schema")))
            self._fit(side, schema, parts.pop(f"{side.name} window"))
            rows = side.held_rows()
            keys = self._numbers(whole(rows), side.place) if rows.num_rows else np.empty(0, np.int64)
            side.load(parts, keys, self._known)
        waiting = sorted(
            (name.split() for name in parts if name.startswith("waiting ")), key=lambda n: int(n[1])
        )
        self._waiting = [(SIDES.index(name[2]), table_of(parts[" ".join(name)])) for name in waiting]


def _pairs(columns: ColumnPairs) -> tuple[tuple[str, str], ...]:
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
