"""The functions of aggregates at work: put into those of stores, checked against them, typed, and named where they fail."""
