"""Window specs: one type per file, each a frozen value without state."""

from windrow.windows.band import Band, band
from windrow.windows.base import Irregular, Periodic, Window
from windrow.windows.calendar import Calendar, calendar
from windrow.windows.cumulate import Cumulate, cumulate
from windrow.windows.sliding import Sliding, sliding
from windrow.windows.tumbling import Tumbling, tumbling

__all__ = [
    "Band",
    "Calendar",
    "Cumulate",
    "Irregular",
    "Periodic",
    "Sliding",
    "Tumbling",
    "Window",
    "band",
    "calendar",
    "cumulate",
    "sliding",
    "tumbling",
]
