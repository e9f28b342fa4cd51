"""Parts of messages: articles, numbers, and the name that was probably meant by one that does not exist."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

# What other libraries call them, where spelling alone does not lead there.
_ELSEWHERE = {
    "argmax": ("arg_max", "max_by"),
    "argmin": ("arg_min", "min_by"),
    "bigint": ("int64",),
    "boolean": ("bool",),
    "collect": ("array_agg", "collect_list", "list"),
    "console": ("stdout",),
    "correlation": ("corr",),
    "covariance": ("cov",),
    "cumulate": ("expanding",),
    "distinct": ("count_distinct", "n_unique", "nunique"),
    "double": ("float64",),
    "int": ("int32",),
    "mean": ("average", "avg"),
    "quantile": ("percentile",),
    "sliding": ("hop", "hopping", "rolling"),
    "slope": ("regr_slope",),
    "stddev": ("std",),
    "string": ("char", "str", "text", "varchar"),
    "sum": ("total",),
    "timestamp": ("datetime",),
    "tumbling": ("tumble",),
    "variance": ("var",),
}


def with_article(noun: str) -> str:
    """A noun with a or an before it.

    >>> with_article("window"), with_article("aggregate")
    ('a window', 'an aggregate')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def listed(values: Iterable[object]) -> str:
    """Values in quotes, one after the other."""
    return ", ".join(map(repr, values))


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The existing name that was probably meant by `name`; None if no other is near.

    >>> nearest("avg", ["mean", "sum"]), nearest("usr", ["ts", "user"]), nearest("x", ["ts"])
    ('mean', 'user', None)
    """
    spelled = {other.lower(): other for other in known}
    word = str(name).lower()
    near = [here for here, there in _ELSEWHERE.items() if word in there]
    near += difflib.get_close_matches(word, spelled, n=1, cutoff=0.7)
    return next((spelled[other] for other in near if other in spelled), None)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A question behind a name that is not there, or nothing if no other is near.

    >>> did_you_mean("avg", ["mean", "sum"])
    "; did you mean 'mean'?"
    """
    meant = nearest(name, known)
    return "" if meant is None else f"; did you mean {meant!r}?"


def near(name: object, known: Iterable[str]) -> str:
    """The same in parentheses, within a sentence.

    >>> near("cuont", ["count", "delta"])
    " (did you mean 'count'?)"
    """
    meant = nearest(name, known)
    return "" if meant is None else f" (did you mean {meant!r}?)"


def choices(name: object, known: Iterable[str]) -> str:
    """What follows a name that is not there: the likeliest other one, and all of them.

    >>> choices("evry", ["length", "every"])
    "; did you mean 'every'? Choose from length, every"
    >>> choices("delta", ["kafka", "parquet"])
    '; choose from kafka, parquet'
    """
    names = list(known)
    meant = did_you_mean(name, names)
    return f"{meant} Choose from {', '.join(names)}" if meant else f"; choose from {', '.join(names)}"


def number_text(value: float) -> str:
    """A number as a person reads it: six digits, and no more.

    >>> [number_text(value) for value in (1234567.0, 0.25, 0.00123, 2.5e13)]
    ['1,234,567', '0.25', '0.0012', '2.5e+13']
    """
    if not math.isfinite(value):
        return str(value)
    if value and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.4g}"
    digits = max(0, 5 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(digits, 4)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
