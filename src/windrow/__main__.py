"""`python -m windrow`: the command, where the script `windrow` is not on the path."""

import sys

from windrow.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
