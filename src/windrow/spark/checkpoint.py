"""What is in the checkpoint of a stream: its folder as Spark writes it, and the state of buckets through Spark's own reader.

    metadata      who the stream is
    offsets/17    what micro-batch 17 was to read, its watermark, and settings that stay
    commits/17    that it has finished
    state/0/..    what the first stateful operator knew then, by partition

A micro-batch is planned, run and committed. One that was planned and not committed is run again when the stream goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.aggregates.count import count
from windrow.engine.intake.projection import projected
from windrow.engine.snapshot.description import require_compatible
from windrow.engine.snapshot.format import described_query
from windrow.errors import QueryError, StateError, UndescribedError
from windrow.options import OperatorOptions
from windrow.spark.state import Bucket, Head, snapshot_of
from windrow.spark.task import Task
from windrow.spec import QuerySpec
from windrow.windows.tumbling import tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.engine.operator import Operator

PARTITIONS = "spark.sql.shuffle.partitions"
# The variables of a bucket; see `processor`.
VARIABLES = {"head", "base", "log"}
OWN_FUNCTIONS = ("Deterministic", "Nondeterministic", "UserAggregate")


@dataclass(frozen=True)
class Stateful:
    """A stateful operator of Spark: its number, its name, its partitions, and whether its state is windrow's."""

    number: int
    name: str
    partitions: int
    is_ours: bool


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in a folder of this machine. `planned` and `committed` are micro-batches, by number, as Spark describes them."""

    folder: Path
    planned: dict[int, dict[str, Any]]
    committed: dict[int, dict[str, Any]]
    operators: tuple[Stateful, ...]

    @classmethod
    def read(cls, folder: str | Path) -> Checkpoint:
        """A `QueryError` if this is not a checkpoint, a `StateError` if it is damaged."""
        path = cls.require(folder)
        _json((path / "metadata").read_text(), path / "metadata")
        return cls(path, _log(path / "offsets"), _log(path / "commits"), _operators(path / "state"))

    @staticmethod
    def require(folder: str | Path) -> Path:
        """Where a checkpoint lies; a `QueryError` if there is none."""
        if "://" in str(folder):
            raise QueryError(f"{folder} is not a folder of this machine: copy the checkpoint here first")
        path = Path(folder).expanduser().resolve()
        if not path.is_dir():
            raise QueryError(f"there is no folder {folder}")
        if not (path / "metadata").is_file() or not (path / "offsets").is_dir():
            raise QueryError(f"{folder} is not the checkpoint of a stream: it has no metadata and offsets")
        return path

    @property
    def last(self) -> int | None:
        """The last micro-batch that has finished."""
        return max(self.committed, default=None)

    @property
    def unfinished(self) -> int | None:
        """The micro-batch that was planned and has not finished; None if there is none."""
        newest = max(self.planned, default=None)
        return newest if newest is not None and newest not in self.committed else None

    @property
    def settings(self) -> dict[str, str]:
        """Settings of Spark that stay as they were with the first start."""
        return dict(self.planned[max(self.planned)].get("conf", {})) if self.planned else {}

    @property
    def ours(self) -> list[Stateful]:
        """The operators whose state is windrow's."""
        return [operator for operator in self.operators if operator.is_ours]


def _operators(folder: Path) -> tuple[Stateful, ...]:
    found = []
    for place in sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name)):
        described = sorted((place / "_metadata" / "v2").glob("[0-9]*"), key=lambda path: int(path.name))
        if not described:
            found.append(Stateful(int(place.name), "an operator that does not say its name", 0, False))
            continue
        about = _entry(described[-1])
        properties = json.loads(about.get("operatorPropertiesJson") or "{}")
        names = {each["stateName"] for each in properties.get("stateVariables", ())}
        found.append(
            Stateful(
                int(place.name),
                about["operatorInfo"]["operatorName"],
                about["stateStoreInfo"][0]["numPartitions"],
                names >= VARIABLES,
            )
        )
    return tuple(found)


def _log(folder: Path) -> dict[int, dict[str, Any]]:
    """The entries of one of Spark's logs: what the first line behind the version says, and `sources`, the lines behind it."""
    files = sorted((int(path.name), path) for path in folder.glob("[0-9]*") if path.name.isdigit())
    return {number: _entry(path) for number, path in files}


def _entry(path: Path) -> dict[str, Any]:
    """A file of Spark's: a version, a line of JSON, and in logs of offsets a line for each source."""
    version, first, *rest = [*path.read_text(errors="replace").split("\n"), ""]
    if not version.startswith("v"):
        raise StateError(f"{path} is damaged: it does not begin with a version")
    return _json(first, path) | {"sources": rest}


