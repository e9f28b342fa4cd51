"""From a YAML file to a `Pipeline`. What is wrong is reported with file, line, column and field, all of it at once.

    source:     {kafka: payments, servers: "broker:9092", schema: {ts: timestamp, user: string, amount: double}}
    watermark:  10 seconds
    query:
      time: ts
      key: user
      windows:    {1m: {tumbling: 1 minute}, 1h: {sliding: 1 hour, every: 1 second}}
      aggregates: {n: count, total: {sum: amount}}
    sink:       {parquet: out/windows}
    checkpoint: out/checkpoint

Folders and files are taken from the folder of the YAML file, so that a pipeline goes on from its checkpoint wherever
the command is given.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from windrow.errors import QueryError
from windrow.options import SparkOptions
from windrow.pipelines.calls import AGGREGATES, WINDOWS, Form, call, column_like
from windrow.pipelines.document import SpecError, Value, place_of, read, together
from windrow.pipelines.fitting import misfits
from windrow.pipelines.spec import (
    SINKS,
    SOURCES,
    ConsoleSink,
    Dedupe,
    FileSource,
    ParquetSink,
    Pipeline,
    ReplaySource,
    Watermark,
    require_trigger,
)
from windrow.span import span
from windrow.spec import QuerySpec
from windrow.triggers import CLOSE, Trigger, each_batch, every, every_rows, when

# Options of `on_spark` that a pipeline decides itself. The watermark has a field of its own, which also says how far ahead
# events may be: of the clock, and not of the watermark, which stands still where no events come.
_DECIDED = ("watermark", "metrics", "max_ahead")
OPTIONS = [name for name in inspect.signature(SparkOptions).parameters if name not in _DECIDED]
TRIGGERS: dict[str, Callable[..., Trigger]] = {
    "every": every,
    "every_rows": every_rows,
    "each_batch": each_batch,
    "when": when,
}
QUERY_FIELDS = ("time", "key", "where", "windows", "aggregates", "select", "ordered")
QUERY_NEEDED = ("time", "windows", "aggregates")
_FIELDS = list(inspect.signature(Pipeline).parameters)
_FIELDS.remove("options")  # they are fields of the query
NEEDED = ("source", "query", "sink", "watermark")


def load(path: str | os.PathLike[str]) -> Pipeline:
    """The pipeline that a YAML file describes; `SpecError` says what is wrong with it, and where.

    >>> import tempfile
    >>> text = '''
    ... source: {files: events, schema: {ts: timestamp, user: string}}
    ... watermark: 10 seconds
    ... query:
    ...   time: ts
    ...   key: user
    ...   windows: {1h: {sliding: 1 hour, evry: 1 second}}
    ...   aggregates: {n: count}
    ... sink: console
    ... '''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    ...     _ = file.write(text), file.flush()
    ...     try:
    ...         load(file.name)
    ...     except ValueError as problem:
    ...         print(str(problem).partition(":")[2].partition(" Choose")[0])
    7:35: query.windows.1h: sliding has no field 'evry'; did you mean 'every'?
    """
    root = read(path)
    problems: list[str] = []
    found = root.fields(_FIELDS, what="a pipeline", problems=problems)
    missing = [name for name in NEEDED if name not in found]
    if missing and not problems:
        needed = f"a pipeline needs {' and '.join(missing)}: its fields are {', '.join(_FIELDS)}"
        problems += root.problem(needed).problems
    parts = together(
        {name: partial(_READERS[name], v) for name, v in found.items() if name != "query"}, problems
    )
    query_parts: dict[str, Any] = {}
    if "query" in found:
        parts |= together({"query": partial(read_query, found["query"], query_parts)}, problems)
        if query_parts.get("ordered"):
            place = found["query"].fields()["ordered"]
            problems += place.problem("Spark gives no order to rows, so none can be promised").problems
    unfit = misfits(found, parts, query_parts)
    # What is wrong with one part of the query is reported for that part, and not for the whole query again.
    reported = {problem.partition(": query.")[2].partition(": ")[2] for problem in unfit} - {""}
    problems = [p for p in problems if p.partition(": query: ")[2] not in reported] + unfit
    parts["options"] = {name: query_parts[name] for name in OPTIONS if name in query_parts}
    parts.setdefault("name", Path(path).stem)
    # Whether parts go together is checked where some of them are missing or wrong, too.
    stand_ins = {"source": None, "query": None, "watermark": None, "sink": ConsoleSink()}
    try:
        pipeline = Pipeline(**(stand_ins | parts))
    except QueryError as problem:
        if parts.keys() >= found.keys() - {"query"}:
            problems += root.problem(str(problem)).problems
    if problems:
        raise SpecError(sorted(set(problems), key=partial(place_of, str(path))))
    return _at(pipeline, Path(path).resolve().parent)


def read_query(value: Value, query_parts: dict[str, Any]) -> QuerySpec:
    """The query; what can be read of its fields, options included, is added to `query_parts`."""
    problems: list[str] = []
    found = value.fields([*QUERY_FIELDS, *OPTIONS], what="a query", problems=problems)
    missing = [name for name in QUERY_NEEDED if name not in found]
    if missing and not problems:
        problems += value.problem(f"a query needs {' and '.join(missing)}").problems
    readers: dict[str, Callable[[Value], Any]] = {
        "time": _time,
        "key": _key,
        "where": _expression,
        "select": lambda v: together({n: partial(_expression, each) for n, each in v.fields().items()}),
        "ordered": partial(Form("a query", QuerySpec).argument, "ordered"),
        "windows": lambda v: _named(v, WINDOWS, problems, what="window"),
        "aggregates": lambda v: _named(v, AGGREGATES, problems, what="aggregate"),
    }
    form = Form("a query", SparkOptions)
    for name in OPTIONS:
        readers[name] = partial(_option, form, name)
    query_parts |= together({name: partial(readers[name], v) for name, v in found.items()}, problems)
    if problems:
        raise SpecError(problems)
    try:
        return QuerySpec.checked(
            query_parts["time"],
            query_parts.get("key"),
            query_parts["windows"],
            query_parts["aggregates"],
            query_parts.get("ordered", False),
            where=query_parts.get("where"),
            select=query_parts.get("select"),
        )
    except QueryError as problem:
        raise value.problem(str(problem)) from None


def _time(value: Value) -> Any:
    return call(value, {"span": span}, what="time") if value.is_mapping else value.text("the time column")


def _expression(value: Value) -> Any:
    return column_like(value, value.text("an expression"))


def _key(value: Value) -> Any:
    if value.is_mapping:
        return {name: _expression(each) for name, each in value.fields().items()}
    columns = value.items() if value.is_list else [value]
    return [column.text("a key column") for column in columns]


def _named(
    value: Value, functions: Mapping[str, Callable[..., Any]], problems: list[str], *, what: str
) -> dict[str, Any]:
    """Those that can be read, by their names; what is wrong with others is added to `problems`."""
    fields = value.fields(problems=problems)
    return together({name: partial(call, v, functions, what=what) for name, v in fields.items()}, problems)


def _option(form: Form, name: str, value: Value) -> Any:
    """An option of the query, checked by itself so that an error has its place."""
    found = _emit(value) if name == "emit" else form.argument(name, value)
    # Early rows go with a mode; whether it is that of the query is asked where all of it is known.
    mode = "update" if isinstance(found, Trigger) and not found.discarding else "append"
    try:
        SparkOptions(**({"mode": mode} | {name: found}))
    except QueryError as problem:
        raise value.problem(str(problem)) from None
    return found


def _emit(value: Value) -> Any:
    if not value.is_mapping and value.text("when rows come") == CLOSE:
        return CLOSE
    return call(value, TRIGGERS, what="trigger")


def _made(function: Callable[..., Any], name: str) -> Callable[[Value], Any]:
    """A reader of one thing, given by its first value alone or by its fields."""
    form = Form(name, function)

    def reader(value: Value) -> Any:
        if value.is_mapping:
            return form.call(value, value.fields(form.parameters, what=name))
        return form.call(value, {form.in_order[0]: value})

    return reader


def _text(what: str) -> Callable[[Value], str]:
    return lambda value: value.text(what)


def _trigger(value: Value) -> str:
    found = value.text("a trigger")
    try:
        require_trigger(found)
    except QueryError as problem:
        raise value.problem(str(problem)) from None
    return found


_READERS: dict[str, Callable[[Value], Any]] = {
    "source": lambda value: call(value, SOURCES, what="source"),
    "sink": lambda value: call(value, SINKS, what="sink"),
    "watermark": _made(Watermark, "a watermark"),
    "dedupe": _made(Dedupe, "dedupe"),
    "checkpoint": _text("a checkpoint"),
    "trigger": _trigger,
    "settings": lambda value: Form("a pipeline", Pipeline).argument("settings", value),
    "name": _text("a name"),
}


def _at(pipeline: Pipeline, folder: Path) -> Pipeline:
    """The same with places that are relative to the folder of the file made absolute."""

    def placed(name: str) -> str:
        return name if "://" in name else str(folder / Path(name).expanduser())

    source, sink = pipeline.source, pipeline.sink
    if isinstance(source, FileSource):
        source = replace(source, folder=placed(source.folder))
    if isinstance(source, ReplaySource):
        source = replace(source, file=placed(source.file))
    if isinstance(sink, ParquetSink):
        sink = replace(sink, folder=placed(sink.folder))
    checkpoint = None if pipeline.checkpoint is None else placed(pipeline.checkpoint)
    return replace(pipeline, source=source, sink=sink, checkpoint=checkpoint)
