"""Section 6 of the paper on spanning events: slices in two parts and in levels, beside buckets and sweeping."""