def _json(text: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise StateError(f"{path} is damaged: {problem}") from None
    if not isinstance(found, dict):
        raise StateError(f"{path} is damaged: it does not say what it should")
    return found


# -- the state of buckets --------------------------------------------------------------------------------


class Value:
    """A value of a bucket's state, in memory: for one variable of `Bucket`."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def get(self) -> Any:
        return self.value


class Map:
    """A map of a bucket's state, in memory."""

    def __init__(self) -> None:
        self.values: dict[tuple[int], Any] = {}

    def getValue(self, key: tuple[int]) -> Any:
        return self.values.get(key)


class SavedBucket:
    """The state of one bucket, read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.head, self.base, self.log = Value(), Map(), Map()

    @property
    def about(self) -> Head:
        """How the state is laid out; it has been read."""
        return Head(*self.head.get())

    @property
    def buckets(self) -> int:
        """How many buckets the stream has; 0 if an early version of windrow did not say."""
        return int(self.about.plan.partition(" ")[2] or 0)

    def bucket(self, query: QuerySpec, plan: str, buckets: int) -> Bucket:
        """The bucket of a stream of this query."""
        nothing = pa.schema([])
        task = Task(
            query, OperatorOptions(), nothing, nothing, combine=False, side_rows=False, buckets=buckets
        )
        return Bucket(task, plan, self.number, self.head, self.base, self.log)

    def operator(self, query: QuerySpec | None = None) -> Operator:
        """The operator, as it was when the last micro-batch had finished; `query` if it has functions of the user's own."""
        about, spec = self.about, self._shell() if query is None else replace(projected(query), ordered=False)
        try:
            require_compatible(self.description, spec)
        except StateError as problem:
            raise UndescribedError(
                f"{problem}; it can be read with the query of the stream, in Python, by `query=`"
            ) from None
        found: Operator = self.bucket(spec, about.plan, self.buckets).operator
        return found

    @property
    def description(self) -> dict[str, Any]:
        """What the state says of its query."""
        head = self.about
        known = described_query(snapshot_of(self.number, head, self.base)) if head.chunks else None
        if known is None:
            raise UndescribedError(
                "the state does not describe its query: it is of an operator over policy windows, or of an earlier version of windrow. "
                "The latter describes it after one more micro-batch"
            )
        return known

    def _shell(self) -> QuerySpec:
        """A query by which the one of the state can be made from its description."""
        about = self.description
        specs = [*about["windows"].values(), *about["aggregates"].values()]
        own = [entry["text"] for entry in specs if entry["is"] in OWN_FUNCTIONS or _has_predicate(entry)]
        if own:
            raise UndescribedError(
                f"the state needs functions that are not in it ({', '.join(own)}): give the query, in Python, by `query=`"
            )
        name = "windrow reads"
        shell = QuerySpec.checked(about["time"], about["key"], {name: tumbling(1)}, {name: count()})
        computed = MappingProxyType(dict(about.get("key_expressions", {})))
        return replace(shell, where=about.get("where"), key_expressions=computed)


def _has_predicate(entry: dict[str, Any]) -> bool:
    """Whether a function of the user's own marks events."""
    fields = entry["fields"].values()
    return any(isinstance(f, dict) and f.get("is") == "Predicate" and f["column"] is None for f in fields)


def saved_buckets(spark: SparkSession, folder: Path, operator: Stateful, batch: int) -> list[SavedBucket]:
    """The state of all buckets of an operator, after a micro-batch."""
    found: dict[int, SavedBucket] = {}
    for row in _state(spark, folder, operator, batch, "head"):
        number = row["key"]["bucket"]
        found.setdefault(number, SavedBucket(number)).head.value = tuple(row["value"])
    for name in ("base", "log"):
        for row in _state(spark, folder, operator, batch, name):
            number = row["key"]["bucket"]
            if number not in found:
                raise StateError(f"bucket {number} has a {name} and no head")
            values = tuple(bytes(v) if isinstance(v, bytearray) else v for v in row["user_map_value"])
            getattr(found[number], name).values[(row["user_map_key"][0],)] = values
    return [found[number] for number in sorted(found)]


def _state(spark: SparkSession, folder: Path, operator: Stateful, batch: int, name: str) -> Iterator[Any]:
    reader = spark.read.format("statestore").option("path", str(folder)).option("batchId", batch)
    rows = reader.option("operatorId", operator.number).option("stateVarName", name).load()
    return iter(rows.collect())
