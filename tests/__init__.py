"""Tests; what several of them share is `specimens`, `functions`, and the referee."""
