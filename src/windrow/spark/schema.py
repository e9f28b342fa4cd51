"""Spark's types and Arrow's: what the engine will see of a DataFrame, and what Spark will get back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from windrow.aggregates.base import text_type
from windrow.errors import QueryError
from windrow.schema import require_columns
from windrow.spark.compatibility import arrow_type, require_supported
from windrow.spark.results import SIDE

if TYPE_CHECKING:
    from pyspark.sql import Column

# What `withWatermark` leaves in the schema.
WATERMARK = "spark.watermarkDelayMs"


def require_dataframe(df: Any) -> None:
    """An error unless this is a DataFrame, of a version of Spark that windrow runs on."""
    if not isinstance(df, DataFrame):
        raise QueryError(
            f"on_spark takes a DataFrame of Spark, not an object of type {type(df).__name__}: spark.createDataFrame(table) "
            "makes one of a table"
        )
    require_supported(df.sparkSession.version, what="Spark")


def arrow_schema(schema: StructType, names: list[str]) -> pa.Schema:
    """The Arrow types in which Spark sends these columns; timestamps are labelled UTC."""
    fields = []
    for name in names:
        type_ = schema[name].dataType
        try:
            fields.append(pa.field(name, _nullable(arrow_type(type_))))
        except PySparkException as problem:
            raise QueryError(f"column {name!r} of type {type_.simpleString()}: {problem}") from None
    return pa.schema(fields)


def _nullable(type_: pa.DataType) -> pa.DataType:
    """The same type, whose parts can all be null: those of a struct that is null are, whatever Spark says of them."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in type_])
    if pa.types.is_list(type_):
        return pa.list_(_nullable(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(_nullable(type_.key_type), _nullable(type_.item_type))
    return type_


def result_schema(embedded: pa.Schema, source: pa.Schema, *, side_rows: bool) -> pa.Schema:
    """The columns of the embedded result in types that Spark has, and those of the side rows where they are wanted."""
    fields = [pa.field(f.name, _for_spark(f.type)) for f in embedded]
    if side_rows:
        row = pa.struct([pa.field(f.name, f.type) for f in source])
        types = pa.string(), pa.string(), row
        fields += [pa.field(name, type_) for name, type_ in zip(SIDE, types, strict=True)]
        clash = {f.name for f in embedded} & set(SIDE)
        if clash:
            raise QueryError(f"with side_rows, no column can be called {', '.join(sorted(clash))}")
    return pa.schema(fields)


def _for_spark(type_: pa.DataType) -> pa.DataType:
    """A type that Spark has, of the same values: it knows neither dictionaries nor unsigned numbers."""
    if pa.types.is_dictionary(type_):
        return _for_spark(text_type(type_))
    if pa.types.is_unsigned_integer(type_):
        return pa.int64()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_for_spark(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _for_spark(f.type)) for f in type_])
    return type_


def watermarked(df: DataFrame) -> list[str]:
    """The columns of a DataFrame that carry a watermark."""
    return [field.name for field in df.schema if WATERMARK in (field.metadata or {})]


def require_watermark(df: DataFrame, column: str, time: str, *, without: str, late: str) -> None:
    """An error unless a stream has a watermark on this column; `time` is the column that tells the time."""
    known = watermarked(df)
    if not known:
        raise QueryError(
            f"a stream needs a watermark, or {without}: "
            f'df.withWatermark("{column}", "10 seconds") says how late {late} may be'
        )
    if column not in known:
        raise QueryError(
            f"the watermark is on column {known[0]!r}, and the time is {time!r}: "
            f"say watermark={known[0]!r} if both tell the same time"
        )


def require_names(df: DataFrame, names: Iterable[str]) -> None:
    """An error unless a DataFrame has these columns."""
    require_columns(pa.schema([(name, pa.null()) for name in df.columns]), tuple(names))


def named(name: str) -> Column:
    """The column of this name, whatever is in it."""
    return sf.col("`" + name.replace("`", "``") + "`")


def conf(df: DataFrame, name: str) -> Any:
    """A setting of the DataFrame's session."""
    return df.sparkSession.conf.get(name)
