"""Which versions of Spark windrow runs on, and what differs between them.

This is the only module that uses what PySpark does not document: its conversion of types to Arrow and back, whose
parameters change from one minor version to the next, and the pickler that comes with it.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.errors import WindrowError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# `make test-versions` runs jobs on each of them.
SUPPORTED = ("4.1", "4.2", "4.3")


def require_supported(version: str, *, what: str) -> None:
    """An error unless windrow is tested with this version; `what` has it.

    >>> require_supported("4.0.5", what="PySpark")
    Traceback (most recent call last):
        ...
    windrow.errors.WindrowError: windrow runs on Spark 4.1, 4.2 and 4.3, and PySpark is 4.0.5 here: install one of these
    """
    if ".".join(version.split(".")[:2]) not in SUPPORTED:
        known = f"{', '.join(SUPPORTED[:-1])} and {SUPPORTED[-1]}"
        raise WindrowError(
            f"windrow runs on Spark {known}, and {what} is {version} here: install one of these"
        )


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type in which Spark sends values of this type; timestamps are labelled UTC.

    A type that Spark cannot send is a `PySparkException`.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    # Up to 4.1, UTC is all there is.
    if "timezone" in inspect.signature(to_arrow_type).parameters:
        return to_arrow_type(type_, timezone="UTC")
    return to_arrow_type(type_)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark types of these columns; timestamps without a zone stay so, which is not the default in each version."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def pickled(value: Any) -> bytes:
    """A value as bytes for `pickle.loads`, with the code of functions that no module has."""
    from pyspark import cloudpickle

    return cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
