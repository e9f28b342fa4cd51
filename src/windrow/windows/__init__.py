"""Window specs: one type per file, each a frozen value without state."""

from windrow.windows.around import around
from windrow.windows.band import band
from windrow.windows.base import Window
from windrow.windows.calendar import calendar
from windrow.windows.cumulate import cumulate
from windrow.windows.delta import delta
from windrow.windows.deterministic import deterministic
from windrow.windows.landmark import landmark
from windrow.windows.latest import latest
from windrow.windows.nondeterministic import nondeterministic
from windrow.windows.punctuated import punctuated
from windrow.windows.session import session
from windrow.windows.slide_by_rows import slide_by_rows
from windrow.windows.sliding import sliding
from windrow.windows.snapshot import snapshot
from windrow.windows.threshold import threshold
from windrow.windows.trailing import trailing
from windrow.windows.tumbling import tumbling

__all__ = [
    "Window",
    "around",
    "band",
    "calendar",
    "cumulate",
    "delta",
    "deterministic",
    "landmark",
    "latest",
    "nondeterministic",
    "punctuated",
    "session",
    "slide_by_rows",
    "sliding",
    "snapshot",
    "threshold",
    "trailing",
    "tumbling",
]
