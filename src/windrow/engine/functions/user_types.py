"""The types of the numbers in a user's aggregate: what Numba says that its functions return.

A function that Numba cannot compile is called with ones to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numba

from windrow.aggregates.base import Scalars
from windrow.compiling.compiler import warn_interpreted
from windrow.compiling.integers import Int64, interpreted, strict
from windrow.compiling.native import NOT_COMPILED, TYPES, returned
from windrow.errors import UserFunctionError

# A number of one kind fits into those behind it.
JOINED = "bif"
PYTHON: dict[str, Any] = {"b": bool, "i": int, "f": float}
KINDS: dict[type, str] = {bool: "b", int: "i", Int64: "i"}


@cache
def partial_of(spec: Scalars, kinds: tuple[str, ...]) -> Scalars:
    """The partial with the types of its fields; functions that cannot be compiled are replaced by strict ones."""
    # The identities 0 and 1 are booleans to functions that make nothing else.
    found: list[Any] = ["b" if f.dtype != "f" and f.identity in (0, 1) else f.dtype for f in spec.fields]
    try:
        found = _joined(found, returned(spec.lift, [TYPES[k] for k in kinds]), spec)
        before: list[str] = []
        while before != found:
            before, partial = found, _packed(found, spec)
            found = _joined(found, returned(spec.combine, [partial, partial]), spec)
        roles: dict[str, Any] = {}
    except NOT_COMPILED as problem:
        warn_interpreted({"lift": spec.lift, "combine": spec.combine}, problem)
        ones = _ones(spec, kinds) or [f.identity for f in spec.fields]
        found = [
            max(f, KINDS.get(type(one), "f"), key=JOINED.index) for f, one in zip(found, ones, strict=True)
        ]
        given = {role: getattr(spec, role) for role in ("lift", "combine", "invert")}
        try:  # `lift` alone may be to blame, and `combine` must not wrap around either
            returned(spec.combine, [_packed(found, spec)] * 2)
        except NOT_COMPILED as other:
            warn_interpreted({"combine": spec.combine}, other)
        floats = not {*found, *kinds} - {"f"}
        roles = {
            role: strict(function, "".join(found), spec.bare, "partial", floats=floats)
            for role, function in given.items()
            if function is not None
        }
    fields = tuple(
        replace(f, dtype=kind, identity=PYTHON[kind](f.identity))
        for f, kind in zip(spec.fields, found, strict=True)
    )
    return replace(spec, fields=fields, **roles)


@cache
def lower_of(
    lower: Callable[..., Any], spec: Scalars, kinds: tuple[str, ...]
) -> tuple[Callable[..., Any], str]:
    """The function that makes results, and their kind."""
    try:
        found = returned(lower, [_packed([f.dtype for f in spec.fields], spec)])
        if isinstance(found, numba.types.Boolean) or _is_signed_or_float(found):
            return lower, _kind(found)
        problem: Exception = numba.core.errors.TypingError(f"lower returns {found}, which is not a number")
    except NOT_COMPILED as raised:
        problem = raised
    warn_interpreted({"lower": lower}, problem)
    ones = _ones(spec, kinds)
    one = None if ones is None else _tried(lower, ones[0] if spec.bare else tuple(ones))
    if one is None:  # it fails for ones: then integers are made of integers
        one = PYTHON[max((field.dtype for field in spec.fields), key=JOINED.index)](0)
    kind = KINDS.get(type(one), "f")
    floats = kind == "f" and all(field.dtype == "f" for field in spec.fields)
    return strict(lower, kind, True, "result", floats=floats), kind


def _is_signed_or_float(type_: Any) -> bool:
    return isinstance(type_, numba.types.Float) or (isinstance(type_, numba.types.Integer) and type_.signed)


def _ones(spec: Scalars, kinds: tuple[str, ...]) -> list[Any] | None:
    """The partial of two events whose numbers are all 1; None if that fails."""
    lifted = _tried(spec.lift, *(1 if kind == "i" else 1.0 for kind in kinds))
    found = None if lifted is None else _tried(spec.combine, lifted, lifted)
    if found is None:
        return None
    parts = (found,) if spec.bare else found
    return list(parts) if isinstance(parts, tuple) and len(parts) == len(spec.fields) else None


def _tried(function: Any, *arguments: Any) -> Any:
    try:
        return interpreted(function)(*arguments)
    except Exception:  # a user's function may raise anything, and will do so again where it matters
        return None


def _packed(kinds: Sequence[str], spec: Scalars) -> Any:
    types = [TYPES[kind] for kind in kinds]
    return types[0] if spec.bare else numba.types.Tuple(types)


def _joined(kinds: list[str], returned: Any, spec: Scalars) -> list[Any]:
    """The kinds of fields that hold numbers of these kinds, and what a function returns."""
    parts = list(returned.types) if isinstance(returned, numba.types.BaseTuple) else [returned]
    if any(isinstance(part, numba.types.Integer) and not part.signed for part in parts):
        raise numba.core.errors.TypingError(f"it returns {returned}, and integers have a sign")
    if len(parts) != len(kinds):
        raise UserFunctionError(
            f"{spec.name!r}: identity has {len(kinds)} numbers, but lift or combine returns {len(parts)}"
        )
    return [max(kind, _kind(part), key=JOINED.index) for kind, part in zip(kinds, parts, strict=True)]


def _kind(type_: Any) -> str:
    if isinstance(type_, numba.types.Boolean):
        return "b"
    return "i" if isinstance(type_, numba.types.Integer) else "f"
