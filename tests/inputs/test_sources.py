"""Files, datasets, lazy frames, rows of Python, and several of these give the answer of the table."""

from __future__ import annotations

import gzip

import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, dataset, feather, parquet

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import mixed_queries, queries, streams
from windrow.inputs import ordering, run, sources

SIZE = 600
EVENTS = pa.table(
    {
        "junk": [[i] for i in range(SIZE)],
        "ts": pa.array([(i * 7919) % 500 for i in range(SIZE)], pa.int64()),
        "k": [f"key {i % 3}" for i in range(SIZE)],
        "x": pa.array([None if i % 13 == 0 else i for i in range(SIZE)], pa.int64()),
    }
)
PLAIN = EVENTS.drop_columns(["junk"])
QUERY = wr.query(
    time="ts",
    key="k",
    windows={"w": wr.sliding(50, every=20), "r": wr.tumbling(rows=7), "s": wr.session(4)},
    aggregates={"n": wr.count(), "total": wr.sum("x"), "last": wr.last("x"), "all": wr.collect("x")},
)
# Less than any table takes, and more.
MEMORY = ["1 kB", "1 GB"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches and blocks of a few rows, so that a small table has many."""
    monkeypatch.setattr(sources, "ROWS", 50)
    monkeypatch.setattr(ordering, "BLOCK", 16)
    monkeypatch.setattr(ordering, "SAMPLED", 4)
    monkeypatch.setattr(run, "BATCH", 100)


def write_json(table, path):
    path.write_text("\n".join(polars.from_arrow(table).write_ndjson().splitlines()), "utf-8")


def write_compressed(table, path):
    with gzip.open(path, "wb") as file:
        csv.write_csv(table, file)


def write_tabs(table, path):
    csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))


FILES = {
    "events.parquet": lambda path: parquet.write_table(EVENTS, path, row_group_size=64),
    "events.csv": lambda path: csv.write_csv(PLAIN, path),
    "events.csv.gz": lambda path: write_compressed(PLAIN, path),
    "events.tsv": lambda path: write_tabs(PLAIN, path),
    "events.jsonl": lambda path: write_json(PLAIN, path),
    "events.feather": lambda path: feather.write_feather(EVENTS, path),
    "events.arrow": lambda path: feather.write_feather(EVENTS, path, compression="zstd"),
}


def agrees(result):
    wanted = QUERY.run(EVENTS)
    assert_same(wanted, result.cast(wanted.schema) if result.schema != wanted.schema else result)


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_gives_the_answer_of_the_table(name, memory, tmp_path):
    path = tmp_path / name
    FILES[name](path)
    agrees(QUERY.run(path, memory=memory))
    agrees(QUERY.run(str(path), memory=memory))


def split(folder):
    for i in range(5):
        parquet.write_table(EVENTS.slice(i * 120, 120), folder / f"part-{i}.parquet")


@pytest.mark.parametrize("memory", MEMORY)
def test_patterns_folders_and_datasets_are_all_of_their_files(memory, tmp_path):
    split(tmp_path)
    for events in (tmp_path, f"{tmp_path}/*.parquet", f"{tmp_path}/**/part-*", dataset.dataset(tmp_path)):
        agrees(QUERY.run(events, memory=memory))
    agrees(QUERY.run(dataset.dataset(tmp_path).filter(dataset.field("ts") >= 0), memory=memory))


@pytest.mark.parametrize("memory", MEMORY)
def test_columns_that_are_names_of_folders_are_read(memory, tmp_path):
    dataset.write_dataset(
        PLAIN,
        tmp_path,
        format="parquet",
        partitioning=dataset.partitioning(pa.schema([("k", pa.string())]), flavor="hive"),
    )
    parts = dataset.dataset(
        tmp_path, partitioning=dataset.partitioning(pa.schema([("k", pa.string())]), flavor="hive")
    )
    agrees(QUERY.run(parts, memory=memory))


@pytest.mark.parametrize("memory", MEMORY)
def test_several_inputs_are_one(memory, tmp_path):
    split(tmp_path)
    one, two = dataset.dataset(tmp_path / "part-2.parquet"), polars.scan_parquet(tmp_path / "part-3.parquet")
    strings = pa.schema([pa.field("k", pa.large_string()) if f.name == "k" else f for f in EVENTS.schema])
    rest = EVENTS.slice(480).to_batches()[0]
    agrees(QUERY.run([f"{tmp_path}/part-[01].parquet", one, EVENTS.slice(360, 120), rest], memory=memory))
    with pytest.raises(
        wr.QueryError, match=r"column 'k' is string in .*part-2.parquet and .* in the lazy frame"
    ):
        QUERY.run([one, two], memory=memory)
    agrees(QUERY.run(polars.from_arrow(EVENTS.cast(strings)).lazy(), memory=memory))


@pytest.mark.parametrize("process", [False, True])
def test_rows_and_columns_of_python_are_tables(process):
    rows = PLAIN.to_pylist()
    del rows[1]["x"]
    rows = [*rows[1:2], *rows[:1], *rows[2:]]
    table = pa.Table.from_pylist(rows, PLAIN.schema)
    for events in (rows, table.to_pydict()):
        if process:
            operator = QUERY.operator()
            operator.process(events)
            assert_same(QUERY.run(table), operator.finish())
        else:
            assert_same(QUERY.run(table), QUERY.run(events))


def test_rows_of_python_that_make_no_table_are_refused():
    with pytest.raises(wr.QueryError, match="rows of Python do not make a table"):
        QUERY.run([{"ts": 1}, {"ts": "two"}])


@given(data=st.data())
def test_a_stream_of_files_agrees_with_the_oracle(data, tmp_path_factory):
    """With so little memory that rows are merged, or sorted through a folder."""
    folder = tmp_path_factory.mktemp("files")
    key = data.draw(st.sampled_from([(), ("string",), ("int", "string")]))
    table = data.draw(
        streams(
            time=data.draw(st.sampled_from([pa.int64(), pa.timestamp("us"), pa.float64()])),
            key=key,
            max_size=40,
        )
    )
    query = data.draw(queries(time=table.schema.field("time").type, key=key))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3)))
    for i, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(table)], strict=True)):
        parquet.write_table(table.slice(a, b - a), folder / f"{i}.parquet")
    memory = data.draw(st.sampled_from([1, 400, 2_000, 8_000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "ROWS", data.draw(st.integers(1, 10)))
        patch.setattr(ordering, "BLOCK", data.draw(st.integers(1, 8)))
        patch.setattr(ordering, "SAMPLED", 1)
        found = query.run(folder, memory=memory)
    assert_same(answers(query, table), found, ulps=64)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_file_in_order_is_neither_sorted_nor_held(ordered, tmp_path, monkeypatch):
    table = EVENTS.sort_by("ts")
    parquet.write_table(table, tmp_path / "events.parquet")
    query = wr.query(time="ts", key="k", windows=QUERY.windows, aggregates=QUERY.aggregates, ordered=ordered)
    monkeypatch.setattr(run, "parted", None)
    assert_same(query.run(table), query.run(tmp_path / "events.parquet", memory="4 kB"))


def test_files_that_overlap_are_merged_in_the_order_of_time_and_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "parted", None)
    for i in range(4):
        times = pa.array([t // 2 for t in range(2 * i, 900, 2)], pa.int64())
        parquet.write_table(
            pa.table({"t": times, "x": [1000 * i + n for n in range(len(times))]}),
            tmp_path / f"{3 - i}.parquet",
        )
    query = wr.query(
        time="t", windows={"w": wr.tumbling(10)}, aggregates={"all": wr.collect("x"), "first": wr.first("x")}
    )
    table = pa.concat_tables([parquet.read_table(tmp_path / f"{i}.parquet") for i in range(4)])
    assert_same(query.run(table), query.run(tmp_path, memory="8 kB"))


@pytest.mark.parametrize("memory", MEMORY)
def test_a_bad_row_is_named_by_its_number_over_all_files(memory, tmp_path):
    split(tmp_path)
    bad = pa.table({"junk": [[1]] * 3, "ts": pa.array([1, None, 2]), "k": ["a"] * 3, "x": [1, 2, 3]})
    parquet.write_table(bad, tmp_path / "part-5.parquet")
    with pytest.raises(wr.DataError, match="column 'ts', row 601, value None: an event needs a time"):
        QUERY.run(tmp_path, memory=memory)
    good = pa.concat_tables([EVENTS, bad.filter(pc.is_valid(bad["ts"]))])
    assert_same(QUERY.run(good), QUERY.run(tmp_path, memory=memory, on_bad="divert"))


@pytest.mark.parametrize("memory", MEMORY)
def test_a_value_that_does_not_fit_is_named_by_its_number(memory, tmp_path):
    values = [1] * SIZE
    values[431] = 2**63
    table = EVENTS.set_column(3, "x", pa.array(values, pa.uint64()))
    parquet.write_table(table, tmp_path / "events.parquet")
    with pytest.raises(wr.DataError, match=f"column 'x', row 431, value {2**63}"):
        QUERY.run(tmp_path / "events.parquet", memory=memory)


@pytest.mark.parametrize("memory", MEMORY)
def test_only_columns_that_are_named_are_read(memory, tmp_path, monkeypatch):
    parquet.write_table(EVENTS, tmp_path / "events.parquet")
    asked = set()
    read = sources.Scanned.batches

    def watched(self, columns):
        asked.update(columns)
        return read(self, columns)

    monkeypatch.setattr(sources.Scanned, "batches", watched)
    agrees(QUERY.run(tmp_path / "events.parquet", memory=memory))
    assert asked == {"ts", "k", "x"}


@pytest.mark.parametrize("memory", MEMORY)
def test_span_events_and_open_events_come_from_files(memory, tmp_path):
    spans = pa.table({"a": [5, 1, 9, 3], "b": [8, 4, 12, 20], "x": [1, 2, 3, 4]})
    parquet.write_table(spans, tmp_path / "spans.parquet")
    query = wr.query(
        time=wr.span("a", "b"), windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count(), "t": wr.sum("x")}
    )
    assert_same(
        query.run(spans), query.run(tmp_path / "spans.parquet", memory=1 if memory == "1 kB" else memory)
    )
    opened = pa.table({"a": [1, None, 3, 4], "b": [None, 9, 5, None], "id": [1, 1, 2, 3]})
    parquet.write_table(opened, tmp_path / "open.parquet")
    query = wr.query(
        time=wr.span("a", "b", id="id"), windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}
    )
    assert_same(
        query.run(opened), query.run(tmp_path / "open.parquet", memory=1 if memory == "1 kB" else memory)
    )


@pytest.mark.parametrize("memory", MEMORY)
def test_expressions_and_filters_are_computed_from_the_columns_of_files(memory, tmp_path):
    parquet.write_table(EVENTS, tmp_path / "events.parquet")
    query = wr.query(
        time="ts",
        key="k",
        windows={"w": wr.tumbling(50)},
        aggregates={"total": wr.sum(wr.expr("x * 2"), where="x > 100"), "n": wr.count()},
        where="k <> 'key 1'",
        select={"each": "total / n"},
    )
    assert_same(query.run(EVENTS), query.run(tmp_path / "events.parquet", memory=memory))


def test_empty_files_have_an_answer_without_rows(tmp_path):
    parquet.write_table(EVENTS.slice(0, 0), tmp_path / "empty.parquet")
    found = QUERY.run(tmp_path / "empty.parquet")
    assert len(found) == 0
    assert found.schema == QUERY.run(EVENTS).schema


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.parquet", "there is no file '.*nothing.parquet'"),
        ("*.csv", r"no file matches '.*\*.csv'"),
        ("", "there is no file of events in"),
        ("notes.txt", "'.*notes.txt' does not say by its name how to read it"),
        ("broken.parquet", "'.*broken.parquet' cannot be read as parquet"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(name, message, tmp_path):
    if name:
        (tmp_path / "notes.txt").write_text("a note", "utf-8")
        (tmp_path / "broken.parquet").write_text("a note", "utf-8")
    with pytest.raises(wr.QueryError, match=message):
        QUERY.run(tmp_path / name)


def test_a_column_that_is_not_there_is_named_with_the_file(tmp_path):
    parquet.write_table(EVENTS.rename_columns(["junk", "ts", "k", "xx"]), tmp_path / "events.parquet")
    with pytest.raises(wr.QueryError, match=r"events.parquet: there is no column 'x'; the columns are"):
        QUERY.run(tmp_path / "events.parquet")


def test_a_csv_whose_values_change_their_type_is_refused(tmp_path):
    (tmp_path / "events.csv").write_text("ts,k,x\n1,a,2\n" + "2,a,3\n" * 400_000 + "3,a,many\n", "utf-8")
    with pytest.raises(wr.QueryError, match=r"events.csv cannot be read: .*many"):
        QUERY.run(tmp_path / "events.csv")


def test_what_can_be_read_once_is_not_one_of_several(tmp_path):
    parquet.write_table(EVENTS, tmp_path / "events.parquet")
    with pytest.raises(
        wr.QueryError, match="read together are files, datasets and tables, and not list_iterator"
    ):
        QUERY.run([tmp_path / "events.parquet", iter([EVENTS])])
    with pytest.raises(wr.QueryError, match="a Scanner is read once: give the dataset"):
        QUERY.run(dataset.dataset(tmp_path).scanner())


@pytest.mark.parametrize("memory", ["much", "-1 GB", 0, True, "0"])
def test_memory_is_a_size(memory):
    with pytest.raises(wr.QueryError, match="memory"):
        QUERY.run(EVENTS, memory=memory)


@given(data=st.data())
def test_windows_of_order_agree_on_a_stream_of_files(data, tmp_path_factory):
    from tests.referee.strategies import SIGNALS

    folder = tmp_path_factory.mktemp("files")
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={**SIGNALS, "x": "int"}, max_size=30))
    query = data.draw(mixed_queries(time=pa.int64(), key=["int"], most=3))
    parquet.write_table(table, folder / "events.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "ROWS", 3)
        patch.setattr(ordering, "BLOCK", 2)
        found = query.run(folder, memory=data.draw(st.sampled_from([1, 4_000])))
    assert_same(answers(query, table), found, ulps=64)


COUNT = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})


def test_hidden_files_of_a_folder_are_no_events(tmp_path):
    rows = pa.table({"t": [1]})
    for name in ("a/x.parquet", ".y.parquet", "_z.parquet", "_temporary/0/x.parquet", "a/.hidden/x.parquet"):
        (tmp_path / "_out" / name).parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, tmp_path / "_out" / name)
    assert COUNT.run(tmp_path / "_out")["n"].to_pylist() == [1]


@pytest.mark.parametrize("memory", ["1 GB", "1 B"])
def test_a_file_without_values_has_the_types_of_the_others(memory, tmp_path):
    for name, text in {"a": "t,x\n", "b": "t,x\n1,5\n2,6\n", "c": "t,x\n", "d": "t,x\n3,\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    query = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"s": wr.sum("x"), "n": wr.count()})
    for events in (tmp_path, [tmp_path, pa.table({"t": pa.nulls(0), "x": pa.nulls(0)})]):
        assert query.run(events, memory=memory).select(["s", "n"]).to_pylist() == [{"s": 11, "n": 3}]
    assert len(query.label(tmp_path)) == 3


def test_a_lazy_frame_without_values_has_the_types_of_the_others(tmp_path):
    frames = [polars.LazyFrame({"t": [None], "x": ["a"]}), polars.LazyFrame({"t": [1], "x": ["b"]})]
    with pytest.raises(wr.DataError, match="row 0"):
        COUNT.run(frames)
    assert COUNT.run([frames[0].head(0), frames[1]])["n"].to_pylist() == [1]
