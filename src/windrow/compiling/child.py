"""The process that `ahead` starts: it compiles what it reads from its standard input, and keeps it on disk.

    in     a job: its length in four bytes, and its bytes
    out    a letter for each job that is done: + if its code is on disk

It ends when its parent does, however that ends, or after `IDLE` seconds without a job; and at once if there is another one
for the same folder. It starts no process itself.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import sys
import threading
from typing import Any

IDLE = 60.0
# Below the processes that people wait for, but not so far that a parent waits for ever for what is compiled here.
NICE = 5
LOCK = "compile child"


def main(parent: int, only_one: bool) -> None:
    os.nice(NICE)
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(parent, jobs), daemon=True).start()
    from windrow.compiling import folder

    with folder.claimed(LOCK, patience=0) as is_alone:
        if only_one and not is_alone:
            return
        from windrow.compiling.native import compile_job

        while True:
            try:
                job = jobs.get(timeout=IDLE)
            except queue.Empty:
                return
            os.write(1, b"+" if compile_job(pickle.loads(job)) else b"-")


def _read(parent: int, jobs: Any) -> None:
    """Jobs as they come. Without a parent there is nobody to work for; what is half written on disk has no name yet."""
    unread = b""
    while os.getppid() == parent:
        # A process that the parent forked holds this pipe open, too, when the parent is gone.
        if not select.select([0], [], [], 1.0)[0]:
            continue
        found = os.read(0, 1 << 20)
        if not found:
            break
        unread += found
        while len(unread) >= 4 and len(unread) >= (end := 4 + int.from_bytes(unread[:4], "little")):
            jobs.put(unread[4:end])
            unread = unread[end:]
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "alone")
