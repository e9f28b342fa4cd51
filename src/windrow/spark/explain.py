"""The way of a query on Spark, in front of the plan of its operators."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pyspark.sql import DataFrame

from windrow.engine.functions.store_compatibility import has_exact_inverse
from windrow.errors import QueryError
from windrow.options import SparkOptions
from windrow.planner import explain as planner
from windrow.planner.explain import Explanation
from windrow.planner.plan import Plan
from windrow.spark import jvm_windows
from windrow.spark.frame import Plan as SparkPlan
from windrow.spark.frame import fit
from windrow.spark.paths import Path
from windrow.spark.schema import watermarked
from windrow.spec import QuerySpec
from windrow.wording import choices


def explain(query: QuerySpec, df: DataFrame, **options: Any) -> Explanation:
    """The way that a query takes on Spark, and its plan, as text: the work of `Query.explain`."""
    options.setdefault("watermark", next(iter(watermarked(df)), None))
    try:
        settings = SparkOptions(**options)
    except TypeError:
        known = [field.name for field in fields(SparkOptions)]
        wrong = next(name for name in options if name not in known)
        raise QueryError(f"on_spark has no option {wrong!r}{choices(wrong, known)}") from None
    plan = fit(query, df, settings)
    text = planner.explain(Plan.of(query, plan.task.schema, settings), exact=has_exact_inverse)
    return Explanation.of([*_way(plan), "", text], text.plan)


def _way(plan: SparkPlan) -> list[str]:
    path = plan.path
    if path.without_python:
        made = "in Spark's own state" if path.streaming else "combined before the shuffle"
        reason = jvm_windows.reason(plan.task.query, plan.task.schema)
        return [
            f"on Spark, {'streaming' if path.streaming else 'batch'}: pushed down",
            f"  the JVM makes windows by groupBy(key, window), {made}; no Python runs",
            f"  because {reason}, and Spark can make all aggregates exactly",
        ]
    if path.push_down:
        return [
            "on Spark, batch: pushed down",
            "  the JVM makes slices by groupBy(key, slice), combined before the shuffle; Python makes windows of slices",
            f"  because Spark can make all partials exactly, and {path.python}",
        ]
    if not path.streaming:
        return [
            "on Spark, batch: general",
            f"  not pushed down, because {path.not_pushed}",
            *_combiner(path),
            "  each bucket of keys is answered by one operator over all of its rows, in order of time",
        ]
    return [
        "on Spark, streaming: general",
        f"  not pushed down, because {path.not_pushed}",
        *_combiner(path),
        "  each bucket of keys is one operator; its state is a snapshot and a log, in the state store",
    ]


def _combiner(path: Path) -> list[str]:
    if path.combine:
        return [
            "  events are made into slices before the shuffle, if a partition's first rows show that it pays"
        ]
    return [f"  events are shuffled as they are, because {path.not_combined}"]
