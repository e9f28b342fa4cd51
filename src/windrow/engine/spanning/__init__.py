"""Span events: slices of what begins in them, and the carry-over of each slice."""
