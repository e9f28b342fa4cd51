"""windrow on Spark against Spark's own windows, in one run."""
