"""An aggregate's partials in a store: rows to what loops take in, and partials to answers.

Rolling windows, by rows or by time, and the queue are loops over this. A call that fails leaves the state unchanged. So does
one that is interrupted, if it is long enough for that to be likely; else the state is refused from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Multiset, Scalars
from windrow.aggregates.base import Sequence as InOrder
from windrow.engine.functions.bound_kernels import compiled, giving_answers, operations_of
from windrow.engine.functions.store_compatibility import require_pairing
from windrow.engine.functions.user_functions import bind, lift_failed, lower_failed, named
from windrow.engine.intake.columns import Coder, settled
from windrow.engine.intake.numbers import frozen
from windrow.engine.partials.scalars import lower_values
from windrow.errors import DataError, LimitError, QueryError, StateError, UserFunctionError
from windrow.planner.rolling import LEAST_FOR_TWO_THREADS
from windrow.rolling import bulk_loops
from windrow.rolling.answering import DoesNotFit, can_give_answers, room_for_answers
from windrow.rolling.codes import recoded, require_codes
from windrow.rolling.parallel import Helper, boundary, slide_both
from windrow.rolling.ranges import RANGE, Log
from windrow.rolling.rings import ALL, parts, saved
from windrow.schema import require_columns
from windrow.stores.base import Store
from windrow.stores.pba import PBA
from windrow.stores.sba import accumulate_left

# Answers that are checked at once: the arrays that a check makes stay in the processor's cache.
CHECKED_AT_ONCE = 1 << 14

# Rows of a call for each partial that is copied: a copy takes a part of the time of a row, and then does not show.
ROWS_PER_COPY = 4

# Of an answer: the row that its window ends with, and the window in words.
Where = Callable[[int], tuple[int, str]]


@dataclass
class Rows:
    """Rows of a call: the codes of each column, and which rows have all values (None: all rows)."""

    count: int
    codes: list[np.ndarray]
    present: np.ndarray | None


class Held:
    """The `state`, `cells` and `notes` of a store, and `current`: the partial of a slice that is being filled."""

    def __init__(
        self, aggregate: Aggregate, schema: pa.Schema, store: Store, capacity: int, chunk: int = 0
    ) -> None:
        self._columns = aggregate.columns
        require_columns(schema, self._columns)
        self._types = tuple(schema.field(c).type for c in self._columns)
        bound = self.bound = bind(aggregate, self._types)
        require_pairing(store, aggregate, bound)
        self.store = store
        self._coders = [Coder(c, t) for c, t in zip(self._columns, self._types, strict=True) if bound.kinds]
        self.log: Log | None = None
        if isinstance(bound.partial, (Multiset, InOrder)):
            self.log = Log(bound.kinds[0] == "f")
            bound = replace(bound, partial=RANGE, kinds=("i",))
        self._partial = bound.partial
        self._own = isinstance(self._partial, Scalars) and self._partial.own
        self._seen = 0
        self._is_whole = True
        self._operations = {masked: operations_of(bound, masked=masked) for masked in (False, True)}
        self.identity = self._operations[False].identity
        self.current = self.identity
        sizes = (capacity, self.identity, chunk) if store.chunked else (capacity, self.identity)
        self.state = self._empty = store.create(*sizes)
        self.notes = np.zeros(0, np.int64)
        self.make_room(store.cells(capacity), store.notes(capacity), window=capacity)
        self._helper: Helper | None = None
        if store is PBA and capacity >= LEAST_FOR_TWO_THREADS:
            self._helper = Helper(compiled(accumulate_left, store, self._operations[False]))
        # Nothing goes on when a call has returned, as the next one may look into the cells or copy them.
        self._waits = self._may_fail or any(coder.text for coder in self._coders)

    @property
    def is_count(self) -> bool:
        """Whether there is nothing to store, because the number of values is the answer."""
        return not self.identity

    @property
    def _may_fail(self) -> bool:
        return self._own or self.bound.check is not None or self.log is not None

    def room(self, count: int) -> tuple[np.ndarray, ...]:
        """Arrays for `count` partials."""
        return self._operations[False].cells(count)

    def make_room(self, cells: int, notes: int = 0, *, window: int) -> None:
        """Make room for all that the store can hold, for windows of `window` partials."""
        try:
            self.cells, self.notes = self.room(cells), np.zeros(notes, np.int64)
        except (MemoryError, ValueError):
            raise LimitError(f"there is no room for a window of {window:,} partials") from None

    # -- rows in -----------------------------------------------------------------------------------

    def read(self, batch: pa.RecordBatch) -> Rows:
        """Values as codes; what is held is recoded where new strings have shifted the codes of others."""
        require_columns(batch.schema, self._columns)
        for name, type_ in zip(self._columns, self._types, strict=True):
            if batch.schema.field(name).type != type_:
                raise QueryError(f"column {name!r} was {type_} before, and now is {batch.column(name).type}")
        for coder in self._coders:
            require_codes(coder, batch)
        codes = []
        for position, coder in enumerate(self._coders):
            values, _, moved = coder.encode(batch.column(coder.column))
            if moved is not None and len(moved):
                self._recode(position, moved)
            codes.append(values)
        arrays = [settled(batch.column(name)) for name in self._columns]
        valid = [a.is_valid().to_numpy(zero_copy_only=False) for a in arrays if a.null_count]
        return Rows(batch.num_rows, codes, np.logical_and.reduce(valid) if valid else None)

    def _recode(self, position: int, moved: np.ndarray) -> None:
        if self.log is not None:
            self.log.codes = moved[self.log.codes]
            return
        coded = [i for i, field in enumerate(self._partial.fields) if field.code == position]  # type: ignore[union-attr]

        def renewed(part: Any) -> Any:
            if not isinstance(part, tuple):
                return part
            return tuple(recoded(v, moved)[()] if i in coded else v for i, v in enumerate(part))

        for i in coded:
            self.cells[i][:] = recoded(self.cells[i], moved)
        self.state = tuple(map(renewed, self.state))
        self.current = renewed(self.current)

    def parts(self, inserts: int, evicts: int) -> Sequence[slice]:
        """The cells that the store writes at most with `inserts` and `evicts` calls."""
        if self.store.touched is None or not self.cells:
            return ALL
        return parts(len(self.cells[0]), self.store.touched(self.state, inserts, evicts))

    @contextmanager
    def as_before_on_failure(self, rows: int, where: Sequence[slice] = ALL) -> Iterator[None]:
        """Restore everything if a call of `rows` rows, which write these cells, fails.

        Copies are made where it may fail, or where they cost little.
        """
        self._require_whole()
        arrays = self.cells if self.store.touched is not None else (*self.cells, self.notes)
        is_copied = self._may_fail or (bool(arrays) and rows >= ROWS_PER_COPY * len(arrays[0]))
        before = self.state, self.current, self.log, self._seen
        put_back = None
        try:
            if is_copied:
                self.state = self._collected(self.state)
                before = (self.state, *before[1:])
                put_back = saved(arrays, where)
            yield
        except BaseException:
            self.state, self.current, self.log, self._seen = before
            if self._helper is not None:
                self._helper.forget()
            if put_back is not None:
                put_back()
            self._is_whole = put_back is not None
            raise

    def _collected(self, state: Any) -> Any:
        """The store's state when no helper has anything of it."""
        return state if self._helper is None else self._helper.collected(state)

    def _require_whole(self) -> None:
        if not self._is_whole:
            raise StateError("a call was interrupted, and what it left is neither old nor new: begin anew")

    def run(self, loop: Callable[..., Any], rows: Rows, *arguments: Any, lowers: bool = False) -> Any:
        """Run a loop over rows: their inputs are its first argument. It may give answers and not partials."""
        operations = self._operations[rows.present is not None]
        run = compiled(
            loop, self.store, giving_answers(operations, self.bound, checks=True) if lowers else operations
        )
        if self.store is PBA and loop is bulk_loops.slide_in_chunks:
            run = partial(self._shared, run)
        inputs = self._inputs(rows)
        with self._blaming(rows):
            return run(inputs, *arguments)

    def _shared(
        self, run: Callable[..., Any], inputs: Any, rows: int, size: int, held: int, state: Any, *kept: Any
    ) -> Any:
        """Run a loop over rows on two threads, if they are enough for that; interpreted functions run one at a time."""
        begin = boundary(rows, size, state)
        if begin is not None:
            state = self._collected(state)
            return slide_both(run, begin, self._empty, inputs, rows, size, held, state, *kept)
        if self._helper is None or not getattr(run, "was_compiled", True):
            return run(inputs, rows, size, held, state, *kept)
        state, held, made = self._helper.slide(run, inputs, rows, size, held, state, *kept)
        return self._collected(state) if self._waits else state, held, made

    @contextmanager
    def _blaming(self, rows: Rows) -> Iterator[None]:
        """Say which function of the user's has failed, and on which of these rows."""
        try:
            yield
        except Exception as problem:  # a user's function may raise anything
            if not self._own:
                raise
            raise self._failed(problem, rows) from problem

    def _failed(self, problem: Exception, rows: Rows) -> Exception:
        """The error that names the function of the user's that raised.

        Only a lift belongs to a row: the partials of a combine come from rows of several calls.
        """
        partial = self._partial
        assert isinstance(partial, Scalars)
        there = np.arange(rows.count) if rows.present is None else np.flatnonzero(rows.present)
        failed = lift_failed(partial, [codes[there] for codes in rows.codes], there)
        if failed is not None:
            return failed
        if self.store.needs != "inverse":
            return named(partial, "combine", problem)
        roles = [(role, getattr(partial, role).__name__) for role in ("combine", "invert")]
        which = " or ".join(f"{role} function {name!r}" for role, name in roles)
        return UserFunctionError(f"{which} of {partial.name!r} raised {type(problem).__name__}: {problem}")

    def _inputs(self, rows: Rows) -> tuple[np.ndarray, ...]:
        inputs = list(rows.codes)
        if self.log is not None:
            codes = rows.codes[0] if rows.present is None else rows.codes[0][rows.present]
            before = np.arange(rows.count) if rows.present is None else np.cumsum(rows.present) - 1
            inputs = [self.log.end + before]
            self.log = self.log.extended(codes)
        if isinstance(self._partial, Scalars) and self._partial.timed:
            numbers = np.arange(self._seen, self._seen + rows.count)
            inputs += [numbers, numbers]
        self._seen += rows.count
        if rows.present is not None:
            inputs.append(rows.present)
        return tuple(map(frozen, inputs))

    # -- answers out -------------------------------------------------------------------------------

    def answers(self, out: tuple[np.ndarray, ...], n: np.ndarray, where: Where) -> pa.Array:
        """Partials to answers; `n` is how many values each of them is made of."""
        bound = self.bound
        decoders = [coder.decode for coder in self._coders]
        if self.log is not None:
            return self.log.answers(bound, out[0], out[1], decoders)
        assert bound.build is not None
        if bound.lower is None:
            return bound.build(list(out), n, decoders)
        try:
            values, defined = lower_values(bound, list(out), n)
        except Exception as problem:  # a user's function may raise anything
            if not self._own:
                raise
            raise lower_failed(bound, problem, self._first_failure(out, n, where)) from problem
        for low in range(0, len(defined) if bound.check else 0, CHECKED_AT_ONCE):
            part = slice(low, low + CHECKED_AT_ONCE)
            overflow = bound.check([v[part] for v in values], defined[part])  # type: ignore[misc]
            if overflow is not None:
                row, words = where(low + overflow[0])
                raise DataError(self._columns[0], row, overflow[1], f"the sum of {words} overflows int64")
        return self.built(values, defined)

    def answers_of_loop(
        self,
        rows: Rows,
        count: int,
        guard: AbstractContextManager[None],
        slide: Callable[[tuple[np.ndarray, ...]], Any],
    ) -> tuple[pa.Array | None, Any]:
        """Answers that a loop makes itself, if it is to, and what `slide` returns, which runs it with room for them.

        None, and nothing has happened, if one of them does not fit.
        """
        whole = rows.present is None and self.log is None and not self.is_count
        if not whole or not can_give_answers(self.bound, count):
            return None, None
        out = room_for_answers(self.bound, count)
        try:
            with guard:
                slid = slide(out)
                if self.bound.fits is not None and not out[-1].all():
                    raise DoesNotFit
                return self.built(list(out[:-1]), out[-1]), slid
        except DoesNotFit:
            return None, None

    def built(self, values: list[np.ndarray], defined: np.ndarray) -> pa.Array:
        """The numbers of answers, which fit, as a column."""
        assert self.bound.build is not None
        return self.bound.build(values, defined, [coder.decode for coder in self._coders])

    def _first_failure(self, out: tuple[np.ndarray, ...], n: np.ndarray, where: Where) -> str:
        for i in range(len(n)):
            try:
                lower_values(self.bound, [o[i : i + 1] for o in out], n[i : i + 1])
            except Exception:  # a user's function may raise anything
                return f" for {where(i)[1]}"
        return ""
