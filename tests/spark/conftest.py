"""What the tests of this folder share."""

import sys
from pathlib import Path

# `streams` and `stores`.
sys.path.insert(0, str(Path(__file__).parent))
