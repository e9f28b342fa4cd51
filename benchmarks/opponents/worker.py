"""An opponent in a process of its own, so that its number of threads can be chosen.

The process makes the events of the task itself, says that it is ready, and then answers one line of
JSON with one: `{"form": 3}` runs a form and gives the seconds, `{"form": 3, "save": path}` runs it over
the first of the events and saves the rows. It waits while others are measured.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from benchmarks.opponents import BATCH_JOB, TASKS, Form, Task, rows
from benchmarks.support.harness import clocked

ROOT = Path(__file__).resolve().parents[2]


def cores() -> int:
    """How many threads an opponent can have that really run at once."""
    return len(os.sched_getaffinity(0))


def forms(library: str, task: Task) -> tuple[Form, ...]:
    """The ways in which a library does a task."""
    return tuple(importlib.import_module(f"benchmarks.opponents.{library}_{task.name}").FORMS)


class Opponent:
    """The parent's side: start with `with`, then ask for seconds or rows."""

    def __init__(self, library: str, threads: int, events: int, task: Task = BATCH_JOB) -> None:
        self.library, self.threads = library, threads
        self.command = [
            sys.executable,
            "-m",
            "benchmarks.opponents.worker",
            library,
            task.name,
            str(threads),
            str(events),
        ]

    def __enter__(self) -> Opponent:
        environment = {**os.environ, "POLARS_MAX_THREADS": str(self.threads)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def seconds(self, form: int) -> float:
        return float(self._ask({"form": form})["seconds"])

    def rows(self, form: int, path: Path) -> list[pa.Table]:
        saved = self._ask({"form": form, "save": str(path)})["saved"]
        return [pa.ipc.open_file(name).read_all() for name in saved]

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.library} with {self.threads} threads ended early")
        return dict(json.loads(line))


def serve(library: str, task: Task, threads: int, events: int) -> None:
    """The worker's side."""
    module = importlib.import_module(f"benchmarks.opponents.{library}_{task.name}")
    table = task.events(events)
    whole = part = module.load(table, threads)
    if task.sample > 1:
        part = module.load(table.slice(0, events // task.sample), threads)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        form = module.FORMS[question["form"]]
        if "save" not in question:
            answer: dict[str, Any] = {"seconds": clocked(partial(form.run, whole))()}
        else:
            answer = {"saved": []}
            for i, result in enumerate(form.run(part)):
                answer["saved"].append(f"{question['save']}.{i}")
                table = rows(task, module.to_arrow(result))
                with (
                    pa.OSFile(answer["saved"][-1], "wb") as file,
                    pa.ipc.new_file(file, table.schema) as writer,
                ):
                    writer.write_table(table)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], TASKS[sys.argv[2]], int(sys.argv[3]), int(sys.argv[4]))
