"""Which shape of state a window asks for.

aligned     context-free windows: all keys are cut at the same instants
keyed       sessions, landmarks, snapshots: each key is cut in its own places, as its events come
in order    everything else: each key is cut in its own places, once the order of its events is known
"""

from __future__ import annotations

from windrow.windows.base import Window
from windrow.windows.landmark import Landmark
from windrow.windows.snapshot import Snapshot


def is_aligned(window: Window) -> bool:
    """Whether all keys are cut at the same instants."""
    return window.context == "context free" and not isinstance(window, (Landmark, Snapshot))


def needs_order(window: Window) -> bool:
    """Whether the window depends on the order of events, and not on their times alone."""
    return window.context in ("forward context free", "forward context aware")
