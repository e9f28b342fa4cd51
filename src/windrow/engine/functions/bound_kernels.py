"""The functions of an aggregate in the form in which loops over partials call them: those of stores, and of slices.

An aggregate's own functions know numbers; a loop knows partials in cells. What lies between is a few lines for
each number of columns and fields, written out as source. For a partial of two fields:

    def lift(inputs, i):
        a = lift_(inputs[0][i])
        return np.float64(a[0]), np.int64(a[1])

    def combine(a, b):
        c = combine_((a[0], a[1]), (b[0], b[1]))
        return np.float64(c[0]), np.int64(c[1])

    def load(cells, i):
        j = np.uint64(i)
        return cells[0][j], cells[1][j]

    def join(into, i, cells, j, n):
        a0, a1 = combine_((into[0][i], into[1][i]), (cells[0][j], cells[1][j]))
        into[0][i] = a0
        into[1][i] = a1

A place without a sign spares the machine a look at each cell whether it is counted from the end.

The partial of a null is the partial of nothing; how many values a window has is counted elsewhere.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from windrow.aggregates.base import Bound, Field, Scalars, Sketch
from windrow.compiling.compiler import bound as bind
from windrow.compiling.compiler import kernel
from windrow.compiling.fingerprint import names_in
from windrow.errors import QueryError
from windrow.stores import operations
from windrow.stores.base import Store

# Functions that write where a partial lies; see `stores.operations`.
IN_PLACE = (
    "take(cells, i, inputs, row)",
    "take_all(cells, i, inputs, low, high)",
    "begin(into, i, cells, j, n)",
    "join(into, i, cells, j, n)",
)

DTYPES: dict[str, str] = {"i": "int64", "t": "int64", "f": "float64", "b": "bool", "u1": "uint8"}


@dataclass(frozen=True)
class Operations:
    """`functions` by the names of `operations`; `dtypes` and `widths` of the fields; the partial of nothing.

    `user` marks functions of the user's own, which may not compile.
    """

    functions: tuple[tuple[str, Callable[..., Any]], ...]
    dtypes: tuple[str, ...]
    widths: tuple[int | None, ...]
    identities: tuple[Any, ...]
    user: bool

    @property
    def identity(self) -> tuple[Any, ...]:
        """The partial of nothing."""
        return tuple(
            np.dtype(d).type(value) if width is None else np.full(width, value, d)
            for d, width, value in zip(self.dtypes, self.widths, self.identities, strict=True)
        )

    def cells(self, count: int) -> tuple[np.ndarray, ...]:
        """Room for so many partials."""
        shapes = [(count,) if width is None else (count, width) for width in self.widths]
        return tuple(np.empty(shape, d) for shape, d in zip(shapes, self.dtypes, strict=True))


@cache
def compiled(loop: Callable[..., Any], store: Store, given: Operations, *, allocates: bool = False) -> Any:
    """A loop that drives a store, with the functions of the store and of an aggregate in it.

    `allocates` says whether the loop makes arrays; sketches always do.
    """
    known = {getattr(operations, name): function for name, function in given.functions}
    known |= {
        getattr(operations, name): bind(getattr(store, name), known) for name in ("insert", "evict", "query")
    }
    return compiled_with(known, loop, given, allocates=allocates)


def compiled_with(
    known: dict[Any, Any], loop: Callable[..., Any], given: Operations, *, allocates: bool = False
) -> Any:
    """A loop with the functions `known` in the place of those that it names, and that others name which it calls."""
    names = names_in(loop.__code__)
    called = {name: f for name, f in loop.__globals__.items() if name in names}
    used = {name: bind(f, known) for name, f in called.items() if isinstance(f, types.FunctionType)}
    used |= {name: f.py_func for name, f in called.items() if hasattr(f, "py_func")}
    allocates = allocates or any(width is not None for width in given.widths)
    return kernel(inspect.getsource(loop), loop.__name__, used, user=given.user, allocates=allocates)


def operations_of(bound: Bound, *, masked: bool = False) -> Operations:
    """The operations of a bound aggregate.

    `masked` is for inputs of which some are null: their last column says which are not.
    """
    partial = bound.partial
    if isinstance(partial, Sketch):
        return _sketch(partial, masked)
    if isinstance(partial, Scalars):
        dtypes = [DTYPES[f.dtype] for f in partial.fields]
        identities = tuple(f.identity for f in partial.fields)
        return _scalars(partial, len(bound.kinds), tuple(dtypes), identities, masked)
    raise QueryError(f"{partial.name} are not a partial of a fixed size")


def operations_over(
    spec: Scalars | Sketch, columns: int, dtypes: Sequence[np.dtype[Any]], identities: Sequence[Any]
) -> Operations:
    """The operations of a partial whose fields have these types, and these values when it is empty."""
    if isinstance(spec, Sketch):
        return _sketch(spec, masked=False)
    # One NaN for all, because a NaN is equal to nothing but the very same object.
    plain = tuple(math.nan if identity != identity else identity.item() for identity in identities)
    return _scalars(spec, columns, tuple(d.name for d in dtypes), plain, masked=False)


@cache
def _scalars(
    spec: Scalars, columns: int, dtypes: tuple[str, ...], identities: tuple[Any, ...], masked: bool
) -> Operations:
    fields = range(len(dtypes))
    columns += 2 * spec.timed
    read = ", ".join(f"inputs[{c}][i]" for c in range(columns))

    def cast(letter: str) -> str:
        taken = [letter] if spec.bare else [f"{letter}[{i}]" for i in fields]
        return "".join(f"np.{d}({part}), " for d, part in zip(dtypes, taken, strict=True))

    def part(letter: str) -> str:
        return f"{letter}[0]" if spec.bare else f"({''.join(f'{letter}[{i}], ' for i in fields)})"

    def two(name: str) -> str:
        return f"def {name}(a, b):\n    c = {name}_({part('a')}, {part('b')})\n    return ({cast('c')})\n"

    guard = ""
    if masked:
        nothing = "".join(_constant(v, d) + ", " for v, d in zip(identities, dtypes, strict=True))
        guard = f"    if not inputs[{columns}][i]:\n        return ({nothing})\n"
    equal = " and ".join(f"(a[{i}] == b[{i}] or (a[{i}] != a[{i}] and b[{i}] != b[{i}]))" for i in fields)
    lifted = f"    a = lift_({read})\n    return ({cast('a')})\n" if spec.lift else "    return ()\n"
    source = (
        f"def lift(inputs, i):\n{guard}{lifted}\n\n"
        f"{two('combine')}\n\ndef same(a, b):\n    return {equal or True}\n"
    )
    source += _in_place(spec, columns, len(dtypes))
    needed: dict[str, Any] = {"lift_": spec.lift, "combine_": spec.combine, "fold_": spec.fold}
    if spec.invert is not None:
        source += "\n\n" + two("invert")
        needed["invert_"] = spec.invert
    return _written(source, needed, dtypes, (None,) * len(dtypes), identities, spec.own)


def _in_place(spec: Scalars, columns: int, fields: int) -> str:
    """Partials that take in rows, or others, in the cells where they lie."""
    if not fields:
        return "".join(f"\n\ndef {head}:\n    pass\n" for head in IN_PLACE)

    def numbers(pattern: str) -> str:
        return "".join(pattern.format(k) + ", " for k in range(fields))

    def partial(pattern: str) -> str:
        return pattern.format(0) if spec.bare else f"({numbers(pattern)})"

    def combined(one: str, other: str, indent: int = 4) -> str:
        return f"{' ' * indent}{'a0' if spec.bare else numbers('a{}')} = combine_({one}, {other})\n"

    def written(cells: str) -> str:
        return "".join(f"    {cells}[{k}][i] = a{k}\n" for k in range(fields))

    take, take_all, begin, join = (f"\n\ndef {head}:\n" for head in IN_PLACE)
    here, row = partial("cells[{}][i]"), "".join(f"inputs[{c}][row], " for c in range(columns))
    take += combined(here, f"lift_({row})") + written("cells")
    if spec.fold is not None:
        whole = "".join(f"inputs[{c}], " for c in range(columns))
        take_all += combined(here, f"fold_({whole}low, high)")
    else:
        # Columns that begin at 0: LLVM vectorizes loops over them, not loops over an inner range.
        take_all += "".join(f"    x{c} = inputs[{c}][low:high]\n" for c in range(columns))
        take_all += "".join(f"    a{k} = cells[{k}][i]\n" for k in range(fields))
        row = "".join(f"x{c}[row], " for c in range(columns))
        take_all += f"    for row in range(high - low):\n{combined(partial('a{}'), f'lift_({row})', 8)}"
    take_all += written("cells")
    begin += "".join(f"    into[{k}][i] = cells[{k}][j]\n" for k in range(fields))
    join += combined(partial("into[{}][i]"), partial("cells[{}][j]")) + written("into")
    return take + take_all + begin + join


@cache
def _sketch(spec: Sketch, masked: bool) -> Operations:
    dtypes = tuple(DTYPES[f.dtype] for f in spec.fields)
    identities = tuple(f.identity for f in spec.fields)
    names = [f"a{i}" for i in range(len(dtypes))]
    fresh = "".join(f"    {name} = {_row(f)}\n" for name, f in zip(names, spec.fields, strict=True))
    taken = ", ".join(names)
    copies = "".join(f"    {name} = a[{i}].copy()\n" for i, name in enumerate(names))
    others = ", ".join(f"b[{i}]" for i in range(len(names)))
    inserted = f"    insert_({taken}, inputs[0][i])\n"
    if masked:
        inserted = f"    if inputs[1][i]:\n    {inserted}"
    source = (
        f"def lift(inputs, i):\n{fresh}{inserted}    return ({taken},)\n\n\n"
        f"def combine(a, b):\n{copies}    absorb_({taken}, {others})\n    return ({taken},)\n"
    )
    cell, into, other = (
        "".join(f"{letters}[{k}][{i}], " for k in range(len(dtypes)))
        for letters, i in (("cells", "i"), ("into", "i"), ("cells", "j"))
    )
    take, take_all, begin, join = (f"\n\ndef {head}:\n" for head in IN_PLACE)
    take += f"    insert_({cell}inputs[0][row])\n"
    take_all += f"    for row in range(low, high):\n        insert_({cell}inputs[0][row])\n"
    begin += f"    if n > 0:\n        absorb_({into}{other})\n"
    join += f"    if n > 0:\n        absorb_({into}{other})\n"
    source += take + take_all + begin + join
    needed = {"insert_": spec.insert, "absorb_": spec.absorb}
    return _written(source, needed, dtypes, tuple(f.width for f in spec.fields), identities, user=False)


def giving_answers(operations: Operations, bound: Bound, *, checks: bool = False) -> Operations:
    """The operations of an aggregate, where a loop gives the numbers of an answer and whether it is defined.

    With `checks`, an answer that its type cannot hold is not defined.
    """
    assert bound.lower is not None
    spec, fits = bound.partial, bound.fits if checks else None
    unpacked = isinstance(spec, Sketch) or (isinstance(spec, Scalars) and spec.own and spec.bare)
    return _giving(operations, bound.lower, fits, len(bound.outputs), unpacked)


# An aggregate is bound anew for each window, but what it is lowered with is the same function.
@cache
def _giving(
    operations: Operations,
    lower: Callable[..., Any],
    fits: Callable[..., Any] | None,
    outputs: int,
    unpacked: bool,
) -> Operations:
    fields = "".join(f"partial[{k}], " for k in range(len(operations.dtypes)))
    partial = fields if unpacked else f"({fields}), "
    if operations.user:
        written = f"    out[1][i] = n > 0\n    if n > 0:\n        out[0][i] = lower({partial})\n"
    else:
        written = f"    answer = lower({partial}n)\n"
        if fits is not None:
            written += f"    out[0][i] = answer[0]\n    out[1][i] = answer[{outputs}] and fits(answer)\n"
        else:
            written += "".join(f"    out[{k}][i] = answer[{k}]\n" for k in range(outputs + 1))
    source = f"def give(out, i, partial, n):\n{written}"
    made = ["give"]
    if any(width is not None for width in operations.widths):
        # A sketch is lowered where it lies.
        rows = "".join(f"cells[{k}][i], " for k in range(len(operations.dtypes)))
        source += f"\n\ndef load(cells, i):\n    return ({rows})\n"
        made.append("load")
    scope: dict[str, Any] = {"__name__": __name__, "lower": lower, "fits": fits}
    exec(compile(source, "<windrow answers>", "exec"), scope)
    identity = f"{source}{lower.__module__}.{lower.__qualname__}"
    label = hashlib.sha256(identity.encode()).hexdigest()[:16]
    for name in made:
        scope[name].__qualname__ = f"{name}_{label}"
    functions = dict(operations.functions) | {name: scope[name] for name in made}
    return replace(operations, functions=tuple(functions.items()))


def _put_rows(cells: Any, i: int, partial: Any, n: int = 0) -> None:
    """`put` and `give` for plain loops: a row at a time."""
    for column, part in zip(cells, partial, strict=True):
        column[i] = part


def _row(field: Field) -> str:
    dtype = DTYPES[field.dtype]
    return f"np.full({field.width}, {_constant(field.identity, dtype)}, np.{dtype})"


def _constant(value: Any, dtype: str) -> str:
    return f"np.{dtype}({str(value).replace('nan', 'np.nan').replace('inf', 'np.inf')})"


def _written(
    source: str,
    needed: dict[str, Any],
    dtypes: tuple[str, ...],
    widths: tuple[int | None, ...],
    identities: tuple[Any, ...],
    user: bool,
) -> Operations:
    """Operations from their source, with `load` and `put`; what a loop gives is the partial itself."""
    place = "    j = np.uint64(i)\n" if widths else ""
    read = "".join(f"cells[{i}][j]{'' if w is None else '.copy()'}, " for i, w in enumerate(widths))
    # Number by number: Numba's assignment of a row takes long to compile.
    write = place + "".join(
        f"    cells[{i}][j] = partial[{i}]\n"
        if width is None
        else f"    for k in range({width}):\n        cells[{i}][j, k] = partial[{i}][k]\n"
        for i, width in enumerate(widths)
    )
    source += f"\n\ndef load(cells, i):\n{place}    return ({read})\n"
    source += f"\n\ndef put(cells, i, partial):\n{write or '    pass'}\n"
    source += f"\n\ndef give(cells, i, partial, n):\n{write or '    pass'}\n"
    given = {name: function for name, function in needed.items() if function is not None}
    scope: dict[str, Any] = {"__name__": __name__, "np": np, **given}
    before = set(scope)
    exec(compile(source, "<windrow operations>", "exec"), scope)
    made = {n: f for n, f in scope.items() if n not in before and n != "__builtins__"}
    called = ",".join(f"{f.__module__}.{f.__qualname__}" for f in given.values())
    label = hashlib.sha256(f"{source}{called}".encode()).hexdigest()[:16]
    for name, function in made.items():
        function.__qualname__ = f"{name}_{label}"
    if any(width is not None for width in widths):
        made["put"].plain = made["give"].plain = _put_rows
    return Operations(tuple(made.items()), dtypes, widths, identities, user)
