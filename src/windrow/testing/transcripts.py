"""Transcripts: what goes into an operator and what comes out, as YAML that a person can read.

    about: an event within the lateness revises its window
    query:
      time: t                                   # or 'span("s", "e")'; key: and ordered: as in windrow.query
      windows: {w: "tumbling(10)"}              # as one would type them
      aggregates: {n: "count()"}
    mode: update                                # append unless said otherwise
    lateness: 5
    columns: {t: int64}                         # Arrow types of the events
    steps:
      - events: |                               # a small table; `-` is null, quotes are optional
          t
          1
          4
      - watermark: 10
        expect: |
          window start end n op     revision
          w      0     10  2 insert 0
      - finish: true

An `expect` under a step is compared with the rows that the step emitted (none, if left out),
`late` with the late rows since, `error` with the message of the error that the step must raise.
Other steps: `snapshot: true` (save, and go on with what was restored), `add_window: {name: spec}`
(with `complete_from`, the start of its first complete window), `remove_window: name`,
`add_aggregate: {name: spec}` (with `complete_from`), `remove_aggregate: name`.
Times are written in full (`2024-03-31T01:30`, `T01:30:00.25Z`), floats as Python writes them. The
functions of a window or an aggregate of one's own are passed as `functions`, by name: `deterministic(trips, state=0)`;
a predicate is the name of a boolean column, or of an expression or a function passed in that way.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import windrow
from windrow.errors import WindrowError
from windrow.query import Query, query
from windrow.span import Span
from windrow.testing.compare import assert_same

NULL = "-"
ACTIONS = {"events", "watermark", "finish", "snapshot"}
ACTIONS |= {"add_window", "remove_window", "add_aggregate", "remove_aggregate"}
OUTPUT_TYPES = {"op": pa.string(), "revision": pa.int64(), "window": pa.string()}


class EmbeddedEngine:
    """What a transcript runs on: the engine inside this process. Another one overrides its methods."""

    def operator(self, query: Query, *, mode: str, lateness: Any, on_bad: str) -> Any:
        """A fresh operator."""
        return query.operator(mode=mode, lateness=lateness, on_bad=on_bad)

    def through_snapshot(self, operator: Any) -> Any:
        """The operator after it was saved and restored."""
        return operator.query.restore(operator.snapshot())

    def add_window(self, operator: Any, name: str, window: Any, complete_from: Any) -> Any:
        """Add a window; gives the start from which the operator says it is complete."""
        return operator.add_window(name, window)

    def add_aggregate(self, operator: Any, name: str, aggregate: Any, complete_from: Any) -> Any:
        """Add an aggregate; gives the start from which the operator says it is complete."""
        return operator.add_aggregate(name, aggregate)


def load_transcript(path: str | Path) -> dict[str, Any]:
    """Read a YAML transcript."""
    import yaml

    with open(path, encoding="utf-8") as file:
        transcript: dict[str, Any] = yaml.load(file, Loader=yaml.BaseLoader)
    return transcript


class Transcript:
    """A transcript (a path, or what YAML made of one) whose words have become tables, points and specs.

    `functions` are names of one's own that specs in the transcript may use: an aggregate, a function of
    a window, a predicate.

    >>> from windrow.testing import Transcript
    >>> transcript = Transcript({
    ...     "query": {"time": "t", "windows": {"w": "tumbling(5)"}, "aggregates": {"n": "count()"}},
    ...     "columns": {"t": "int64"},
    ...     "steps": [{"events": "t\\n1\\n2"}, {"watermark": "5"}, {"finish": True}],
    ... })
    >>> [(step.action, step.argument) for step in transcript.steps[1:]]
    [('watermark', 5), ('finish', True)]
    """

    def __init__(
        self, transcript: str | Path | Mapping[str, Any], *, functions: Mapping[str, Any] | None = None
    ) -> None:
        if isinstance(transcript, (str, Path)):
            transcript = load_transcript(transcript)
        self._words = transcript
        self._functions = functions or {}
        self.schema = pa.schema([(n, arrow_type(t)) for n, t in transcript["columns"].items()])
        self.mode: str = transcript.get("mode", "append")
        self.lateness: Any = _number(transcript.get("lateness", "0"))
        self.on_bad: str = transcript.get("on_bad", "raise")
        self.steps = [Step(self, words) for words in transcript["steps"]]

    @cached_property
    def query(self) -> Query:
        """Made when first read: a query that is refused may be what the transcript expects."""
        spec = self._words["query"]
        return query(
            time=self.time,
            key=spec.get("key", ()),
            windows={name: self.spec(text) for name, text in spec["windows"].items()},
            aggregates={name: self.spec(text) for name, text in spec["aggregates"].items()},
            ordered=spec.get("ordered") in ("true", True),
        )

    @cached_property
    def time(self) -> str | Span:
        """The time column, or the `Span` of a query over span events."""
        text: str = self._words["query"]["time"]
        return self.spec(text) if "(" in text else text

    def point(self, text: str) -> Any:
        """A point on the time column, as an Arrow scalar of its type or a plain number."""
        if text == NULL:
            return None
        type_ = self.schema.field(self.time if isinstance(self.time, str) else self.time.start).type
        scalar = _parse(pa.array([text], pa.string()), type_)[0]
        return scalar if pa.types.is_temporal(type_) else scalar.as_py()

    def spec(self, text: str) -> Any:
        """`tumbling(10)` as one would type it: a call of a windrow function with literals, or a name."""
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Name):
            return self._functions[tree.id]
        assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name), f"not a spec: {text!r}"
        maker = self._functions.get(tree.func.id) or getattr(windrow, tree.func.id)
        arguments = [self._literal(node) for node in tree.args]
        return maker(*arguments, **{k.arg: self._literal(k.value) for k in tree.keywords if k.arg})

    def _literal(self, node: ast.expr) -> Any:
        """A literal, `at("2024-01-01T00:00")`: a point in time, or a name: a function of one's own."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "at":
            return self.point(ast.literal_eval(node.args[0]))
        if isinstance(node, ast.Name):
            return self._functions[node.id]
        return ast.literal_eval(node)


