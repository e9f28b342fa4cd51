"""The YAML of a pipeline: all that windrow has can be said in it, and what is wrong is told with its place."""

from __future__ import annotations

import operator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.errors import QueryError
from windrow.expressions.building import condition_name
from windrow.expressions.formula import evaluate
from windrow.pipelines.calls import AGGREGATES, WINDOWS, Form
from windrow.pipelines.document import SpecError
from windrow.pipelines.schema import load
from windrow.pipelines.spec import (
    Dedupe,
    DeltaSink,
    IcebergSink,
    KafkaSink,
    KafkaSource,
    Pipeline,
    PostgresSink,
    Watermark,
)

SAID_WINDOWS: dict[str, tuple[str, wr.Window]] = {
    "tumbling": ("{tumbling: 1 minute}", wr.tumbling("1 minute")),
    "tumbling rows": ("{tumbling: {rows: 100}}", wr.tumbling(rows=100)),
    "tumbling on": ("{tumbling: 5, on: km}", wr.tumbling(5, on="km")),
    "sliding": ("{sliding: 1 hour, every: 1 second}", wr.sliding("1 hour", every="1 second")),
    "sliding rows": ("{sliding: , rows: 10, every_rows: 5}", wr.sliding(rows=10, every_rows=5)),
    "cumulate": ("{cumulate: 1 day, step: 1 hour}", wr.cumulate("1 day", step="1 hour")),
    "calendar": ("{calendar: 1 month, tz: Europe/Berlin}", wr.calendar("1 month", tz="Europe/Berlin")),
    "calendar of business days": (
        "{calendar: 1 business day, holidays: [2024-12-25]}",
        wr.calendar("1 business day", holidays=[date(2024, 12, 25)]),
    ),
    "band": ("{band: 2024-07-04, length: 12 hours}", wr.band(date(2024, 7, 4), length="12 hours")),
    "session": ("{session: 5 minutes}", wr.session("5 minutes")),
    "session column": ("{session: timeout}", wr.session("timeout")),
    "punctuated": ("{punctuated: new_shift}", wr.punctuated("new_shift")),
    "punctuated ends": (
        "{punctuated: {start: gear == 1, end: parked}}",
        wr.punctuated(start="gear == 1", end="parked"),
    ),
    "delta": ("{delta: price, by: 0.5, moves: 2}", wr.delta("price", by=0.5, moves=2)),
    "threshold": (
        "{threshold: speed > 80, at_least: 10 seconds}",
        wr.threshold("speed > 80", at_least="10 seconds"),
    ),
    "landmark": (
        "{landmark: {since: 2024-01-01 12:00:00, every: 1 day}}",
        wr.landmark(since=datetime(2024, 1, 1, 12), every="1 day"),
    ),
    "snapshot": ("snapshot", wr.snapshot()),
    "slide_by_rows": (
        "{slide_by_rows: 1 minute, every_rows: 10}",
        wr.slide_by_rows("1 minute", every_rows=10),
    ),
    "latest": ("{latest: {rows: 10, every: 5 seconds}}", wr.latest(rows=10, every="5 seconds")),
}
SAID_AGGREGATES: dict[str, tuple[str, wr.Aggregate]] = {
    "count": ("count", wr.count()),
    "count column": ("{count: a}", wr.count("a")),
    "all": ("{all: parked}", wr.all("parked")),
    "any": ("{any: parked}", wr.any("parked")),
    **{name: (f"{{{name}: gear}}", getattr(wr, name)("gear")) for name in ("bit_and", "bit_or", "bit_xor")},
    "approx_distinct": ("{approx_distinct: a, precision: 10}", wr.approx_distinct("a", precision=10)),
    "argmax": ("{argmax: a, by: b}", wr.argmax("a", by="b")),
    "argmin": ("{argmin: a, by: b}", wr.argmin("a", by="b")),
    "bloom_filter": ("{bloom_filter: a, capacity: 50}", wr.bloom_filter("a", capacity=50)),
    "concat": ("{concat: s, separator: ', '}", wr.concat("s", separator=", ")),
    "correlation": ("{correlation: [a, b]}", wr.correlation("a", "b")),
    "covariance": ("{covariance: a, y: b, ddof: 0}", wr.covariance("a", "b", ddof=0)),
    "histogram": ("{histogram: a, low: 0, high: 9.5, bins: 4}", wr.histogram("a", low=0, high=9.5, bins=4)),
    "ith_smallest": ("{ith_smallest: [a, 2]}", wr.ith_smallest("a", 2)),
    "ith_youngest": ("{ith_youngest: a, i: 2}", wr.ith_youngest("a", 2)),
    "kll_quantile": ("{kll_quantile: [a, 0.5], k: 100}", wr.kll_quantile("a", 0.5, k=100)),
    "moments": ("{moments: a}", wr.moments("a")),
    "quantile": ("{quantile: [a, 0.9]}", wr.quantile("a", 0.9)),
    "regression": ("{regression: {y: a, x: b}}", wr.regression("a", "b")),
    "slope": ("{slope: {y: a, x: b}}", wr.slope("a", "b")),
    "stddev": ("{stddev: a, ddof: 0}", wr.stddev("a", ddof=0)),
    "tdigest_quantile": ("{tdigest_quantile: [a, 0.5]}", wr.tdigest_quantile("a", 0.5)),
    "top_k": ("{top_k: [a, 3]}", wr.top_k("a", 3)),
    "variance": ("{variance: a}", wr.variance("a")),
    "weighted_mean": ("{weighted_mean: a, weight: b}", wr.weighted_mean("a", weight="b")),
    **{
        name: (f"{{{name}: a}}", getattr(wr, name)("a"))
        for name in (
            *(
                "collect",
                "collect_distinct",
                "sum_distinct",
                "distinct",
                "first",
                "geometric_mean",
                "increase",
                "kurtosis",
                "last",
                "m4",
                "max",
            ),
            *("max_count", "mean", "median", "min", "min_count", "mode", "range", "skewness", "sum"),
        )
    },
}
# What these windows and aggregates read.
COLUMNS = (
    "a: double, b: double, s: string, km: double, timeout: bigint, new_shift: boolean, gear: int, parked: boolean, "
    "price: double, speed: double"
)
SOUND = """\
source: {kafka: payments, servers: "broker:9092", schema: {ts: timestamp, user: string, amount: double}}
watermark: 10 seconds
query:
  time: ts
  key: user
  windows: {1m: {tumbling: 1 minute}}
  aggregates: {n: count}
sink: {parquet: out/windows}
checkpoint: out/checkpoint
"""


