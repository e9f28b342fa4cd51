"""Texts as polars hands them over, which are views, and dictionaries of views, are texts as any others."""

from __future__ import annotations

import polars
import pyarrow as pa
import pytest

import windrow as wr

TEXTS = ["b", "a", None, "b"]
KEYS = {
    "text": polars.Series(TEXTS),
    "categorical": polars.Series(TEXTS, dtype=polars.Categorical),
    "enum": polars.Series(TEXTS, dtype=polars.Enum(["a", "b"])),
}
BIT = {"time": "ts", "windows": {"w": wr.tumbling(10)}}


def framed(name: str) -> tuple[polars.DataFrame, pa.Table]:
    """Events of polars, and the same with plain texts."""
    plain = pa.table({"ts": [1, 2, 3, 4], "s": TEXTS})
    return polars.DataFrame({"ts": [1, 2, 3, 4], "s": KEYS[name]}), plain


def rows(table: pa.Table) -> list[dict]:
    return sorted(table.to_pylist(), key=str)


@pytest.mark.parametrize("name", KEYS)
def test_a_text_of_polars_is_a_key(name):
    frame, plain = framed(name)
    query = wr.query(**BIT, key="s", aggregates={"n": wr.count()})
    assert rows(query.run(frame)) == rows(query.run(plain))
    assert rows(query.run(iter([frame, frame]))) == rows(query.run(pa.concat_tables([plain, plain])))
    assert rows(query.at(frame)) == rows(query.at(plain))
    assert rows(query.at(frame, plain)) == rows(query.at(plain, frame)) == rows(query.at(plain))
    assert rows(query.label(frame)) == rows(query.label(plain))
    assert rows(query.run(frame, fill=0, sort=True)) == rows(query.run(plain, fill=0, sort=True))
    views = pa.Table.from_batches(pa.RecordBatchReader.from_stream(frame))
    assert rows(query.run(pa.concat_tables([views, views]))) == rows(
        query.run(pa.concat_tables([plain, plain]))
    )
    assert query.run(views.slice(0, 0)).num_rows == 0
    operator = query.operator()
    operator.process(frame)
    operator.process(polars.concat([frame, frame], rechunk=False))
    assert rows(operator.finish()) == rows(query.run(pa.concat_tables([plain, plain, plain])))


@pytest.mark.parametrize("name", KEYS)
def test_texts_of_polars_are_filtered_and_computed_with(name):
    frame, plain = framed(name)
    query = wr.query(
        **BIT, where="ts > 1", aggregates={"high": wr.max("s"), "u": wr.max(wr.expr("upper(s)"))}
    )
    expected = query.run(plain).to_pylist()
    assert query.run(frame).to_pylist() == query.run(iter([frame])).to_pylist() == expected
    operator = query.operator()
    operator.process(frame)
    assert operator.finish().to_pylist() == expected


def test_an_operator_that_was_prepared_for_views_takes_them():
    frame, _ = framed("enum")
    query = wr.query(**BIT, key="s", aggregates={"n": wr.count()})
    operator = query.operator()
    operator.prepare(pa.RecordBatchReader.from_stream(frame).schema)
    operator.process(frame)
    assert operator.finish()["n"].to_pylist() == [2, 1, 1]
