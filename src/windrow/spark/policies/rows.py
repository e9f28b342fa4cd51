"""How the rows of all inputs travel together: the time that orders them, a tag, the columns of each input.

windrow time   windrow tag   id   name   id_right         a join, with the columns as its result has them
10:00:01       0             1    ann    null             a row of the left input
10:00:02       1             null null   1                a row of the right one
10:00:05       2             ..                           a punctuation
10:00:05       3             ..                           the same one, in another bucket: it is counted once
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.errors import DataError
from windrow.policies.operators import Join, Operator
from windrow.policies.ports import Punctuated
from windrow.spark.policies.task import PUNCTUATION, TAG, Port


def fed(operator: Operator, ports: tuple[Port, ...], rows: pa.RecordBatch) -> pa.Table:
    """Let rows into an operator, in the order that they have; what it gives out."""
    tags = rows.column(TAG).to_numpy()
    try:
        if isinstance(operator, Join):
            places = [np.flatnonzero(tags == side) for side in (0, 1)]
            left, right = (port.table(rows.take(pa.array(p))) for port, p in zip(ports, places, strict=True))
            return operator.process_together((left, right), (places[0], places[1]))[0].table
        ends = tags >= PUNCTUATION
        if not ends.any():
            return operator.process(ports[0].table(rows))[0].table
        kept = ports[0].table(rows.filter(pa.array(~ends)))
        return operator.process(Punctuated(kept, np.cumsum(~ends)[ends]))[0].table
    except DataError as error:
        where = "rows are counted in their bucket, in the order in which they come to the window"
        raise DataError(error.column, error.row, error.value, f"{error.problem} ({where})") from None
