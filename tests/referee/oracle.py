"""The oracle: the answer of a query, recomputed from scratch for every window. Slow and plain.

For each event it asks which windows hold it, or some of it if it lasts (see `places`), puts the event
there, and when all events are placed it sorts each window and applies the definition of each
aggregate. Windows that depend on the events are found key by key, over the whole sequence (see
`sequences`). Nothing is shared, nothing is sliced, nothing is incremental. It is what every engine is
compared with.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.referee.answers import Answer, Answers, compute
from tests.referee.events import Event, Key, read_events
from tests.referee.places import Place, places_of, problem_in
from tests.referee.sequences import in_sequence, is_sequential, windows_in
from tests.referee.spans import bounded_spans
from windrow.errors import DataError
from windrow.spec import QuerySpec


def answers(query: QuerySpec, table: pa.Table) -> Answers:
    """The answer with everything that a comparison needs; see `oracle`."""
    measure, events = (read_events if isinstance(query.time, str) else bounded_spans)(query, table)
    places: dict[Place, list[Event]] = {}
    sequences: dict[Key, list[Event]] = {}
    for event in events:
        if problem := problem_in(query, measure, event):
            column, value, reason = problem
            raise DataError(column, event.row, value, reason)
        for place in places_of(query, measure, event):
            places.setdefault(place, []).append(event)
        sequences.setdefault(event.key, []).append(event)
    content = [(place, tuple(members)) for place, members in places.items()]
    for name, window in query.windows.items():
        if is_sequential(window):
            for key, members in sequences.items():
                for stretch in windows_in(window, measure, in_sequence(members)):
                    content.append(((key, name, (stretch.start, stretch.end)), stretch.events))
    rows = []
    for (key, name, (start, end)), held in content:
        values, inputs = compute(query, held, start, end)
        rows.append(Answer(key, name, start, end, values, inputs))
    return Answers(query, measure, table.schema, rows)


def oracle(query: QuerySpec, table: Any) -> pa.Table:
    """What `query.run(table)` must return, up to the order of rows and the last bits of float sums.

    >>> import windrow as wr, pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 7], "x": [10, 20, 30]})
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"total": wr.sum("x")})
    >>> oracle(q, events).to_pylist()[0]
    {'window': 'w', 'start': 0, 'end': 5, 'total': 30}
    """
    return answers(query, pa.table(table)).table()
