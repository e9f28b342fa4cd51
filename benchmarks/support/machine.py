"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("numpy", "numba", "pyarrow", "polars", "duckdb")


def describe() -> dict[str, str]:
    """Facts about this machine and its software, ready to print."""
    return {
        "Date": f"{datetime.now(UTC):%Y-%m-%d}",
        "CPU": f"{_cpu_model()}, {len(os.sched_getaffinity(0))} cores",
        "Memory": f"{_memory_gib():.0f} GiB",
        "System": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "Versions": ", ".join(f"{package} {version(package)}" for package in PACKAGES),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
