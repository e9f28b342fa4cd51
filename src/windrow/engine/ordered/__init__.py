"""The engine for windows that depend on the order of events: each key is cut where its windows begin and end."""
