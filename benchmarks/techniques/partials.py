"""The partial of a query: what all of its aggregates keep, as one.

A technique from the papers takes one event at a time and knows one aggregation function. A query may have several,
so their partials are put side by side, with the number of events, and become one:

    sum(x)          low   high
    max(y)                       value
    the query       low   high   value   events   [n of x   n of y]
                                                   from the first null on: until then, both are `events`

An aggregate's own functions are called from `lift` and `combine` of the whole, which are written out as source. The
algorithms name them as `windrow.stores.operations` does, and `events`, which says how many events a cell holds. A
cell that holds none is empty, whatever its numbers are: no loop asks for the partial of nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Scalars, Sketch
from windrow.compiling.compiler import bound as bind
from windrow.engine.binding import Answer, Binding
from windrow.engine.functions.bound_kernels import Operations, compiled_with, operations_of
from windrow.engine.partials.scalars import lower_values
from windrow.errors import DataError, QueryError
from windrow.stores import operations

Cells = tuple[np.ndarray, ...]


def events(cells, i):
    """How many events cell `i` holds."""
    raise NotImplementedError


def beats(a, b):
    """Whether a selective function chooses partial `a` when it has the choice between the two."""
    raise NotImplementedError


# What was written and compiled before: operators of like queries share it, as loading compiled code takes long.
_WRITTEN: dict[Any, Operations] = {}
_LOOPS: dict[Any, Any] = {}

STAND_INS = (operations.lift, operations.combine, operations.load, operations.put, events)
# What some techniques need besides, of partials that have it.
FURTHER = {"invert": operations.invert, "beats": beats}


@dataclass(frozen=True)
class Part:
    """The partial of one aggregate (or of several that share it), and where its fields begin."""

    bound: Bound
    columns: tuple[str, ...]
    first: int
    count: int


class Partials:
    """The fields of all aggregates of a query, and the loops over them. `masked` is true from the first null on.

    A technique that keeps some of the aggregates in another way than others names the `answers` that it means, and
    a `further` operation if it needs one: "invert", or "beats" of a single one that selects.
    """

    def __init__(
        self, binding: Binding, answers: Mapping[str, Answer] | None = None, further: str | None = None
    ) -> None:
        answers = binding.answers if answers is None else answers
        self.binding = binding
        self.further = further
        self.masked = False
        self.parts: dict[Any, Part] = {}
        self.kept: list[Answer] = []
        first = 0
        for answer in answers.values():
            if not isinstance(answer.bound.partial, (Scalars, Sketch)):
                self.kept.append(answer)
            elif answer.key not in self.parts:
                self._refuse_float_time(answer)
                count = len(answer.bound.partial.fields)
                self.parts[answer.key] = Part(answer.bound, answer.columns, first, count)
                first += count
        self.fields = first
        self.groups = [c for c in dict.fromkeys(a.columns for a in answers.values()) if c]
        self.timed = any(isinstance(p.bound.partial, Scalars) and p.bound.partial.timed for p in self._folded)

    def _refuse_float_time(self, answer: Answer) -> None:
        partial = answer.bound.partial
        timed = isinstance(partial, Scalars) and partial.timed
        if timed and self.binding.measure.floating:
            raise QueryError(f"{partial.name}: the techniques keep times in whole ticks, not in floats")

    @property
    def _folded(self) -> list[Part]:
        return [part for part in self.parts.values() if part.count]

    # -- input columns ---------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The columns whose values are read, in the order of `inputs`."""
        return list(self.binding.coders)

    def inputs(
        self, encoded: tuple[dict[str, Any], dict[str, Any]], times: np.ndarray, arrival: np.ndarray
    ) -> list[np.ndarray]:
        """What `lift` reads: codes of each column, time and arrival where they matter, and what is not null."""
        codes, present = encoded
        found = [codes[name] for name in self.columns]
        if self.timed:
            found += [times, arrival]
        if self.masked:
            found += [_mask([present[c] for c in group], len(times)) for group in self.groups]
        return found

    @property
    def _masks(self) -> int:
        """The place of the first mask among the inputs."""
        return len(self.columns) + 2 * self.timed

    # -- operations and loops --------------------------------------------------------------------

    @cached_property
    def _given(self) -> dict[bool, Operations]:
        return {}

    @property
    def operations(self) -> Operations:
        """`lift`, `combine`, `load`, `put` and `events` of the whole query."""
        if self.masked not in self._given:
            self._given[self.masked] = self._written()
        return self._given[self.masked]

    def _written(self) -> Operations:
        given = [operations_of(part.bound, masked=self.masked) for part in self._folded]
        lifted, combined, loaded, put = [], [], [], []
        scope: dict[str, Any] = {"__name__": __name__, "np": np}
        lifts = combines = ""
        at = {name: i for i, name in enumerate(self.columns)}
        for p, (part, own) in enumerate(zip(self._folded, given, strict=True)):
            functions = dict(own.functions)
            scope |= {f"lift_{p}": functions["lift"], f"combine_{p}": functions["combine"]}
            read = [at[c] for c in part.columns]
            if isinstance(part.bound.partial, Scalars) and part.bound.partial.timed:
                read += [len(self.columns), len(self.columns) + 1]
            if self.masked:
                read.append(self._masks + self.groups.index(part.columns))
            taken = "".join(f"inputs[{c}], " for c in read)
            lifts += f"    a{p} = lift_{p}(({taken}), i)\n"
            a, b = ("".join(f"{x}[{part.first + f}], " for f in range(part.count)) for x in ("a", "b"))
            combines += f"    c{p} = combine_{p}(({a}), ({b}))\n"
            lifted += [f"a{p}[{f}]" for f in range(part.count)]
            combined += [f"c{p}[{f}]" for f in range(part.count)]
        counts = 1 + (len(self.groups) if self.masked else 0)
        lifted.append("np.int64(1)")
        lifted += [f"np.int64(inputs[{self._masks + g}][i])" for g in range(counts - 1)]
        combined += [f"a[{self.fields + c}] + b[{self.fields + c}]" for c in range(counts)]
        widths = [w for own in given for w in own.widths] + [None] * counts
        loaded = [f"cells[{f}][i]{'' if w is None else '.copy()'}" for f, w in enumerate(widths)]
        put = [f"    cells[{f}][i] = partial[{f}]\n" for f in range(len(widths))]
        source = (
            f"def lift(inputs, i):\n{lifts}    return ({', '.join(lifted)},)\n\n\n"
            f"def combine(a, b):\n{combines}    return ({', '.join(combined)},)\n\n\n"
            f"def load(cells, i):\n    return ({', '.join(loaded)},)\n\n\n"
            f"def put(cells, i, partial):\n{''.join(put)}\n\n"
            f"def events(cells, i):\n    return cells[{self.fields}][i]\n"
        )
        if self.further == "invert":
            source += self._inverting(scope, given, counts)
        elif self.further == "beats":
            source += self._beating(scope, given)
        known = (source, *(own.functions for own in given))
        if known in _WRITTEN:
            return _WRITTEN[known]
        before = set(scope)
        exec(compile(source, "<windrow techniques>", "exec"), scope)
        called = ",".join(f.__qualname__ for n, f in scope.items() if n.startswith(("lift_", "combine_")))
        label = hashlib.sha256(f"{source}{called}".encode()).hexdigest()[:16]
        made = {n: f for n, f in scope.items() if n not in before and n != "__builtins__"}
        for function in made.values():
            function.__qualname__ = f"{function.__name__}_{label}"
        dtypes = [d for own in given for d in own.dtypes] + ["int64"] * counts
        identities = [i for own in given for i in own.identities] + [0] * counts
        user = any(own.user for own in given)
        found = Operations(tuple(made.items()), tuple(dtypes), tuple(widths), tuple(identities), user)
        return _WRITTEN.setdefault(known, found)

    def _inverting(self, scope: dict[str, Any], given: list[Operations], counts: int) -> str:
        """The source of `invert`: each part without what is taken back, and the counts less its own."""
        body, found = "", []
        for p, (part, own) in enumerate(zip(self._folded, given, strict=True)):
            scope[f"invert_{p}"] = dict(own.functions)["invert"]
            a, b = ("".join(f"{x}[{part.first + f}], " for f in range(part.count)) for x in ("a", "b"))
            body += f"    c{p} = invert_{p}(({a}), ({b}))\n"
            found += [f"c{p}[{f}]" for f in range(part.count)]
        found += [f"a[{self.fields + c}] - b[{self.fields + c}]" for c in range(counts)]
        return f"\n\ndef invert(a, b):\n{body}    return ({', '.join(found)},)\n"

    def _beating(self, scope: dict[str, Any], given: list[Operations]) -> str:
        """The source of `beats`: what `combine` gives back is chosen; a null is chosen by nobody."""
        scope["same_0"] = dict(given[0].functions)["same"]
        a, b = ("".join(f"{x}[{f}], " for f in range(self.fields)) for x in ("a", "b"))
        n = self.fields + 1
        nulls = f"    if a[{n}] == 0 or b[{n}] == 0:\n        return a[{n}] > 0\n" if self.masked else ""
        return f"\n\ndef beats(a, b):\n{nulls}    return same_0(combine_0(({a}), ({b})), ({a}))\n"

    def loop(self, function: Callable[..., Any], **places: Callable[..., Any]) -> Any:
        """A loop that is written with the names of the operations, compiled with those of this query.

        `places` are functions for names that the loop leaves open itself.
        """
        key = (function, self.operations.functions, *places.items())
        if key not in _LOOPS:
            _LOOPS[key] = self._build(function, places)
        return _LOOPS[key]

    def _build(self, function: Callable[..., Any], places: dict[str, Callable[..., Any]]) -> Any:
        given = dict(self.operations.functions)
        known = {stand_in: given[stand_in.__name__] for stand_in in STAND_INS}
        if self.further is not None:
            known[FURTHER[self.further]] = given[self.further]
        known |= {function.__globals__[name]: bind(own, known) for name, own in places.items()}
        return compiled_with(known, function, self.operations)

    # -- cells -----------------------------------------------------------------------------------

    def cells(self, count: int) -> Cells:
        """Room for so many partials, all of them empty."""
        given = self.operations
        shapes = [(count,) if width is None else (count, width) for width in given.widths]
        columns = zip(shapes, given.identities, given.dtypes, strict=True)
        return tuple(np.full(shape, identity, dtype) for shape, identity, dtype in columns)

    def grown(self, cells: Cells, count: int) -> Cells:
        """The same cells, and empty ones behind them, so many in all."""
        had = len(cells[0])
        if had >= count:
            return cells
        more = self.cells(count)
        for new, old in zip(more, cells, strict=True):
            new[:had] = old
        return more

    def split_counts(self, cells: Cells) -> Cells:
        """Cells from before the first null, with the numbers of values that are counted from now on."""
        return cells + tuple(cells[self.fields].copy() for _ in self.groups)

    def recode(self, cells: Cells, column: str, moved: np.ndarray) -> None:
        """Apply old-to-new codes of a column of strings to the fields that hold them."""
        for part in self._folded:
            used = self._values(cells, part.columns) > 0
            assert isinstance(part.bound.partial, (Scalars, Sketch))
            for f, field in enumerate(part.bound.partial.fields):
                if field.code is not None and part.columns[field.code] == column:
                    held = cells[part.first + f]
                    held[used] = moved[held[used]]

    def _values(self, cells: Cells, columns: tuple[str, ...]) -> np.ndarray:
        """How many values of these columns, that is without nulls, each cell holds."""
        masked = self.masked and columns
        return cells[self.fields + (1 + self.groups.index(columns) if masked else 0)]

    def lowered(self, name: str, answer: Answer, cells: Cells) -> pa.Array:
        """The column of an aggregate's answers from the partials of its windows."""
        part, bound = self.parts[answer.key], answer.bound
        n = self._values(cells, answer.columns)
        fields = list(cells[part.first : part.first + part.count])
        decoders = answer.decoders
        assert bound.build is not None
        if bound.lower is None:
            return bound.build(fields, n, decoders)
        values, defined = lower_values(bound, fields, n)
        overflow = bound.check(values, defined) if bound.check else None
        if overflow is not None:
            row, value = overflow
            raise DataError(name, row, value, "the sum of a window overflows int64")
        return bound.build(values, defined, decoders)


def _mask(present: list[np.ndarray | None], count: int) -> np.ndarray:
    """Which rows have a value in all of these columns, as 0 and 1."""
    found = np.ones(count, np.int64)
    for rows in present:
        if rows is not None:
            there = np.zeros(count, np.int64)
            there[rows] = 1
            found &= there
    return found
