"""What is private to PySpark, or differs between its versions, is known to one module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow.errors import QueryError, WindrowError
from windrow.spark import compatibility, schema

SOURCE = Path(wr.__file__).parent
ALLOWED = SOURCE / "spark" / "compatibility.py"
# What PySpark's own reference documents.
PUBLIC = {
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.avro.functions",
    "pyspark.sql.datasource",
    "pyspark.sql.functions",
    "pyspark.sql.streaming",
    "pyspark.sql.streaming.datasource",
    "pyspark.sql.streaming.listener",
    "pyspark.sql.streaming.query",
    "pyspark.sql.streaming.readwriter",
    "pyspark.sql.streaming.stateful_processor",
    "pyspark.sql.types",
}
# Of `pyspark` itself: what is imported from there.
NAMES = {"TaskContext", "__version__", "__file__"}


def imported(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Modules of PySpark that a module imports, and the names that it takes from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names if alias.name.split(".")[0] == "pyspark")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyspark":
            yield str(node.module), [alias.name for alias in node.names]


def private_uses(code: str) -> list[str]:
    """What a module uses of PySpark that is not documented."""
    tree, found = ast.parse(code), []
    modules = list(imported(tree))
    for module, names in modules:
        if module not in PUBLIC:
            found.append(module)
        if module == "pyspark":
            found += [name for name in names if name not in NAMES]
        found += [name for name in names if name.startswith("_") and name not in NAMES]
    if not modules:
        return found
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    read = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if isinstance(node.ctx, ast.Store):
                own.add(node.attr)
            elif not itself:
                read.append(node.attr)
    return found + [name for name in read if name not in own]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from pyspark.sql.pandas.types import to_arrow_schema", ["pyspark.sql.pandas.types"]),
        ("from pyspark import cloudpickle", ["cloudpickle"]),
        ("from pyspark.sql import DataFrame\ndef plan(df):\n    return df._jdf.queryExecution()", ["_jdf"]),
        ("import pyspark.sql.classic.dataframe", ["pyspark.sql.classic.dataframe"]),
        ("from pyspark.sql import functions as sf\nclass A:\n    def b(self):\n        return self._c", []),
    ],
)
def test_private_uses_are_found(code: str, found: list[str]) -> None:
    assert private_uses(code) == found


def test_nothing_private_of_pyspark_is_used_but_in_one_module() -> None:
    uses = {
        str(path.relative_to(SOURCE)): found
        for path in SOURCE.rglob("*.py")
        if path != ALLOWED and (found := private_uses(path.read_text()))
    }
    assert not uses


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5", "4.4.0", "5.0.0.dev1"])
def test_other_versions_of_pyspark_are_refused_at_the_first_call(version: str) -> None:
    """In a process of its own: here, the folder is imported already. A call without rows is enough."""
    code = f"""
import pyspark
pyspark.__version__ = {version!r}
import windrow as wr
q = wr.query(time="ts", windows={{"w": wr.tumbling("1 hour")}}, aggregates={{"n": wr.count()}})
for attempt in (q.on_spark, wr.policies.Aggregate("tumbling, count(4)", {{"n": wr.count()}}).on_spark):
    try:
        attempt(None)
    except wr.WindrowError as error:
        print(error)
"""
    code = code.replace("import windrow as wr", "import windrow as wr, windrow.policies")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = f"windrow runs on Spark 4.1, 4.2 and 4.3, and PySpark is {version} here: install one of these\n"
    assert done.stdout == said * 2, done.stderr


def test_another_version_of_the_server_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "SUPPORTED", ("3.4", "3.5"))
    query = wr.query(time="id", windows={"w": wr.tumbling(4)}, aggregates={"n": wr.count()})
    with pytest.raises(WindrowError, match=r"runs on Spark 3\.4 and 3\.5, and Spark is 4\."):
        query.on_spark(spark.range(5))


def test_a_type_that_spark_cannot_send_is_an_error_of_its_column(spark: Any) -> None:
    query = wr.query(time="id", windows={"w": wr.tumbling(4)}, aggregates={"n": wr.count("x")})
    rows = spark.range(5).selectExpr("id", "interval '1-2' year to month as x")
    with pytest.raises(QueryError, match="column 'x' of type interval year to month: "):
        query.on_spark(rows)


def test_an_error_of_ours_is_not_shown_as_one_of_a_column(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it was when PySpark had renamed a parameter."""
    monkeypatch.setattr(schema, "arrow_type", lambda type_: compatibility.arrow_type(type_, timezone="UTC"))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'timezone'"):
        schema.arrow_schema(spark.range(5).schema, ["id"])
