"""What the benchmarks share: the clock, the streams they run on, and the report."""
