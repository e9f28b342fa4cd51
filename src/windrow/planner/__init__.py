"""From a query to a plan: pure functions, no state, no compiled code."""
