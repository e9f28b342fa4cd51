"""The folder with compiled code: `WINDROW_CACHE_DIR`, or `windrow` in the user's cache.

    numba-0.68.1-python-3.11 / loop-code-types.bin        one file for each loop, its code and the types of its arguments

Compiling takes seconds, so everything is kept that can be. But windrow must also run on machines that it was merely sent
to: imported from an archive, with folders that are read-only or full, as a user without a home. What cannot be kept there is
compiled in memory, once per process. `WINDROW_CACHE_DIR` may name several folders: the first one is written to, the
others are only read. A file is written under another name and then moved, and begins with the hash of its
contents: processes may write the same at once, and one that is damaged is as good as none.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from windrow.compiling.fingerprint import code_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DIGEST = hashlib.sha256().digest_size


def name_of(function: Callable[..., Any], options: dict[str, Any]) -> str:
    """What a loop is known by: its name, how it is compiled, and the code of all that it calls."""
    return f"{function.__name__}-{text_hash(f'{options}{code_of(function)}')}"


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def is_kept(name: str) -> bool:
    """Whether there is machine code of a loop of this name, whatever the types; what is a second old counts as new."""
    return name in _names(int(time.monotonic()))


@lru_cache(1)
def _names(second: int) -> frozenset[str]:
    found: set[str] = set()
    for directory in search_directories():
        with suppress(OSError):  # it was deleted
            found |= {entry.name.rsplit("-", 1)[0] for entry in os.scandir(directory)}
    return frozenset(found)


def holds(name: str) -> bool:
    """Whether there is a file of this name."""
    return any((directory / name).exists() for directory in search_directories())


def read(name: str) -> bytes | None:
    """The contents of a file; None if there is none, or it is damaged."""
    for directory in search_directories():
        with suppress(OSError):
            found = (directory / name).read_bytes()
            digest, contents = found[:DIGEST], found[DIGEST:]
            if hashlib.sha256(contents).digest() == digest:
                return contents
    return None


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


@contextmanager
def claimed(name: str, patience: float) -> Iterator[bool]:
    """Whether this process alone makes a file of this name, after waiting `patience` seconds for another that does.

    A claim is a byte of a file that is locked: it ends with the process, however that ends. Threads of one process
    share their claims, and where files cannot be locked everybody has one.
    """
    locks = _locks()
    if locks is None:
        yield True
        return
    place = int(text_hash(name)[:12], 16)
    end = time.monotonic() + patience
    while not (is_mine := _is_locked(locks, place)) and time.monotonic() < end:
        time.sleep(0.01)
    try:
        yield is_mine
    finally:
        if is_mine:
            fcntl.lockf(locks, fcntl.LOCK_UN, 1, place)


def _is_locked(locks: int, place: int) -> bool:
    try:
        fcntl.lockf(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks
        return True
    return True


@cache
def _locks() -> int | None:
    directory = cache_directory()
    if directory is None or fcntl is None:
        return None
    try:
        return os.open(directory / "locks", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # read-only, or full
        return None


@cache
def search_directories() -> tuple[Path, ...]:
    """Where code is looked for: the folder that is written to, and those that are only read."""
    first = cache_directory()
    others = [path / _versions() for path in _bases()[1:]]
    return tuple(path for path in (first, *others) if path is not None and path.is_dir())


@cache
def cache_directory() -> Path | None:
    """The folder, named by the versions of Numba and Python; None if it can be neither read nor made."""
    try:
        directory = _bases()[0] / _versions()
        directory.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, OSError):  # there is no home, or no right to make a folder
        return None
    return directory if os.access(directory, os.R_OK | os.X_OK) else None


def _versions() -> str:
    return f"numba-{version('numba')}-python-{sys.version_info.major}.{sys.version_info.minor}"


def _bases() -> list[Path]:
    chosen = os.environ.get("WINDROW_CACHE_DIR")
    if chosen:
        return [Path(part) for part in chosen.split(os.pathsep)]
    caches = os.environ.get("XDG_CACHE_HOME")
    return [(Path(caches) if caches else Path.home() / ".cache") / "windrow"]