def problems(path: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(path)
    return [problem.replace(f"{path}:", "") for problem in caught.value.problems]


def test_every_window_and_every_aggregate_that_needs_no_function_can_be_said(write: Any) -> None:
    for said, known in ((SAID_WINDOWS, WINDOWS), (SAID_AGGREGATES, AGGREGATES)):
        for_files = {name for name, function in known.items() if Form(name, function).is_for_files}
        assert {name.split()[0] for name in said} == for_files
    windows = "\n".join(f"    {name}: {text}" for name, (text, _) in SAID_WINDOWS.items())
    aggregates = "\n".join(f"    {name}: {text}" for name, (text, _) in SAID_AGGREGATES.items())
    text = SOUND.replace(" {1m: {tumbling: 1 minute}}", f"\n{windows}").replace(
        " {n: count}", f"\n{aggregates}"
    )
    text = text.replace("amount: double", COLUMNS)
    query = load(write(text)).query
    assert query == wr.query(
        time="ts",
        key="user",
        windows={name: window for name, (_, window) in SAID_WINDOWS.items()},
        aggregates={name: aggregate for name, (_, aggregate) in SAID_AGGREGATES.items()},
    )


def test_the_other_parts_of_a_pipeline_are_read_too(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "one:9092,two:9092")
    text = """
name: money
source:
  kafka: payments
  servers: ${BROKERS}
  schema: since timestamp, until timestamp, on string, no long
  max_rows: 500
  options: {kafka.security.protocol: SASL_SSL, failOnDataLoss: false, minPartitions: 4}
watermark: {delay: 1 minute, max_ahead: null}
dedupe: {id: no, horizon: 10 minutes}
query:
  time: {span: [since, until], contributes: prorated, release: {learned: 0.9}}
  key: [on, no]
  windows: {1m: {tumbling: 1 minute}}
  aggregates: {total: {sum: no}}
  mode: update
  buckets: 1
sink: {kafka: windows, servers: "${BROKERS}"}
checkpoint: s3a://bucket/checkpoint
trigger: 10 seconds
settings: {spark.sql.shuffle.partitions: 4}
"""
    pipeline = load(write(text))
    assert pipeline.source == KafkaSource(
        "payments",
        servers="one:9092,two:9092",
        schema="since timestamp, until timestamp, on string, no long",
        max_rows=500,
        options={"kafka.security.protocol": "SASL_SSL", "failOnDataLoss": "false", "minPartitions": "4"},
    )
    assert pipeline.sink == KafkaSink("windows", servers="one:9092,two:9092")
    assert pipeline.query.time == wr.span("since", "until", contributes="prorated", release=wr.learned(0.9))
    assert pipeline.query.key == ("on", "no")
    assert pipeline.options == {"mode": "update", "buckets": 1}
    assert pipeline.watermark == Watermark("1 minute", max_ahead=None)
    assert pipeline.dedupe == Dedupe("no", horizon="10 minutes")
    assert (pipeline.name, pipeline.trigger) == ("money", "10 seconds")
    assert (pipeline.checkpoint, dict(pipeline.settings)) == (
        "s3a://bucket/checkpoint",
        {"spark.sql.shuffle.partitions": "4"},
    )


def test_places_are_relative_to_the_file_and_its_name_is_the_pipelines(write: Any, tmp_path: Path) -> None:
    pipeline = load(write(SOUND))
    assert pipeline.name == "pipeline"
    assert pipeline.checkpoint == str(tmp_path / "out" / "checkpoint")
    assert vars(pipeline.sink)["folder"] == str(tmp_path / "out" / "windows")


# What is written instead of what, and where the error is and what it says.
WRONG = [
    (
        "query:",
        "qwery:",
        "3:1: a pipeline has no field 'qwery'; did you mean 'query'? Choose from source, query",
    ),
    ("watermark: 10 seconds\n", "", "1:1: a pipeline needs watermark: its fields are source, query, sink"),
    ("10 seconds", "10 secnds", "2:12: watermark: delay '10 secnds': unknown unit 'secnds'"),
    ("10 seconds", "10", "2:12: watermark: delay is a length of time such as"),
    ("10 seconds", "1 microsecond", "2:12: watermark: delay must be a length of time in whole milliseconds"),
    (
        "{kafka: ",
        "{kafak: ",
        "1:9: source: 'kafak' is not a source; did you mean 'kafka'? Choose from kafka, files, replay",
    ),
    (
        'servers: "broker:9092", ',
        "",
        "1:9: source: servers must be given: kafka takes topic, servers, schema, [format]",
    ),
    ("schema:", "format: xml, schema:", "source.format: format cannot be 'xml'; choose from json, avro"),
    (
        "tumbling:",
        "tumblin:",
        "6:17: query.windows.1m: 'tumblin' is not a window; did you mean 'tumbling'? Choose from band",
    ),
    (
        "{tumbling: 1 minute}",
        "{sliding: 1 hour, evry: 1 s}",
        "query.windows.1m: sliding has no field 'evry'; did you mean 'every'?",
    ),
    ("{tumbling: 1 minute}", "{sliding: 1 hour}", "6:17: query.windows.1m: "),
    (
        "{tumbling: 1 minute}",
        "{tumbling: -1 minute}",
        "query.windows.1m: the length of a tumbling window must be longer",
    ),
    (
        "{tumbling: 1 minute}",
        "{tumbling: [1, 2]}",
        "query.windows.1m.tumbling: 2 values are too many before the named ones (1)",
    ),
    (
        "{tumbling: 1 minute}",
        "{tumbling: 1 minute, length: 5}",
        "6:46: query.windows.1m.length: length is given twice",
    ),
    (
        "{tumbling: 1 minute}",
        "{tumbling: true}",
        'query.windows.1m.tumbling: length is a duration such as "10 seconds", not True',
    ),
    (
        "{tumbling: 1 minute}",
        "{deterministic: f}",
        "query.windows.1m: deterministic is made of functions, which a file cannot hold",
    ),
    (
        "{tumbling: 1 minute}",
        "{threshold: f(x) > 1}",
        "query.windows.1m.threshold: in 'f(x) > 1': there is no function 'f'",
    ),
    (
        "{tumbling: 1 minute}",
        "[tumbling]",
        "6:17: query.windows.1m: a window is needed here; choose from band",
    ),
    ("{tumbling: 1 minute}", "{}", "6:17: query.windows.1m: a window is needed here; choose from band"),
    (
        "{n: count}",
        "{n: {quantile: amount}}",
        "7:19: query.aggregates.n: q must be given: quantile takes column, q, [interpolation], [where]",
    ),
    (
        "{n: count}",
        "{n: {quantile: [amount, high]}}",
        "query.aggregates.n.quantile[1]: q is a number, not 'high'",
    ),
    ("{n: count}", "{n: count, n: count}", "7:26: query.aggregates: 'n' is there twice"),
    ("{n: count}", "{window: count}", "7:24: query.aggregates.window: aggregate 'window' clashes"),
    ("{n: count}", "count", "7:15: query.aggregates: fields are needed here, not 'count'"),
    ("  key: user", "  mode: upsert", "5:9: query.mode: mode must be one of append, update, not 'upsert'"),
    ("  key: user", "  buckets: many", "5:12: query.buckets: buckets is a whole number, not 'many'"),
    (
        "  key: user",
        "  ordered: true",
        "5:12: query.ordered: Spark gives no order to rows, so none can be promised",
    ),
    ("  time: ts\n", "", "4:3: query: a query needs time"),
    ("  time: ts", "  time: 5", "4:9: query.time: the time column is a text, not '5'"),
    ("checkpoint: out/checkpoint\n", "", "1:1: a checkpoint is needed"),
    (
        "checkpoint: out/checkpoint",
        "checkpoint: $" + "{NOWHERE}",
        "9:13: checkpoint: there is no environment variable NOWHERE",
    ),
    ("checkpoint: out", "trigger: soon\ncheckpoint: out", "9:10: trigger: trigger 'soon' is not a duration"),
    ("sink: {", "sink: {{", "9:1: this is not YAML: expected ',' or '}'"),
    ("time: ts", "time: !!python/name:os.system ts", "4:9: query.time: 'ts' cannot be read"),
    (SOUND, "", "1:1: the file is empty"),
    (SOUND, "- a", "1:1: fields are needed here of source, query, sink"),
]


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=[said[:60] for *_, said in WRONG])
def test_what_is_wrong_is_told_with_its_place_and_with_what_is_possible(
    write: Any, old: str, new: str, said: str
) -> None:
    assert SOUND.count(old) == 1
    (problem,) = problems(write(SOUND.replace(old, new)))
    assert said in problem
    line, column, _ = problem.split(":", 2)
    assert (line + column).isdigit()


