"""Everything windrow raises on purpose, in one small family.

    WindrowError
    |-- QueryError          the query cannot mean anything, or cannot fit this table
    |-- DataError           a row cannot be processed: names column, row and value
    |-- LimitError          a stated limit on state would be passed
    |-- StateError          a snapshot is damaged, foreign or of another version; a call was interrupted half-way
    |   `-- UndescribedError    it is sound, and needs something that is not in it
    `-- UserFunctionError   a function of the user's own raised: names it and the row

An error leaves the operator as it was before the call: nothing is half applied.
"""

from __future__ import annotations

from typing import Any


class WindrowError(Exception):
    """The base of every error that windrow raises on purpose."""


class QueryError(WindrowError, ValueError):
    """A window, an aggregate or a query that cannot be carried out as written."""


class DataError(WindrowError, ValueError):
    """A row that cannot be processed.

    `column`, `row` (its position in the batch that was handed in, or None where none is to blame) and `value` are
    attributes, so that a caller can do more than print the sentence.
    """

    def __init__(self, column: str, row: int | None, value: Any, problem: str) -> None:
        place = "" if row is None else f" row {row},"
        super().__init__(f"column {column!r},{place} value {value!r}: {problem}")
        self.column = column
        self.row = row
        self.value = value
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.column, self.row, self.value, self.problem)


class LimitError(WindrowError, RuntimeError):
    """More state than the stated limit would be needed; nothing was changed."""


class StateError(WindrowError, ValueError):
    """A state that cannot be restored or continued.

    A snapshot that is truncated, corrupted, foreign or too new, or what a call has left that was interrupted half-way.
    """


class UndescribedError(StateError):
    """A state that is sound and cannot be read without something that is not in it, such as a function of the user's own."""


class UserFunctionError(WindrowError, RuntimeError):
    """A `lift`, `combine` or `lower` of the user's own raised an exception.

    `row` is the row of the batch at which it did, where that is known.
    """

    def __init__(self, what: str, row: int | None = None, why: str = "") -> None:
        place = "" if row is None else f" at row {row}"
        super().__init__(f"{what}{place}{why}")
        self.what = what
        self.row = row
        self.why = why

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.row, self.why)
