"""Where compiled code is kept between processes, and what happens where nothing can be kept.

    the loops of this package      beside the modules, or in Numba's folder in the user's cache
    loops around an aggregate      in `WINDROW_CACHE_DIR`, or `windrow` in the user's cache

Compiling takes seconds, so everything is kept that can be. But windrow must also run on machines that
it was merely sent to: imported from an archive, with a package folder that is read-only, as a user
without a home. What cannot be kept there is compiled in memory, once per process.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

from windrow.engine.fingerprint import code_of


def jit(function: Callable[..., Any]) -> Any:
    """The decorator of this package's own loops."""
    return compiled_once(function, nogil=True)


def compiled_once(function: Callable[..., Any], **options: Any) -> Any:
    """The function as a Numba dispatcher, whose machine code is kept on disk if there is a place for it."""
    kept = numba.njit(**options)(function)
    try:
        store = _ByCode(function)
    except (RuntimeError, OSError):  # Numba knows no place
        return kept
    # For a module in an archive Numba names a place without a look whether it can write there.
    if is_writable(Path(store.cache_path)):
        kept._cache = store
    return kept


class _ByCode(FunctionCache):  # type: ignore[misc]
    """Machine code on disk, told by the code of all that it was made of.

    Numba looks at the file of the function alone. What another file gives to it, a constant or a function that it
    calls, is in the machine code too, and would stay as it was when that file changes.
    """

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        code = hashlib.sha256(code_of(self._py_func).encode()).hexdigest()
        return (*super()._index_key(sig, codegen), code)


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