def test_all_that_is_wrong_is_told_at_once(write: Any) -> None:
    text = SOUND.replace("10 seconds", "soon").replace("tumbling", "tumblin").replace("count", "cout")
    found = problems(write(text.replace("parquet", "parket")))
    assert [problem.split(":")[2].strip() for problem in found] == [
        "watermark",
        "query.windows.1m",
        "query.aggregates.n",
        "sink",
    ]


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(SpecError, match="is not a text in UTF-8"):
        load(tmp_path / "latin.yaml")


def test_rows_that_were_deduplicated_cannot_be_late(write: Any) -> None:
    text = SOUND.replace("  key: user", "  lateness: 1 minute") + "dedupe: {id: user, horizon: 1 hour}\n"
    (problem,) = problems(write(text))
    assert "give the time to the delay of the watermark" in problem


NUMBERS = st.integers(-3, 3)
TERMS = st.recursive(
    st.sampled_from(["a", "b"]) | NUMBERS.map(str),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({' '.join(t)})"),
    max_leaves=4,
)
COMPARED = st.tuples(TERMS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), TERMS).map(" ".join)
CONDITIONS = st.recursive(
    COMPARED,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})")
        | inner.map(lambda one: f"not ({one})")
    ),
    max_leaves=5,
)


@given(CONDITIONS, NUMBERS, NUMBERS)
def test_a_condition_holds_where_python_says_so(text: str, a: int, b: int) -> None:
    table = pa.table({"a": pa.array([a], pa.int64()), "b": pa.array([b], pa.int64())})
    assert evaluate([condition_name(text, what="where")], table)[0].to_pylist() == [
        eval(text, {"a": a, "b": b})
    ]


