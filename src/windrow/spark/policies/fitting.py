"""An operator fitted to the columns of its inputs: which of them travel, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from windrow.compiling.fingerprint import code_of
from windrow.measure import Measure
from windrow.policies.operators import Aggregate, Operator
from windrow.policies.spec import Delta
from windrow.spark.compatibility import pickled
from windrow.spark.policies.rows import TAG, TIME, Port
from windrow.spark.policies.task import PolicyTask
from windrow.spark.schema import result_schema


def read_by(operator: Operator) -> list[str] | None:
    """The columns that an operator reads; None if rows pass through it as they are."""
    return list(dict.fromkeys(_read(operator))) if isinstance(operator, Aggregate) else None


def _read(operator: Aggregate) -> Iterator[str]:
    yield from operator.partition_by[0]
    yield from operator.group_by
    for aggregate in operator.aggregates.values():
        yield from aggregate.columns
    for policy in (operator.spec.eviction, operator.spec.trigger):
        if isinstance(policy, Delta):
            yield policy.column


def fitted(
    operator: Operator,
    inputs: Sequence[pa.Schema],
    measure: Measure | None,
    *,
    side_rows: bool = False,
    buckets: int = 1,
) -> PolicyTask:
    """What workers must know to run an operator on these inputs.

    Rows are ordered by `measure`; where it is None, a clock drives the operator.
    """
    kind, args, options = operator.recipe
    given_out = kind(*args, **options).result_schema(*inputs)
    # Late rows of a join have the columns that its result has, and null in those of the other side.
    columns = inputs[0] if len(inputs) == 1 else given_out
    time = [] if measure is None else [pa.field(TIME, measure.type)]
    schema = pa.schema([*time, pa.field(TAG, pa.int8()), *columns])
    ports, first = [], len(schema) - len(columns)
    for known in inputs:
        ports.append(Port(known, first))
        first += len(known)
    return PolicyTask(
        recipe=pickled(operator.recipe),
        described=_described(operator),
        ports=tuple(ports),
        measure=measure,
        schema=schema,
        columns=columns,
        result=result_schema(given_out, columns, side_rows=side_rows),
        side_rows=side_rows,
        buckets=buckets,
    )


def _described(operator: Operator) -> str:
    """What an operator does, as text; functions count by their code."""
    _, args, options = operator.recipe
    values: list[Any] = [*args, *options.values(), *(getattr(w, "selection", None) for w in operator.windows)]
    if isinstance(operator, Aggregate):
        values += [value for aggregate in operator.aggregates.values() for value in vars(aggregate).values()]
    functions = [code_of(value) for value in values if callable(value)]
    plain = [repr(value) for value in values if isinstance(value, (str, bool, int))]
    return "\n".join([operator.described(), *functions, *plain])
