"""Events that last: slices where they begin, and what goes on at the start of each slice."""
