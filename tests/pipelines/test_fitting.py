"""A file is compared with the columns that it declares: all that does not fit is told, with its place, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windrow.errors import QueryError
from windrow.pipelines.columns import avro_columns, sql_columns
from windrow.pipelines.document import SpecError
from windrow.pipelines.schema import load
from windrow.spark.schema import arrow_schema

SOUND = """\
source:
  kafka: payments
  servers: broker:9092
  schema: {ts: timestamp, day: date, user: string, amount: double, cents: bigint, paid: boolean, wait: interval day to second}
watermark: 10 seconds
query:
  time: ts
  key: user
  windows: {1m: {tumbling: 1 minute}}
  aggregates: {n: count}
sink: {parquet: out/windows}
checkpoint: out/checkpoint
"""
EVERYTHING = """\
source: {kafka: payments, servers: "broker:9092", schema: "ts timestamp, user string, amount double"}
watermark: {delay: 10 seconds, on: tss}
dedupe: {id: payment, horizon: 1 hour}
query:
  time: ts
  key: [usr, user]
  windows:
    hour: {tumbling: 1 hour}
    five: {tumbling: 5}
    shifted: {sliding: 1 hour, every: 1 minute, offset: 3}
    gaps: {session: gap}
    names: {session: user}
    fast: {threshold: amont > 80 and paid}
    moved: {delta: user, by: 2}
    typo: {tumblin: 1 minute}
  aggregates:
    n: count
    total: {sum: user}
    mean: {avg: amount}
    both: {correlation: [amount, prise]}
    mode: {top_k: [amuont, 3]}
  lateness: 5
