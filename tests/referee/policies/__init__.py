"""The referee of `windrow.policies`: windows and operators by definition, one tuple at a time, in plain Python.

NaiveWindow         Tables I and II; what happens is told to a listener
NaiveAggregate      and the other operators, over it
"""

from tests.referee.policies.operators import (
    PUNCTUATION,
    NaiveAggregate,
    NaiveDeduplicate,
    NaiveJoin,
    NaiveOperator,
    NaiveSort,
)
from tests.referee.policies.window import ORDERS, Happened, NaiveWindow, Row, Subwindow

__all__ = [
    "ORDERS",
    "PUNCTUATION",
    "Happened",
    "NaiveAggregate",
    "NaiveDeduplicate",
    "NaiveJoin",
    "NaiveOperator",
    "NaiveSort",
    "NaiveWindow",
    "Row",
    "Subwindow",
]