def test_a_file_says_expressions_filters_and_columns_of_the_result_as_text(write: Any) -> None:
    said = """\
  key: {who: upper(user), large: amount > 100}
  where: amount is not null and user <> 'test'
  windows: {1m: {tumbling: 1 minute}}
  aggregates: {n: count, twice: {sum: amount * 2, where: amount > 1}, most: {argmax: user, by: abs(amount)}}
  select: {mean: twice / n}
"""
    plain = SOUND[SOUND.index("  key:") : SOUND.index("sink:")]
    assert load(write(SOUND.replace(plain, said))).query == wr.query(
        time="ts",
        key={"who": wr.expr("upper(user)"), "large": wr.col("amount") > 100},
        where="amount is not null and user <> 'test'",
        windows={"1m": wr.tumbling("1 minute")},
        aggregates={
            "n": wr.count(),
            "twice": wr.sum(wr.col("amount") * 2, where="amount > 1"),
            "most": wr.argmax("user", by=wr.expr("abs(amount)")),
        },
        select={"mean": "twice / n"},
    )
    for old, new, wrong in (
        ("amount * 2", "amuont * 2", "there is no column 'amuont'; did you mean 'amount'"),
        ("upper(user)", "upr(user)", "there is no function 'upr'; did you mean 'upper'"),
        ("twice / n", "twice / m", "there is no column 'm'"),
        ("amount is not null", "amount + 1", "and takes conditions"),
    ):
        (problem,) = problems(write(SOUND.replace(plain, said.replace(old, new))))
        assert wrong in problem


