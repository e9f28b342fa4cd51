"""Options are spelled once: the facade, Spark, pipelines and snapshots take the fields of one value."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest

import windrow as wr
from windrow import policies as wp
from windrow.errors import QueryError
from windrow.options import EmbeddedOptions, OperatorOptions, PolicyOptions, SparkOptions
from windrow.pipelines.schema import OPTIONS

QUERY = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (wr.Query.operator, EmbeddedOptions),
        (wr.Query.on_spark, SparkOptions),
        (wp.Operator.on_spark, PolicyOptions),
    ],
)
def test_the_keywords_of_a_method_are_the_fields_of_its_options(method, options) -> None:
    keywords = {
        name: (parameter.default, parameter.annotation)
        for name, parameter in inspect.signature(method).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    fields = inspect.signature(options).parameters.values()
    assert keywords == {field.name: (field.default, field.annotation) for field in fields}


def test_spark_takes_every_option_of_an_operator() -> None:
    assert set(inspect.signature(OperatorOptions).parameters) <= set(
        inspect.signature(SparkOptions).parameters
    )


def test_pipelines_take_the_options_of_spark_but_for_those_that_they_decide() -> None:
    assert set(inspect.signature(SparkOptions).parameters) - set(OPTIONS) == {
        "watermark",
        "metrics",
        "max_ahead",
    }


def test_an_option_that_there_is_not_is_a_type_error_that_names_it() -> None:
    with pytest.raises(TypeError, match=r"operator\(\) has no option 'latenes'; did you mean 'lateness'\?"):
        QUERY.operator(latenes=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "both"}, "mode must be one of append, update, not 'both'"),
        ({"on_bad": "drop"}, "on_bad must be raise or divert, not 'drop'"),
        ({"lateness": -1}, "lateness must not be negative, but is -1"),
        ({"max_ahead": 0}, "max_ahead must be longer than zero, not 0"),
        ({"max_slices": 0}, "max_slices must be at least 1, not 0"),
        ({"max_slices": True}, "max_slices must be at least 1, not True"),
        ({"store": "daba_light"}, "there is no store 'daba_light'; did you mean 'daba_lite'?"),
        ({"buckets": True}, "buckets must be a number from 1 to 32,768, not True"),
        ({"path": "fast"}, "path must be one of auto, pushdown, general, not 'fast'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused_in_a_sentence(options, sentence) -> None:
    with pytest.raises(QueryError) as problem:
        SparkOptions(**options)
    assert str(problem.value).startswith(sentence)


def test_a_restored_operator_has_the_options_that_it_had() -> None:
    operator = QUERY.operator(mode="update", lateness=7, on_bad="divert", max_slices=9, max_ahead=100)
    operator.process(pa.table({"t": [1]}))
    restored = QUERY.restore(operator.snapshot())
    assert restored.settings.allowed_lateness == operator.settings.allowed_lateness
    assert restored.settings.bound_ahead == operator.settings.bound_ahead
    for name in ("mode", "on_bad", "max_slices", "store"):
        assert getattr(restored.settings, name) == getattr(operator.settings, name)


def test_what_an_operator_refuses_is_not_explained() -> None:
    query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"m": wr.max("x")})
    with pytest.raises(QueryError, match="has no inverse"):
        query.explain(store="subtract_on_evict")
    with pytest.raises(TypeError, match="has no option 'latenes'"):
        query.explain(latenes=3)
    assert "number of late events" in query.explain(mode="update")
    assert query.explain(pa.table({"t": [1], "x": [2]})) == query.explain(
        pa.schema([("t", pa.int64()), ("x", pa.int64())])
    )
    with pytest.raises(QueryError, match="explain takes the schema of the events"):
        query.explain({"t": "int64"})  # type: ignore[arg-type]
