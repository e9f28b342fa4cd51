"""A YAML file whose every value knows where it stands, so that an error can say it.

    pipeline.yaml:9:24: query.windows.1h: sliding has no field 'evry'; did you mean 'every'? ...
    file          line column   field     what is wrong, and what was possible

Of YAML's guesses only the plain ones are kept: null, true and false, decimal numbers, dates. So `on` and `no` are
words and `1:30` is a text; old YAML makes them a boolean and the number 90. `${NAME}` in a text is the environment
variable of that name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from windrow.errors import QueryError
from windrow.wording import choices

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class SpecError(QueryError):
    """A pipeline that cannot be run as written; `problems` are sentences, each with its place."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML with few guesses."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML wants a plain attribute


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
    (
        "timestamp",
        r"\d{4}-\d\d-\d\d(?:[Tt ]\d{1,2}:\d\d:\d\d(?:\.\d*)?(?: ?(?:Z|[-+]\d\d?(?::\d\d)?))?)?",
        list("0123456789"),
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


@dataclass(frozen=True)
class Value:
    """A node of the file, and the field that it is the value of."""

    file: str
    field: str
    node: yaml.Node

    def problem(self, sentence: str, *, at: yaml.Node | None = None) -> SpecError:
        """The error that this is wrong, with its place."""
        mark = (at or self.node).start_mark
        field = f"{self.field}: " if self.field else ""
        return SpecError([f"{self.file}:{mark.line + 1}:{mark.column + 1}: {field}{sentence}"])

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    def fields(
        self, known: Iterable[str] | None = None, *, what: str = "this", problems: list[str] | None = None
    ) -> dict[str, Value]:
        """The values of a mapping by their names, which must be among the known ones.

        What is wrong with names is added to `problems`, or is an error where that is None.
        """
        if not isinstance(self.node, yaml.MappingNode):
            names = "" if known is None else f" of {', '.join(known)}"
            raise self.problem(f"fields are needed here{names}, not {self._shown()}")
        found: dict[str, Value] = {}
        wrong: list[str] = []
        for key, node in self.node.value:
            name = key.value
            if not isinstance(name, str):
                wrong += self.problem("the name of a field is a word", at=key).problems
            elif name in found:
                wrong += self.problem(f"{name!r} is there twice", at=key).problems
            elif known is not None and name not in known:
                sentence = f"{what} has no field {name!r}{choices(name, known)}"
                wrong += self.problem(sentence, at=key).problems
            else:
                found[name] = Value(self.file, f"{self.field}.{name}".lstrip("."), node)
        if wrong and problems is None:
            raise SpecError(wrong)
        if problems is not None:
            problems += wrong
        return found

    def mention(self, word: str) -> Value:
        """The first single value in here that has the word in it, or name of a field; this value if none has."""
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        nodes, names = [self.node], []
        while nodes:
            node = nodes.pop()
            if isinstance(node, yaml.ScalarNode) and pattern.search(node.value):
                return Value(self.file, self.field, node)
            if isinstance(node, yaml.MappingNode):
                names += [key for key, _ in node.value if key.value == word]
                nodes += [value for _, value in reversed(node.value)]
            elif isinstance(node, yaml.SequenceNode):
                nodes += reversed(node.value)
        return Value(self.file, self.field, names[0]) if names else self

    def items(self) -> list[Value]:
        """The values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.problem(f"a list is needed here, not {self._shown()}")
        return [Value(self.file, f"{self.field}[{i}]", node) for i, node in enumerate(self.node.value)]

    def scalar(self) -> Any:
        """A single value, of the type that it looks like."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.problem(f"one value is needed here, not {self._shown()}")
        try:
            value = yaml.SafeLoader("").construct_object(self.node)
        except (yaml.YAMLError, ValueError) as broken:
            raise self.problem(f"{self.node.value!r} cannot be read: {broken}") from None
        return _VARIABLE.sub(self._variable, value) if isinstance(value, str) else value

    def text(self, what: str) -> str:
        """A single value that must be a text."""
        value = self.scalar()
        if not isinstance(value, str) or not value:
            raise self.problem(f"{what} is a text, not {self._shown()}")
        return value

    def _variable(self, found: re.Match[str]) -> str:
        try:
            return os.environ[found[1]]
        except KeyError:
            raise self.problem(f"there is no environment variable {found[1]}") from None

    def _shown(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return repr(self.node.value) if self.node.value else "nothing"
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"


def read(path: str | os.PathLike[str]) -> Value:
    """The root of a YAML file."""
    file = str(path)
    try:
        text = Path(path).read_text("utf-8")
    except OSError as problem:
        raise SpecError([f"{file}: cannot be read: {problem.strerror or problem}"]) from None
    except UnicodeDecodeError:
        raise SpecError([f"{file}: is not a text in UTF-8"]) from None
    try:
        node = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise SpecError([f"{file}:{place}: this is not YAML: {problem.problem or problem.context}"]) from None
    except yaml.YAMLError as problem:
        raise SpecError([f"{file}:1:1: this is not YAML: {problem}"]) from None
    if node is None:
        raise SpecError([f"{file}:1:1: the file is empty"])
    return Value(file, "", node)


def place_of(file: str, problem: str) -> tuple[int, int, str]:
    """The line and the column of a problem, and what it says."""
    line, column, rest = problem.removeprefix(f"{file}:").split(":", 2)
    return int(line), int(column), rest


def together(readers: Mapping[str, Callable[[], Any]], problems: list[str] | None = None) -> dict[str, Any]:
    """What each reader gives; what is wrong in any of them is raised together, or added to `problems`."""
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, reader in readers.items():
        try:
            found[name] = reader()
        except SpecError as error:
            wrong += error.problems
    if wrong and problems is None:
        raise SpecError(wrong)
    if problems is not None:
        problems += wrong
    return found
