"""Operators over policy windows; each of them is described in its own module."""

from windrow.policies.operators.aggregate import Aggregate
from windrow.policies.operators.base import Operator
from windrow.policies.operators.deduplicate import Deduplicate
from windrow.policies.operators.join import Join
from windrow.policies.operators.sort import Sort
from windrow.policies.operators.stateless import Filter, Project
from windrow.policies.operators.windowed import Windowed

__all__ = ["Aggregate", "Deduplicate", "Filter", "Join", "Operator", "Project", "Sort", "Windowed"]