sink: {hudi: out}
checkpoint: out/checkpoint
"""


def problems(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(path)
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


def test_what_a_wrong_time_is_otherwise_used_for_is_told_too(write: Any) -> None:
    text = SOUND.replace("time: ts", "time: user").replace("{tumbling: 1 minute}}", "{session: user}}")
    assert [problem.partition(";")[0].partition(" cannot")[0] for problem in problems(write(text))] == [
        "7:9: query.time: column 'user' of type string",
        "9:27: query.windows.1m: column 'user' is of type string",
    ]


def test_all_that_does_not_fit_is_told_at_once_in_the_order_of_the_file(write: Any) -> None:
    found = problems(write(EVERYTHING))
    assert [problem.partition(";")[0].partition(" is a plain")[0] for problem in found] == [
        "2:36: watermark: there is no column 'tss'",
        "3:14: dedupe: there is no column 'payment'",
        "6:9: query.key[0]: there is no column 'usr'",
        "9:11: query.windows.five: length 5",
        "10:14: query.windows.shifted: offset 3",
        "11:21: query.windows.gaps: there is no column 'gap'",
        "12:22: query.windows.names: column 'user' is of type string",
        "13:23: query.windows.fast: there is no column 'amont'",
        "13:23: query.windows.fast: there is no column 'paid'",
        "14:20: query.windows.moved: column 'user' is of type string",
        "15:11: query.windows.typo: 'tumblin' is not a window",
        "18:18: query.aggregates.total: sum(user) needs a numeric column, not string",
        "19:11: query.aggregates.mean: 'avg' is not an aggregate",
        "20:34: query.aggregates.both: there is no column 'prise'",
        "21:20: query.aggregates.mode: there is no column 'amuont'",
        "22:13: query.lateness: lateness 5",
        "23:7: sink: 'hudi' is not a sink",
    ]
    assert "did you mean 'user'?" in found[2]
    assert "did you mean 'mean'?" in found[12]


# What is written instead of what, and where the problem is and what it says.
WRONG = [
    ("time: ts", "time: tz", "7:9: query.time: there is no column 'tz'; the columns are 'ts'"),
    ("time: ts", "time: user", "7:9: query.time: column 'user' of type string cannot be a time"),
    (
        "time: ts",
        "time: cents",
        "7:9: query.time: a watermark needs a column of type timestamp, and 'cents' is int64",
    ),
    (
        "time: ts",
        "time: day",
        "7:9: query.time: a watermark needs a column of type timestamp, and 'day' is date32",
    ),
    ("time: ts", "time: {span: [ts, day]}", "7:21: query.time: a watermark needs"),
    ("time: ts", "time: {span: [ts, end]}", "query.time: there is no column 'end'"),
    ("time: ts", "time: {span: [ts, ts]}", "query.time: the columns of a span must differ"),
    (
        "watermark: 10 seconds",
        "watermark: {delay: 1 s, on: user}",
        "5:29: watermark: a watermark needs a column",
    ),
    ("key: user", "key: [user, usr]", "8:15: query.key[1]: there is no column 'usr'"),
    ("{tumbling: 1 minute}", "{tumbling: 60}", "9:17: query.windows.1m: length 60 is a plain number"),
    (
        "{tumbling: 1 minute}",
        "{tumbling: 5, on: user}",
        "9:35: query.windows.1m: column 'user' is of type string",
    ),
    (
        "{tumbling: 1 minute}",
        "{session: amount}",
        "9:27: query.windows.1m: column 'amount' is of type double",
    ),
    ("{tumbling: 1 minute}", "{punctuated: amount}", "9:30: query.windows.1m: where"),
    ("{tumbling: 1 minute}", '{threshold: "user > 5"}', "9:29: query.windows.1m: expression"),
    (
        "{tumbling: 1 minute}",
        "{landmark: {since: 5, every: 1 day}}",
        "query.windows.1m: since 5 is a plain number",
    ),
    (
        "{n: count}",
        "{n: {mean: user}}",
        "10:26: query.aggregates.n: mean(user) needs a numeric column, not string",
    ),
    ("{n: count}", "{n: {concat: amount}}", "10:28: query.aggregates.n: concat"),
    ("{n: count}", "{n: {count: usr}}", "10:27: query.aggregates.n: there is no column 'usr'"),
    ("user: string", "user: strng", "schema.user: there is no type 'strng'; did you mean 'string'?"),
    ("user: string", "user: varchar", "schema.user: there is no type 'varchar'; did you mean 'string'?"),
    ("cents: bigint", "poison: bigint", "a column cannot be called 'poison'"),
    (
        "cents: bigint",
        "User: bigint",
        "a column cannot be called 'User': that name, in capitals or small letters",
    ),
    (
        "key: user",
        "key: user\n  on_bad: divert\n  lateness: 3",
        "10:13: query.lateness: lateness 3 is a plain number",
    ),
    ("{n: count}", "{User: count}", "a column of the result cannot be called 'User'"),
]


@pytest.mark.parametrize(
    ("old", "new", "said"), WRONG, ids=[f"{new} - {said[:40]}" for _, new, said in WRONG]
)
def test_what_does_not_fit_is_told_with_its_place(write: Any, old: str, new: str, said: str) -> None:
    assert SOUND.count(old) == 1
    (problem,) = problems(write(SOUND.replace(old, new)))
    assert said in problem
    line, column, _ = problem.split(":", 2)
    assert (line + column).isdigit()


def test_a_file_that_fits_is_sound(write: Any) -> None:
    fitting = """
    gaps: {session: wait}
    still: {threshold: "amount > 5 and not paid"}
    far: {tumbling: 5, on: cents}
    """
    text = SOUND.replace(" {1m: {tumbling: 1 minute}}", fitting.rstrip())
    text = text.replace(
        "{n: count}", "{n: count, total: {sum: cents}, last: {last: user}, best: {argmax: user, by: amount}}"
    )
    assert set(load(write(text)).query.windows) == {"gaps", "still", "far"}


def test_a_time_that_is_wrong_does_not_hide_the_rest(write: Any) -> None:
    text = SOUND.replace("time: ts", "time: user").replace("{n: count}", "{n: {sum: usr}}")
    assert [problem.partition(": ")[0] for problem in problems(write(text))] == ["7:9", "10:25"]


def test_a_source_that_is_wrong_does_not_hide_the_rest(write: Any) -> None:
    text = SOUND.replace("  servers: broker:9092\n", "").replace("{n: count}", "{n: {sum: usr}}")
    assert [problem.partition(": ")[0] for problem in problems(write(text))] == ["2:3", "9:25"]


@pytest.mark.parametrize("field", ["watermark", "sink"])
def test_a_field_that_is_missing_does_not_hide_the_rest(write: Any, field: str) -> None:
    text = SOUND.replace("key: user", "key: usr")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(field)]
    missing, key = problems(write("".join(lines)))
    assert missing.startswith(f"1:1: a pipeline needs {field}: its fields are source,")
    assert key.endswith(
        "query.key: there is no column 'usr'; did you mean 'user'? The columns are 'ts', 'day', "
        "'user', 'amount', 'cents', 'paid', 'wait'"
    )


def test_a_column_of_an_unknown_type_does_not_hide_the_rest(write: Any) -> None:
    text = SOUND.replace("user: string", "user: strng").replace(
        "{n: count}", "{n: {sum: amont}, m: {sum: user}}"
    )
    type_, column = problems(write(text))
    assert "schema.user: there is no type 'strng'; did you mean 'string'?" in type_
    assert "query.aggregates.n: there is no column 'amont'; did you mean 'amount'?" in column


def test_what_parts_need_of_each_other_is_told_with_the_rest(write: Any) -> None:
    text = SOUND.replace("key: user", "key: usr").replace("checkpoint: out/checkpoint\n", "")
    checkpoint, key = problems(write(text))
    assert checkpoint.startswith("1:1: a checkpoint is needed")
    assert key.startswith("8:8: query.key: there is no column 'usr'")
    # A sink that cannot be read may need none.
    found, sink = problems(write(text.replace("sink: {parquet", "sink: {parqet")))
    assert found == key
    assert sink.startswith("11:7: sink: 'parqet' is not a sink; did you mean 'parquet'?")


def test_a_wrong_trigger_does_not_hide_the_rest(write: Any) -> None:
    text = SOUND.replace("key: user", "key: usr") + "trigger: 5 secnds\n"
    key, trigger = problems(write(text))
    assert key.startswith("8:8: query.key: there is no column 'usr'")
    assert trigger.startswith(
        "13:10: trigger: trigger '5 secnds': unknown unit 'secnds'; did you mean 'second'?"
    )


def test_columns_are_found_where_a_source_has_all_its_fields_behind_its_name(write: Any) -> None:
    declared = SOUND[SOUND.index("  kafka") : SOUND.index("watermark")]
    inner = declared.replace("  kafka: payments", "  kafka:\n    topic: payments").replace("\n  s", "\n    s")
    text = SOUND.replace(declared, inner)
    assert load(write(text)).query.key == ("user",)
    (problem,) = problems(write(text.replace("key: user", "key: usr")))
    assert "there is no column 'usr'" in problem


def test_a_time_that_is_a_number_needs_a_watermark_of_its_own(write: Any) -> None:
    text = SOUND.replace("time: ts", "time: cents").replace("10 seconds", "{delay: 10 seconds, on: ts}")
    (problem,) = problems(write(text))
    assert "length '1 minute' is a length of time, but column 'cents' (int64) is not a time" in problem
    assert load(write(text.replace("1 minute", "60"))).query.time == "cents"


def test_what_a_sink_cannot_keep_is_told(write: Any) -> None:
    table = SOUND.replace("{parquet: out/windows}", "{postgres: totals, dsn: dbname=shop}")
    (problem,) = problems(write(table.replace("{n: count}", "{n: {max: wait}}")))
    assert problem.startswith("10:25: query.aggregates.n: PostgreSQL has no type for 'n' (duration")
    (problem,) = problems(write(table.replace("{n: count}", "{identity: count}")))
    assert "a column of the result cannot be called 'identity'" in problem
    (problem,) = problems(write(SOUND.replace("{n: count}", "{side: count}\n  side_rows: true")))
    assert "a column of the result cannot be called 'side'" in problem


def test_a_release_delay_that_each_bucket_would_learn_is_refused(write: Any) -> None:
    text = SOUND.replace("time: ts", "time: {span: [ts, until], release: {learned: 0.9}}")
    text = text.replace("day: date", "until: timestamp")
    (problem,) = problems(write(text))
    assert "each of several buckets would learn a release delay of its own" in problem
    assert load(write(text.replace("key: user", "key: user\n  buckets: 1")))


AVRO = """{"type": "record", "name": "e", "fields": [
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "user", "type": ["null", "string"]},
    {"name": "amount", "type": ["null", "int", "long"]}]}"""


def test_an_avro_schema_is_read_too(write: Any) -> None:
    text = (
        SOUND[: SOUND.index("  schema")]
        + f"  format: avro\n  schema: '{AVRO}'\n"
        + SOUND[SOUND.index("watermark") :]
    )
    assert load(write(text)).query.key == ("user",)
    (problem,) = problems(write(text.replace("{n: count}", "{n: {sum: user}}")))
    assert "query.aggregates.n: sum(user) needs a numeric column, not string" in problem
    (problem,) = problems(write(SOUND.replace("  schema:", "  format: avro\n  schema:")))
    assert "source.schema: an Avro schema is a record with fields, as JSON" in problem
    (problem,) = problems(write(text.replace('"type": "record", ', "")))
    assert "source.schema: an Avro schema is a record with fields, as JSON" in problem


TYPES = """\
a boolean, b tinyint, c byte, d smallint, e short, f int, g integer, h bigint, i long, j float, k real, l double, m string,
p binary, q date, r timestamp, s timestamp_ltz, t timestamp_ntz, u decimal, v decimal(5),
w decimal(12, 2), x numeric(3,1), y interval day to second, z array<map<string, int>>, `a b` struct<x: int, y: array<date>>,
`b``c` string NOT NULL COMMENT 'with, a comma', D INT"""


def test_types_are_those_in_which_spark_sends_them(spark: SparkSession) -> None:
    declared = StructType.fromDDL(TYPES.replace("D INT", "dd INT"))
    assert isinstance(declared, StructType)
    assert sql_columns(TYPES.replace("D INT", "dd INT")) == arrow_schema(declared, declared.names)


def test_avro_types_are_those_in_which_spark_sends_them(spark: SparkSession) -> None:
    from pyspark.sql import functions as sf
    from pyspark.sql.avro.functions import from_avro

    kinds = """"boolean" "int" "long" "float" "double" "bytes" "string" ["null","int"] ["int","long"] ["float","double"]
        {"type":"enum","name":"E","symbols":["A"]} "E" {"type":"fixed","name":"F","size":3} {"type":"array","items":"int"}
        {"type":"map","values":"double"} {"type":"int","logicalType":"date"} {"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}
        "R" {"type":"long","logicalType":"timestamp-millis"} {"type":"long","logicalType":"local-timestamp-micros"}
        {"type":"bytes","logicalType":"decimal","precision":6,"scale":2} {"type":"string","logicalType":"uuid"} ["int","string"]"""
    fields = ", ".join(f'{{"name": "c{i}", "type": {kind}}}' for i, kind in enumerate(kinds.split()))
    text = f'{{"type": "record", "name": "e", "fields": [{fields}]}}'
    read = (
        spark.createDataFrame([(b"",)], "v binary")
        .select(from_avro(sf.col("v"), text).alias("e"))
        .select("e.*")
    )
    assert avro_columns(text) == arrow_schema(read.schema, read.columns)


@pytest.mark.parametrize(
    "text", ["ts", "ts timestamp,", "ts timestamp user string", "", "a-b int", "a array<int", "a map<int>"]
)
def test_what_is_no_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="columns and their types are needed"):
        sql_columns(text)
    with pytest.raises(QueryError, match="between 1 and 38 digits"):
        sql_columns("a decimal(40)")


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pandas", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from windrow.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def without_spark(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_file_is_checked_where_there_is_no_spark(write: Any) -> None:
    path = write(SOUND)
    done = without_spark("pipeline", str(path), "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path} is sound: 1 window, 1 aggregate\n", "")
    path = write(EVERYTHING)
    done = without_spark("pipeline", str(path), "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 17


def test_running_says_what_to_install_where_there_is_no_spark(write: Any) -> None:
    done = without_spark("pipeline", str(write(SOUND)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "this needs the package 'pyspark': pip install 'windrow-stream[pipelines]', or '.[pipelines]' in a clone\n"
    )


def test_columns_that_nobody_declares_are_not_checked_and_that_is_said(write: Any) -> None:
    text = SOUND[SOUND.index("watermark") :] + "source: {files: events}\n"
    path = write(text)
    done = without_spark("pipeline", str(path), "--check")
    assert (
        done.stdout
        == f"{path} is sound: 1 window, 1 aggregate; its source declares no columns, so none were checked\n"
    )


def test_the_command_needs_no_spark_to_be_installed() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert not any("spark" in needed for needed in extras["cli"])
    assert any("spark" in needed for needed in extras["pipelines"])


def test_a_type_that_is_no_text_is_told_once(write: Any) -> None:
    text = """source: {kafka: payments, servers: "b:9092", schema: {ts: timestamp, user: 5}}
watermark: 10 seconds
query: {time: ts, key: user, windows: {1m: {tumbling: 1 minute}}, aggregates: {n: count}}
sink: console
"""
    assert problems(write(text)) == ["1:76: source.schema.user: a type is a text, not '5'"]
