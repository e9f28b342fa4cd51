"""The engine for windows of time: all keys are cut at the same instants, so slices x keys is a matrix."""
