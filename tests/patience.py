"""How long tests wait for what must happen: for the event itself, however busy the machine is.

The limit only ends a test that would hang for ever. No test passes or fails by it on a machine that merely is slow.
"""

PATIENCE = 900  # seconds
