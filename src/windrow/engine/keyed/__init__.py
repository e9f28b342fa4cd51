"""The engine for windows that depend on more than time: each key is cut in its own places."""
