"""Where compiled code is kept between processes, and what happens where nothing can be kept.

    the loops of this package      beside the modules, or in Numba's folder in the user's cache
    loops around an aggregate      in `WINDROW_CACHE_DIR`, or `windrow` in the user's cache

Compiling takes seconds, so everything is kept that can be. But windrow must also run on machines that
it was merely sent to: imported from an archive, with a package folder that is read-only, as a user
without a home. What cannot be kept there is compiled in memory, once per process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Any:
    """The decorator of this package's own loops."""
    return compiled_once(function, nogil=True)


def compiled_once(function: Callable[..., Any], **options: Any) -> Any:
    """The function as a Numba dispatcher, whose machine code is kept on disk if there is a place for it."""
    try:
        kept = numba.njit(cache=True, **options)(function)
        path = kept.stats.cache_path
    except (RuntimeError, OSError):  # Numba knows no place
        path = None
    # For a module in an archive Numba names a place without a look whether it can write there.
    return kept if path and is_writable(Path(path)) else numba.njit(**options)(function)


@cache
def is_writable(directory: Path) -> bool:
    """Whether files can be made in a directory, which is made itself if need be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


@cache
def cache_directory() -> Path | None:
    """Where generated loops are kept; None if that cannot be written.

    It is named by the versions of Numba and Python, and a loop in it by the code of all that it calls.
    """
    versions = f"numba-{numba.__version__}-python-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        directory = _base() / versions
    except RuntimeError:  # there is no home
        return None
    return directory if is_writable(directory) else None


def _base() -> Path:
    chosen = os.environ.get("WINDROW_CACHE_DIR")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "windrow"
