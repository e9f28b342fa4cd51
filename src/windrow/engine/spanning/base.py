"""What the engine for windows of time asks of its component for span events, if it has one (`spanning.spans`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from windrow.engine.partials import Numbers, Store
    from windrow.engine.staging import Staged
    from windrow.engine.windows import ClosedWindows
    from windrow.measure import Tick
    from windrow.planner.window_set import WindowSet


class SpanState(Protocol):
    """What goes on across the start of each slice, beside what begins in it, which the engine keeps as it does points."""

    @property
    def stores(self) -> Sequence[Numbers]:
        """What lies in the arena beside the partials of what begins."""

    @property
    def carries(self) -> Sequence[Numbers]:
        """What goes on from before the first slice."""

    def too_late(self, incoming: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """As `Engine.too_late`."""

    def stage(self, incoming: Any, staged: Staged) -> None:
        """Fold events into slices, or join slices of elsewhere to those that are here."""

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        """What the events of a store are folded into, and the segments of each."""

    def holders(self, store: Store) -> Sequence[Any]:
        """Everything that holds codes of the events of a store."""

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Any:
        """The partials of windows x keys: of what begins in the slices of each, and the carry-over of its first slice."""

    def prepare_evict(self, threshold: Tick) -> None:
        """Find the carry-over behind the slices that begin before `threshold`; this may fail."""

    def evict(self) -> None:
        """Go on to a watermark: those slices will be gone."""

    def forget_fresh(self) -> Sequence[Numbers]:
        """What counts the late events that go on; their slices are reset next."""

    def live_keys(self) -> np.ndarray:
        """A mask of the keys of which something goes on, or is kept."""

    def resize(self, stride: int, keys: np.ndarray | slice) -> None:
        """The arena has rows of another size, and perhaps keys other numbers."""

    def complete_from(self, alone: WindowSet, start: Tick | None) -> Tick | None:
        """From when on an added window is complete, which would be from `start` on for points."""

    def add_store(self, store: Store) -> Tick | None:
        """Give a new store its carry-over; from which start on windows are complete in it."""

    def arrange(self) -> None:
        """Know the order of the stores."""

    def drop_removed(self) -> None:
        """Forget what belongs to stores that are gone."""

    def reach(self, until: Tick) -> None:
        """Make the slices up to an instant, if something goes on: no slice of elsewhere tells how long it will."""
