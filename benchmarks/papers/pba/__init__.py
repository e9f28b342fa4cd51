"""Section 5.1 of the paper on PBA: stores that merge slices, one event at a time, beside each other."""