def test_the_schema_page_of_the_module_is_sound(write: Any) -> None:
    import windrow.pipelines.schema as module

    assert module.__doc__ is not None
    _, example, _ = module.__doc__.split("\n\n", 2)
    text = "\n".join(line.removeprefix("    ") for line in example.splitlines())
    assert operator.contains(yaml.safe_load(text), "source")
    assert load(write(text)).query.key == ("user",)


@pytest.mark.parametrize("sink", [PostgresSink("t", dsn="d"), DeltaSink("t"), IcebergSink("a.t")])
def test_rows_that_add_up_have_no_place_in_a_table_of_windows(sink: Any) -> None:
    query = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    rest: dict[str, Any] = {
        "source": KafkaSource("events", servers="s", schema="ts timestamp"),
        "watermark": Watermark("0 seconds"),
        "options": {"emit": wr.each_batch(discarding=True)},
        "checkpoint": "state",
    }
    Pipeline(query=query, sink=KafkaSink("windows", servers="s"), **rest)
    with pytest.raises(QueryError, match="rows that add up"):
        Pipeline(query=query, sink=sink, **rest)


def test_a_pipeline_may_say_that_its_events_have_no_order(write: Any) -> None:
    text = SOUND.replace("  key: user\n", "  key: user\n  ordered: false\n")
    assert load(write(text)).query == load(write(SOUND)).query
