"""YAML files as JSON schema, for editors that complete and check them. All of it follows from the signatures that read the files.

# yaml-language-server: $schema=query.json        the first line of a file, for editors with the YAML language server
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from windrow.options import SparkOptions
from windrow.pipelines.calls import AGGREGATES, WINDOWS, Form
from windrow.pipelines.schema import NEEDED, OPTIONS, QUERY_NEEDED, TRIGGERS
from windrow.pipelines.spec import SINKS, SOURCES, Dedupe, Pipeline, Watermark
from windrow.span import learned, span
from windrow.triggers import CLOSE

Schema = dict[str, Any]

_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_TEXT: Schema = {"type": "string"}
_NUMBER_OR_TEXT: Schema = {"type": ["string", "number"]}
_ATOMS: dict[str, Schema] = {
    "str": _TEXT,
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "None": {"type": "null"},
    "DurationLike": _NUMBER_OR_TEXT,
    "Length": _TEXT,
    "PointLike": _NUMBER_OR_TEXT,
    "PredicateLike": _TEXT,
    "ColumnLike": _TEXT,
    "Columns": {"anyOf": [_TEXT, {"type": "object", "additionalProperties": _TEXT}]},
    "Learned": {"$ref": "#/$defs/release delay"},
}
# What a call may be of, by the name of its definition.
_CALLS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "window": WINDOWS,
    "aggregate": AGGREGATES,
    "source": SOURCES,
    "sink": SINKS,
    "trigger": TRIGGERS,
    "span": {"span": span},
    "release delay": {"learned": learned},
}
_QUERY_CALLS = ("window", "aggregate", "span", "trigger")


def query_schema() -> Schema:
    """Of a file that holds a query."""
    found = _query()
    # Pipelines have no such field: Spark gives no order to rows.
    found["properties"]["ordered"] = {
        "type": "boolean",
        "description": "A promise: events come in time order.",
    }
    return {**_head("A query of windrow"), **found, "$defs": _definitions(*_QUERY_CALLS)}


def pipeline_schema() -> Schema:
    """Of a file that holds a pipeline."""
    settings = Form("a pipeline", Pipeline)
    properties = {
        "source": _ref("source"),
        "watermark": _made(Watermark),
        "dedupe": _made(Dedupe),
        "query": _query(),
        "sink": _ref("sink"),
        "checkpoint": _TEXT,
        "trigger": _TEXT,
        "settings": _argument(settings, "settings"),
        "name": _TEXT,
    }
    fields = _object(properties, NEEDED)
    definitions = _definitions(*_QUERY_CALLS, "source", "sink")
    return {**_head("A pipeline of windrow"), **fields, "$defs": definitions}


SCHEMAS = {"query": query_schema, "pipeline": pipeline_schema}


def _head(title: str) -> Schema:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}


def _query() -> Schema:
    options = Form("a query", SparkOptions)
    expressions: Schema = {"type": "object", "additionalProperties": _TEXT}
    columns: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}, expressions]}
    properties: Schema = {
        "time": {"anyOf": [_TEXT, _ref("span")], "description": "The column of the event time."},
        "key": {
            **columns,
            "description": "A column, or several, or expressions by their names: each key has windows of its own.",
        },
        "where": {**_TEXT, "description": "Which events count: a column, or a condition."},
        "select": {**expressions, "description": "Columns that are computed of the result."},
        "windows": {"type": "object", "minProperties": 1, "additionalProperties": _ref("window")},
        "aggregates": {"type": "object", "minProperties": 1, "additionalProperties": _ref("aggregate")},
    }
    chosen = {name: _argument(options, name) for name in OPTIONS}
    chosen["emit"] = {"anyOf": [{"enum": [CLOSE]}, _ref("trigger")]}
    return _object(properties | chosen, QUERY_NEEDED)


def _definitions(*names: str) -> Schema:
    return {name: _call(_CALLS[name]) for name in (*names, "release delay")}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(properties: Schema, needed: Iterable[str] = ()) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*needed],
        "additionalProperties": False,
    }


def _call(functions: Mapping[str, Callable[..., Any]]) -> Schema:
    """A call of one of these functions, as `calls.call` takes it."""
    forms = [form for name, function in functions.items() if (form := Form(name, function)).is_for_files]
    alone = [form.name for form in forms if not _needed(form)]
    return {"anyOf": [*([{"enum": alone}] if alone else []), *map(_form, forms)]}


def _form(form: Form) -> Schema:
    """A mapping whose field of the function's name has the leading arguments, and whose others are arguments by name."""
    arguments = {name: _argument(form, name) for name in form.parameters}
    every: Schema = _object(arguments)
    leading: list[Schema] = [{"type": "null"}, every]
    if form.in_order:
        first = arguments[form.in_order[0]]
        items = [arguments[name] for name in form.in_order]
        leading += [first, {"type": "array", "prefixItems": items, "items": False}]
    properties: Schema = {**arguments, form.name: {"anyOf": leading}}
    about = inspect.cleandoc(form.function.__doc__ or "").partition("\n")[0]
    return {"description": about, **_object(properties, [form.name])}


def _made(function: Callable[..., Any]) -> Schema:
    """What is given by its first value alone, or by its fields."""
    form = Form(function.__name__, function)
    arguments = {name: _argument(form, name) for name in form.parameters}
    return {"anyOf": [arguments[form.in_order[0]], _object(arguments, _needed(form))]}


def _needed(form: Form) -> list[str]:
    return [name for name, p in form.parameters.items() if p.default is inspect.Parameter.empty]


def _argument(form: Form, name: str) -> Schema:
    """What the annotation of a parameter takes, as `calls.Form.argument` does."""
    annotation = str(form.parameters[name].annotation)
    if annotation.startswith("Literal["):
        return {"enum": ast.literal_eval(annotation.removeprefix("Literal"))}
    if annotation.startswith("Mapping["):
        return {"type": "object", "additionalProperties": _SCALAR}
    if annotation.startswith("Iterable["):
        return {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}
    known = [_ATOMS[atom] for atom in annotation.split(" | ") if atom in _ATOMS]
    if not known:
        return _SCALAR
    return known[0] if len(known) == 1 else {"anyOf": known}
