"""Window specs: one type per file, each a frozen value without state."""

from windrow.windows.advancing import Advancing
from windrow.windows.band import Band, band
from windrow.windows.base import Irregular, Periodic, Window
from windrow.windows.calendar import Calendar, calendar
from windrow.windows.cumulate import Cumulate, cumulate
from windrow.windows.delta import Delta, delta
from windrow.windows.deterministic import Deterministic, deterministic
from windrow.windows.landmark import Landmark, landmark
from windrow.windows.latest import Latest, latest
from windrow.windows.nondeterministic import Nondeterministic, nondeterministic
from windrow.windows.predicate import Predicate
from windrow.windows.punctuated import Punctuated, punctuated
from windrow.windows.rows import Rows
from windrow.windows.session import Session, session
from windrow.windows.slide_by_rows import SlideByRows, slide_by_rows
from windrow.windows.sliding import Sliding, sliding
from windrow.windows.snapshot import Snapshot, snapshot
from windrow.windows.threshold import Threshold, threshold
from windrow.windows.tumbling import Tumbling, tumbling

__all__ = [
    "Advancing",
    "Band",
    "Calendar",
    "Cumulate",
    "Delta",
    "Deterministic",
    "Irregular",
    "Landmark",
    "Latest",
    "Nondeterministic",
    "Periodic",
    "Predicate",
    "Punctuated",
    "Rows",
    "Session",
    "SlideByRows",
    "Sliding",
    "Snapshot",
    "Threshold",
    "Tumbling",
    "Window",
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
    "tumbling",
]
