"""Checks of names: the columns of a table, and what a query calls its windows and aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from windrow.errors import QueryError
from windrow.wording import did_you_mean, listed, with_article


def require_columns(schema: pa.Schema, names: tuple[str, ...]) -> None:
    """An error that lists what is there, if a column is missing or there twice."""
    for name in names:
        found = schema.get_all_field_indices(name)
        if len(found) == 0:
            raise QueryError(no_such_column(name, schema.names))
        if len(found) > 1:
            raise QueryError(f"column {name!r} occurs {len(found)} times")


def no_such_column(name: str, names: Sequence[str]) -> str:
    """The sentence that there is no such column, with the one that may be meant.

    >>> no_such_column("usr", ["ts", "user"])
    "there is no column 'usr'; did you mean 'user'? The columns are 'ts', 'user'"
    """
    if name.startswith("= "):
        return f"only queries compute expressions: compute {name.removeprefix('= ')!r} into a column before"
    if not names:
        return f"there is no column {name!r}, nor any other"
    meant = did_you_mean(name, names)
    if not meant and any(sign in name for sign in "+*/<>=("):
        meant = f"; wr.expr({name!r}) would be an expression."
    return f"there is no column {name!r}{meant}{' The' if meant else '; the'} columns are {listed(names)}"


def named_pairs(specs: Any, *, what: str) -> list[tuple[Any, Any]]:
    """Names and specs, from a mapping or from pairs.

    >>> named_pairs({"n": 1}, what="window"), named_pairs([("n", 1)], what="window")
    ([('n', 1)], [('n', 1)])
    """
    given = specs.items() if isinstance(specs, Mapping) else specs
    pairs = list(given) if isinstance(given, Iterable) else [given]
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise QueryError(
                f'each {what} needs a name: give {what}s as {{"name": {what}}}, '
                f"or as pairs of a name and {with_article(what)}, not {pair}"
            )
    return pairs
