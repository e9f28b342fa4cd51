"""An operator of one's own: the strongest frequency in each window of a vibrating machine.

    python examples/policies/spectrum.py

The operator says what to do when a window is due, and nothing about windows: count, delta, time or
punctuations, with partitions or without, are said where it is used.
"""

import numpy as np
import pyarrow as pa

from windrow import policies as wp


# [operator]
class Spectrum(wp.Windowed):
    """The strongest frequency of a column, sampled `rate` times a second, in each window."""

    def __init__(self, window, column, *, rate, **options):
        super().__init__(window, **options)
        self.column, self.rate = column, rate

    def due(self, event):
        values = event.content[self.column].to_numpy()
        power = np.abs(np.fft.rfft(values - values.mean()))
        strongest = int(power.argmax())
        hertz = strongest * self.rate / len(values)
        self.emit([{"machine": event.partition, "hertz": hertz, "power": power[strongest]}], punctuated=True)

    trigger = before_flush = due


# [/operator]


def readings(seconds: int = 4, rate: int = 256) -> pa.Table:
    """Two machines, one after the other in each sample: a shakes at 20 Hz, b at 50 Hz and, from half time
    on, at 8.
    """
    t = np.arange(seconds * rate) / rate
    a = np.sin(2 * np.pi * 20 * t)
    b = np.where(t < seconds / 2, np.sin(2 * np.pi * 50 * t), 3 * np.sin(2 * np.pi * 8 * t))
    together = np.column_stack([a, b]).ravel()
    return pa.table({"machine": np.tile(["a", "b"], len(t)), "x": together})


def main() -> None:
    """Print a row for each window of each machine."""
    window = "tumbling, count(256), partitioned"
    operator = Spectrum(window, "x", rate=256, partition_by="machine")
    for row in operator.process(readings())[0].table.to_pylist():
        print(f"{row['machine']}  {row['hertz']:5.1f} Hz  {row['power']:6.1f}")


if __name__ == "__main__":
    main()
