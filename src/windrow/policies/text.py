"""The text form of a spec, close to the paper's: what `str(spec)` prints, `parse` reads.

    tumbling, count(100)
    sliding, delta(ts, 100.0), delta(ts, 10.0), partitioned, partitionAge(1 hour)
    sliding, count(100), count(10), partitioned, partitionCount(1000), least frequently updated

A column whose name is no plain word is written in double quotes, as in `delta("bid (EUR)", 5)`. An error shows the text
and points at the character where it went wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windrow.errors import QueryError
from windrow.policies import spec as specs
from windrow.wording import near

_POLICIES: dict[str, tuple[Callable[..., Any], str]] = {
    "count": (specs.count, "n"),
    "delta": (specs.delta, "a"),
    "time": (specs.time, "d"),
    "punct": (specs.punct, ""),
}
_EVICTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "partitionCount": (specs.partition_count, "n"),
    "tupleCount": (specs.tuple_count, "n"),
    "partitionAge": (specs.partition_age, "d"),
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z ]*")
# What stands in parentheses; a closing one inside of quotes does not end it.
_INSIDE = re.compile(r'\(((?:[^")]|"(?:[^"\\]|\\.)*")*)\)')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def parse(text: str) -> specs.Spec:
    """The window that a text describes; `str` of a window is such a text.

    Parameters
    ----------
    text
        Such as `"tumbling, count(100)"` or `"sliding, count(100), count(10), partitioned, partitionAge(1
        hour)"`.

    Returns
    -------
    Tumbling or Sliding
        The window as a value.

    Raises
    ------
    QueryError
        If the text is no window; the message points at the character where it goes wrong.

    Examples
    --------
    >>> spec = parse("sliding, count(100), count(10), partitioned, partitionAge(1 hour)")
    >>> spec.trigger
    Count(size=10)
    >>> print(spec)
    sliding, count(100), count(10), partitioned, partitionAge(1 hour)
    """
    if not isinstance(text, str):
        raise QueryError(f"the text of a window is a string, not {type(text).__name__}")
    return _Reader(text).spec()


@dataclass(frozen=True)
class _Part:
    """What stands between two commas: a name, and what is in its parentheses (None if there are none)."""

    at: int
    name: str
    inside: str | None
    inside_at: int


class _Reader:
    """Goes through a text part by part."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = iter(self._split())

    def wrong(self, at: int, problem: str) -> QueryError:
        """An error that points at a character."""
        shown = "".join(" " if character.isspace() else character for character in self._text)
        return QueryError(f"{problem}\n    {shown}\n    {' ' * at}^")

    def _split(self) -> list[_Part]:
        parts, at, text = [], 0, self._text
        while True:
            at = self._behind_blanks(at)
            name = _NAME.match(text, at)
            if name is None:
                found = "the text ends" if at >= len(text) else f"there is {text[at]!r}"
                raise self.wrong(at, f"a word is expected here, and {found}")
            end, inside, inside_at = at + len(name[0].rstrip()), None, 0
            behind = self._behind_blanks(end)
            if text[behind : behind + 1] == "(":
                found_inside = _INSIDE.match(text, behind)
                if found_inside is None:
                    raise self.wrong(behind, "this parenthesis is never closed")
                inside, inside_at = found_inside[1], behind + 1
                behind = self._behind_blanks(found_inside.end())
            parts.append(_Part(at, name[0].rstrip(), inside, inside_at))
            if behind == len(text):
                return parts
            if text[behind] != ",":
                raise self.wrong(behind, f"a comma is expected here, and there is {text[behind]!r}")
            at = behind + 1

    def _behind_blanks(self, at: int) -> int:
        return len(self._text) - len(self._text[at:].lstrip())

    def _take(self, what: str) -> _Part:
        part = next(self._parts, None)
        if part is None:
            raise self.wrong(len(self._text), f"{what} is missing at the end")
        return part

    def spec(self) -> specs.Spec:
        kind = self._take("the kind of window")
        if kind.name not in ("tumbling", "sliding") or kind.inside is not None:
            first, _, others = kind.name.partition(" ")
            if first in ("tumbling", "sliding"):
                at = kind.at + len(kind.name) - len(others.lstrip())
                raise self.wrong(at, f"a comma is expected before this, after {first!r}")
            guess = near(kind.name, ("tumbling", "sliding"))
            raise self.wrong(kind.at, f"a window is 'tumbling' or 'sliding', not {kind.name!r}{guess}")
        eviction_part = self._take("the eviction policy")
        offered = [name for name in _POLICIES if kind.name == "tumbling" or name != "punct"]
        eviction = self._policy(eviction_part, _POLICIES, "an eviction policy", offered)
        trigger: Any = None
        trigger_part = eviction_part
        if kind.name == "sliding":
            trigger_part = self._take("the trigger policy")
            trigger = self._policy(trigger_part, _POLICIES, "a trigger policy", offered)
        options = self._partitioning()
        try:
            if kind.name == "tumbling":
                return specs.tumbling(eviction, **options)
            return specs.sliding(eviction, trigger, **options)
        except QueryError as problem:
            at = trigger_part.at if isinstance(trigger, specs.Punct) else eviction_part.at
            if isinstance(trigger, specs.Count) and trigger.size == 0:
                at = trigger_part.at
            raise self.wrong(at, str(problem)) from None

    def _partitioning(self) -> dict[str, Any]:
        part = next(self._parts, None)
        if part is None:
            return {}
        if part.name != "partitioned" or part.inside is not None:
            guess = near(part.name, ("partitioned",))
            raise self.wrong(part.at, f"here the text ends, or 'partitioned' follows{guess}")
        options: dict[str, Any] = {"partitioned": True}
        part = next(self._parts, None)
        if part is None:
            return options
        evicting = self._policy(part, _EVICTIONS, "a partition eviction", list(_EVICTIONS))
        options["partition_eviction"] = evicting
        chosen = next(self._parts, None)
        if chosen is not None:
            if chosen.name not in specs.SELECTIONS or chosen.inside is not None:
                known = ", ".join(map(repr, specs.SELECTIONS))
                guess = near(chosen.name, specs.SELECTIONS)
                raise self.wrong(chosen.at, f"a selection is one of {known}{guess}")
            if isinstance(evicting, specs.PartitionAge):
                raise self.wrong(chosen.at, "partitionAge evicts what is too old, and selects nothing")
            options["selection"] = chosen.name
        part = next(self._parts, None)
        if part is not None:
            raise self.wrong(part.at, "the text should end here")
        return options

    def _policy(
        self, part: _Part, known: dict[str, tuple[Callable[..., Any], str]], what: str, offered: list[str]
    ) -> Any:
        if part.name not in known:
            possible = ", ".join(f"{k}(..)" for k in offered)
            raise self.wrong(part.at, f"{part.name!r} is not {what}{near(part.name, offered)}: {possible}")
        if part.inside is None:
            raise self.wrong(part.at + len(part.name), f"{part.name} needs parentheses")
        function, takes = known[part.name]
        begins = part.inside_at + len(part.inside) - len(part.inside.lstrip())
        try:
            return function(*self._arguments(part, takes, begins))
        except QueryError as problem:
            if "^" in str(problem):
                raise
            raise self.wrong(begins, str(problem)) from None

    def _arguments(self, part: _Part, takes: str, begins: int) -> list[Any]:
        assert part.inside is not None
        inside = part.inside.strip()
        if takes == "":
            if inside:
                raise self.wrong(begins, f"{part.name} takes nothing in its parentheses")
            return []
        if not inside:
            raise self.wrong(part.inside_at, f"{part.name} needs a value in its parentheses")
        if takes == "n":
            if not _WHOLE.fullmatch(inside):
                raise self.wrong(begins, f"{part.name} needs a whole number")
            return [int(inside)]
        if takes == "d":
            return [_duration(inside)]
        column, comma, threshold = _split_delta(part.inside)
        if not column.strip():
            raise self.wrong(begins, "delta needs the name of a column first")
        if not comma or not threshold.strip():
            raise self.wrong(part.inside_at + len(part.inside), "delta needs a threshold after its column")
        value = _duration(threshold.strip())
        name = self._column(column.strip(), begins)
        try:
            specs.delta(name, value)
        except QueryError as problem:
            at = part.inside_at + len(column) + 1
            raise self.wrong(at + len(threshold) - len(threshold.lstrip()), str(problem)) from None
        return [name, value]

    def _column(self, word: str, at: int) -> str:
        if not word.startswith('"'):
            return word
        try:
            name = json.loads(word)
        except json.JSONDecodeError as problem:
            raise self.wrong(at + problem.pos, "this is no name in quotes") from None
        return str(name)


def _split_delta(inside: str) -> tuple[str, str, str]:
    """The column of a delta policy, its comma if there is one, and what stands behind it."""
    quoted = _QUOTED.match(inside.lstrip())
    begins = len(inside) - len(inside.lstrip()) + (quoted.end() if quoted else 0)
    column, comma, threshold = inside[begins:].partition(",")
    return inside[:begins] + column, comma, threshold


def _duration(text: str) -> Any:
    """A plain number, or words that `windrow.durations` reads."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
