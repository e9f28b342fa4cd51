"""The folder with compiled code: `WINDROW_CACHE_DIR`, or `windrow` in the user's cache.

    numba-0.68.1-python-3.11 / loop-code-types.bin        one file for each loop, its code and the types of its arguments

Compiling takes seconds, so everything is kept that can be. But windrow must also run on machines that it was merely sent
to: imported from an archive, with folders that are read-only or full, as a user without a home. What cannot be kept there is
compiled in memory, once per process. A file is written under another name and then moved, and begins with the hash of its
contents: processes may write the same at once, and one that is damaged is as good as none.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from windrow.engine.fingerprint import code_of

DIGEST = hashlib.sha256().digest_size


def name_of(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """What a loop is known by: its name, how it is compiled, and the code of all that it calls."""
    return f"{function.__name__}-{text_hash(f'{options}{code_of(function)}')}"


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def is_kept(function: Callable[..., Any], options: dict[str, Any]) -> bool:
    """Whether there was machine code of a loop when this process first asked, whatever the types."""
    return name_of(function, options) in _names()


@cache
def _names() -> frozenset[str]:
    directory = cache_directory()
    if directory is None:
        return frozenset()
    try:
        return frozenset(entry.name.rsplit("-", 1)[0] for entry in os.scandir(directory))
    except OSError:  # it was deleted
        return frozenset()


def holds(name: str) -> bool:
    """Whether there is a file of this name."""
    directory = cache_directory()
    return directory is not None and (directory / name).exists()


def read(name: str) -> bytes | None:
    """The contents of a file; None if there is none, or it is damaged."""
    directory = cache_directory()
    if directory is None:
        return None
    try:
        found = (directory / name).read_bytes()
    except OSError:
        return None
    digest, contents = found[:DIGEST], found[DIGEST:]
    return contents if hashlib.sha256(contents).digest() == digest else None


def write(name: str, contents: bytes) -> None:
    """Keep a file, if there is a place for it."""
    directory = cache_directory()
    if directory is None:
        return
    temporary = directory / f"{name}.{os.getpid()}-{threading.get_ident()}.tmp"
    try:
        temporary.write_bytes(hashlib.sha256(contents).digest() + contents)
        os.replace(temporary, directory / name)
    except OSError:  # read-only, full, or gone
        with suppress(OSError):
            temporary.unlink()


@cache
def cache_directory() -> Path | None:
    """The folder, named by the versions of Numba and Python; None if it can be neither read nor made."""
    versions = f"numba-{version('numba')}-python-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        directory = _base() / versions
        directory.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError):  # there is no home, or no right to make a folder
        return None
    return directory if os.access(directory, os.R_OK | os.X_OK) else None


def _base() -> Path:
    chosen = os.environ.get("WINDROW_CACHE_DIR")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "windrow"
