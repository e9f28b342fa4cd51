"""The command line: `windrow pipeline FILE`."""
