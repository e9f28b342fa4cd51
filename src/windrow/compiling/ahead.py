"""Loops compiled by a child process, while this one goes on interpreted.

    this process     calls as plain Python | loads  | compiled calls
    child            starts | compiles | keeps it in the folder | next one

A thread would halve the speed of everything else here, and a process does not. There is one child at most for each process,
and for each folder of compiled code; it has a low priority and ends with its parent. `WINDROW_COMPILE_AHEAD=0` does without.
"""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from windrow.compiling.folder import cache_directory
from windrow.compiling.jobs import Job, dumps

# Seconds until a child is tried again where there was none to be had.
PAUSE = 30.0


class Child:
    """A process that compiles jobs one after the other. `alone` lets it end if another one has the folder."""

    def __init__(self, *, alone: bool = True, environment: dict[str, str] | None = None) -> None:
        # The child has the modules of this process, and runs no file of the user's.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        module = ["-P", "-W", "ignore", "-m", "windrow.compiling.child"]
        self._process = subprocess.Popen(
            [sys.executable, *module, str(os.getpid()), "alone" if alone else "one of several"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {}), "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C is for the parent
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._unsent = bytearray()
        self._sent = 0
        # For each job that is done, whether its code is on disk.
        self.outcomes: list[bool] = []

    def send(self, job: Job) -> int:
        """Have a job compiled; its place among `outcomes`. It never waits for the child."""
        found = dumps(job)
        self._unsent += len(found).to_bytes(4, "little") + found
        self._sent += 1
        self.is_alive()
        return self._sent - 1

    def is_alive(self) -> bool:
        """Hear what is new from the child, and send on what it had no room for."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._in, self._unsent)]
        except BlockingIOError:
            pass  # it has enough to do
        except BrokenPipeError:
            self._unsent.clear()
        try:
            heard = os.read(self._out, 1 << 16)
        except BlockingIOError:
            return True
        self.outcomes += [letter == ord("+") for letter in heard]
        return bool(heard)

    def wait(self) -> None:
        """Until the child says something, or can take more; a tenth of a second at most."""
        select.select([self._out], [self._in] if self._unsent else [], [], 0.1)

    def close(self) -> None:
        """End it now; what it was compiling is lost."""
        self._process.kill()
        self._process.communicate()

    def forget(self) -> None:
        """In a process that was forked: it is the child of another one, which holds the pipes, too."""
        self._process.returncode = 0
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class _Children:
    """The child of this process, and what it was asked for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: Child | None = None
        self.not_before = 0.0
        self.asked: dict[Any, tuple[Child, int]] = {}

    def living(self) -> Child | None:
        """The child; a new one if the last one has ended, and there may be one."""
        if self.child is not None and not self.child.is_alive():
            self.child.close()
            self.child = None
        if self.child is None and time.monotonic() >= self.not_before and _may_start():
            self.not_before = time.monotonic() + PAUSE
            self.child = Child()
        return self.child

    def asked_for(self, kernel: Any, types: Any) -> bool | None:
        """As `is_ready`."""
        key = kernel, types
        if key not in self.asked:
            child = self.living()
            if child is None:
                return None
            self.asked[key] = child, child.send(kernel.job(types))
        child, place = self.asked[key]
        if len(child.outcomes) <= place and child is self.child and child.is_alive():
            return False
        return (len(child.outcomes) > place and child.outcomes[place]) or None


def is_ready(kernel: Any, types: Any) -> bool | None:
    """Whether the child has compiled a loop for arguments of these types (see `jobs.types_of`). It is asked to if it was not yet.

    None says that there is no use in waiting: no child can be had, or it has ended, or nothing can be kept.
    """
    with _children.lock:
        return _children.asked_for(kernel, types)


def _may_start() -> bool:
    """Whether a child is of use here: with a second processor, and a folder for what it compiles."""
    directory = cache_directory()
    return (
        os.environ.get("WINDROW_COMPILE_AHEAD", "1") != "0"
        and os.name == "posix"
        and "python" in Path(sys.executable or "").name  # and not a program that has Python in it
        and (os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))) > 1
        and directory is not None
        and os.access(directory, os.W_OK)
    )


_children = _Children()


def _begin_anew() -> None:
    """A process that was forked has no child; that of its parent is none of its business."""
    global _children
    if _children.child is not None:
        _children.child.forget()
    _children = _Children()


def _end() -> None:
    if _children.child is not None:
        _children.child.close()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