class Step:
    """What is done to the operator, `action`, and `expected`: the texts under it that say what comes of it."""

    def __init__(self, transcript: Transcript, words: Mapping[str, Any]) -> None:
        self._transcript = transcript
        self.action = next(iter(words))
        assert self.action in ACTIONS, f"a step begins with what is done, not with {self.action!r}"
        self._word = words[self.action]
        self.expected: dict[str, str] = {name: text for name, text in words.items() if name != self.action}

    @cached_property
    def argument(self) -> Any:
        """A table of events, a point, a pair of a name and a spec, a name; else as it was written."""
        if self.action == "events":
            return inline_table(self._word, self._transcript.schema)
        if self.action == "watermark":
            return self._transcript.point(self._word)
        if self.action in ("add_window", "add_aggregate"):
            ((name, text),) = self._word.items()
            return name, self._transcript.spec(text)
        return self._word


def run_transcript(
    transcript: str | Path | Mapping[str, Any],
    engine: EmbeddedEngine | None = None,
    *,
    functions: Mapping[str, Any] | None = None,
) -> None:
    """Run a transcript, and raise an `AssertionError` at the first step whose rows are not those it expects.

    Parameters
    ----------
    transcript
        The path of a YAML file, or what YAML made of one (this needs the `pyyaml` package only for a file).
    engine
        What it runs on; the engine inside this process by default.
    functions
        Names that specs in the transcript may use: an aggregate, a function of a window, a predicate.

    Raises
    ------
    AssertionError
        With the number of the step, and the first row that is missing, wrong or too many.

    Examples
    --------
    >>> from windrow.testing import run_transcript
    >>> run_transcript({
    ...     "query": {"time": "t", "windows": {"w": "tumbling(5)"}, "aggregates": {"n": "count()"}},
    ...     "columns": {"t": "int64"},
    ...     "steps": [{"events": "t\\n1\\n2"}, {"finish": True, "expect": "window start end n\\nw 0 5 2"}],
    ... })
    """
    _Run(Transcript(transcript, functions=functions), engine or EmbeddedEngine()).run()


