"""Sections 6 and 7 of the paper on Cutty: what slicing saves in partials and in calls of `combine`."""
