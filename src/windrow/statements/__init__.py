"""SQL over event streams: window functions of tables as Flink has them, and windrow's own windows by their names.

SELECT .. FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1 minute')) WHERE .. GROUP BY .. HAVING ..

reading.py      text to statements: frozen values that hold specs
answering.py    statements to queries, one for all that can share slices, and their results to what was selected
"""

from __future__ import annotations

from typing import Any


def sql(text: str, /, **tables: Any) -> Any:
    """The answer to one SELECT over windows of a table, or to several, separated by semicolons.

    Statements over the same table, time, filter and keys are answered in one pass over shared slices. docs/sql.md says what can
    be written.

    Parameters
    ----------
    text
        The statements.
    tables
        Tables by the names that statements call them by: anything that `Query.run` takes, or DataFrames of Spark, streams included.

    Returns
    -------
    pyarrow.Table or DataFrame
        What was selected: a DataFrame of Spark if the table is one. A list of them if there are several statements.

    Raises
    ------
    QueryError
        If the text cannot be meant, with line, column, and what would work.

    Examples
    --------
    >>> import windrow as wr, pyarrow as pa
    >>> trades = pa.table({"ts": [1, 2, 7], "user": ["a", "b", "a"], "x": [10, 20, 30]})
    >>> wr.sql("SELECT user, window_end, sum(x) AS total FROM TUMBLE(trades, ts, 5) GROUP BY user, window_end", trades=trades).to_pylist()
    [{'user': 'a', 'window_end': 5, 'total': 10}, {'user': 'b', 'window_end': 5, 'total': 20}, {'user': 'a', 'window_end': 10, 'total': 30}]
    """
    from windrow.statements.answering import answers
    from windrow.statements.reading import statements

    found = answers(statements(text), tables)
    return found[0] if len(found) == 1 else found