class _Run:
    """One transcript on one engine."""

    def __init__(self, transcript: Transcript, engine: EmbeddedEngine) -> None:
        self.transcript = transcript
        self.engine = engine
        self.operator: Any = None

    def run(self) -> None:
        transcript = self.transcript
        for number, step in enumerate(transcript.steps, start=1):
            where = f"step {number}"
            emitted: pa.Table | None = None
            error = step.expected.get("error")
            try:
                if self.operator is None:
                    how = {
                        "mode": transcript.mode,
                        "lateness": transcript.lateness,
                        "on_bad": transcript.on_bad,
                    }
                    self.operator = self.engine.operator(transcript.query, **how)
                emitted = self._do(step, where)
            except WindrowError as problem:
                assert error is not None, f"{where}: {problem}"
                assert error in str(problem), f"{where}: expected {error!r} in: {problem}"
                continue
            assert error is None, f"{where}: no error, but expected one with {error!r}"
            self._compare(step, emitted, where)

    def _do(self, step: Step, where: str) -> pa.Table | None:
        if step.action == "events":
            rows = self.operator.process(step.argument)
            return rows if self.transcript.query.ordered else None
        if step.action == "watermark":
            return self.operator.advance(step.argument)
        if step.action == "finish":
            return self.operator.finish()
        if step.action == "snapshot":
            self.operator = self.engine.through_snapshot(self.operator)
        elif step.action in ("add_window", "add_aggregate"):
            self._add(step, getattr(self.engine, step.action), where)
        else:  # remove_window, remove_aggregate
            getattr(self.operator, step.action)(step.argument)
        return None

    def _add(self, step: Step, add: Callable[..., Any], where: str) -> None:
        name, spec = step.argument
        expected = self.transcript.point(step.expected["complete_from"])
        got = add(self.operator, name, spec, expected)
        want, got = (v.as_py() if isinstance(v, pa.Scalar) else v for v in (expected, got))
        assert got == want, f"{where}: {name!r} is complete from {got!r}, not from {want!r}"

    def _compare(self, step: Step, emitted: pa.Table | None, where: str) -> None:
        texts, schema = step.expected, self.transcript.schema
        if emitted is not None and "expect" in texts:
            types = {**OUTPUT_TYPES, **{f.name: f.type for f in emitted.schema if f.name != "window"}}
            names = texts["expect"].split("\n", 1)[0].split()
            assert names == emitted.column_names, (
                f"{where}: expected columns {names}, got {emitted.column_names}"
            )
            wanted = inline_table(texts["expect"], pa.schema([(n, types[n]) for n in names]))
            assert_same(wanted, _plain_window(emitted), note=where)
        elif emitted is not None:
            assert emitted.num_rows == 0, f"{where}: no rows expected, got {emitted.to_pylist()}"
        late = self.operator.late() if "late" in texts else None
        if late is not None:
            wanted = inline_table(texts["late"], schema)
            assert late.to_pylist() == wanted.to_pylist(), f"{where}: late rows {late.to_pylist()}"
        if "bad" in texts:
            bad = self.operator.bad()
            wanted = inline_table(texts["bad"], schema)
            kept = bad.select(schema.names)
            assert repr(kept.to_pylist()) == repr(wanted.to_pylist()), f"{where}: bad rows {bad.to_pylist()}"
            assert bad["bad_reason"].null_count == 0, f"{where}: a bad row without a reason"


def arrow_type(name: str) -> pa.DataType:
    """`timestamp[us, Europe/Berlin]`, `decimal(12, 2)`, `int64`: an Arrow type from its name.

    >>> arrow_type("timestamp[us, Europe/Berlin]")
    TimestampType(timestamp[us, tz=Europe/Berlin])
    """
    head, _, rest = name.replace("(", "[").partition("[")
    arguments = [part.strip() for part in rest.rstrip("])").split(",") if part.strip()]
    if head == "timestamp":
        return pa.timestamp(arguments[0], arguments[1] if len(arguments) > 1 else None)
    if head == "decimal":
        return pa.decimal128(int(arguments[0]), int(arguments[1]))
    return pa.type_for_alias(name)


def inline_table(text: str, schema: pa.Schema) -> pa.Table:
    """A table from lines of words; the first line names columns of `schema`.

    >>> import pyarrow as pa
    >>> inline_table("t x\\n1 -\\n2 'a b'", pa.schema([("t", pa.int64()), ("x", pa.string())])).to_pylist()
    [{'t': 1, 'x': None}, {'t': 2, 'x': 'a b'}]
    """
    lines = [shlex.split(line) for line in text.strip().splitlines() if line.strip()]
    names = lines[0] if lines else schema.names
    for line in lines[1:]:
        assert len(line) == len(names), f"{len(names)} columns {names}, but {len(line)} values in {line}"
    columns = {}
    for position, name in enumerate(names):
        words = [None if line[position] == NULL else line[position] for line in lines[1:]]
        columns[name] = _parse(pa.array(words, pa.string()), schema.field(name).type)
    return pa.table(columns, schema=pa.schema([schema.field(n) for n in names]))


def _parse(words: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        utc = pc.cast(words, pa.timestamp(type_.unit, "UTC"))
        return utc.cast(type_)
    if pa.types.is_list(type_) or pa.types.is_struct(type_):
        plain = [None if word is None else ast.literal_eval(word) for word in words.to_pylist()]
        return pa.array(plain, type_)
    if pa.types.is_floating(type_):
        return pa.array([None if word is None else float(word) for word in words.to_pylist()], type_)
    return words.cast(type_)


def _plain_window(table: pa.Table) -> pa.Table:
    position = table.column_names.index("window")
    return table.set_column(position, "window", table["window"].cast(pa.string()))


def _number(text: Any) -> Any:
    """A lateness: a number where it looks like one, else a duration."""
    try:
        return ast.literal_eval(text) if isinstance(text, str) else text
    except (ValueError, SyntaxError):
        return text
