"""Arrow in: rows checked, times as ticks, values as codes, keys as dense numbers."""
