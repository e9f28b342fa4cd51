"""An opponent in a process of its own, so that its number of threads can be chosen.

The process makes the events of the job itself, says that it is ready, and then answers one line of
JSON with one: `{"form": 3}` runs a form and gives the seconds, `{"form": 3, "save": path}` runs it over
the first tenth of the events and saves the rows. It waits while others are measured.
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

from benchmarks.support.harness import clocked
from benchmarks.support.streams import batch_job

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ("key", "start", "total", "top")


def rows(result: pa.Table) -> pa.Table:
    """A result in one order of rows and columns and with one set of types, to be compared."""
    schema = pa.schema(
        [("key", pa.int64()), ("start", pa.timestamp("ms")), ("total", pa.int64()), ("top", pa.int64())]
    )
    return (
        result.select(OUTPUT)
        .cast(schema)
        .sort_by([("key", "ascending"), ("start", "ascending")])
        .combine_chunks()
    )


class Opponent:
    """The parent's side: start with `with`, then ask for seconds or rows."""

    def __init__(self, library: str, threads: int, events: int) -> None:
        self.library, self.threads = library, threads
        self.command = [
            sys.executable,
            "-m",
            "benchmarks.opponents.worker",
            library,
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


def serve(library: str, threads: int, events: int) -> None:
    """The worker's side."""
    module = importlib.import_module(f"benchmarks.opponents.{library}_job")
    table = batch_job(events)
    whole, part = module.load(table, threads), module.load(table.slice(0, events // 10), threads)
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
                table = rows(module.to_arrow(result))
                with (
                    pa.OSFile(answer["saved"][-1], "wb") as file,
                    pa.ipc.new_file(file, table.schema) as writer,
                ):
                    writer.write_table(table)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
