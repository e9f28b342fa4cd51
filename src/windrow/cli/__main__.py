"""`python -m windrow.cli`, where the script `windrow` is not on the path."""

import sys

from windrow.cli.main import main

sys.exit(main())
