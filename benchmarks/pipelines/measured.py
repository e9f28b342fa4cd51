"""What is measured of a pipeline from outside: the age of windows when they are written, and the memory of its processes."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition

PAGE = os.sysconf("SC_PAGE_SIZE")
KINDS = {"java": "JVM (driver and executors)", "python": "Python (driver and workers)"}

# Seconds since the start, and megabytes by kind of process.
Sample = tuple[float, dict[str, float]]


def latencies(servers: str, topic: str, *, since: float) -> np.ndarray:
    """Seconds from the end of each window to its message, for windows that ended after `since`."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "latencies"})
    found = []
    try:
        for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
            consumer.assign([TopicPartition(topic, partition, low)])
            position = low
            while position < high:
                for message in consumer.consume(10_000, timeout=30):
                    end = datetime.fromisoformat(json.loads(message.value())["end"]).timestamp()
                    if end >= since:
                        found.append(message.timestamp()[1] / 1000 - end)
                    position = message.offset() + 1
    finally:
        consumer.close()
    return np.array(found)


@contextmanager
def sampled(pid: int, *, every: float = 2) -> Iterator[list[Sample]]:
    """The memory of a process and of all below it, looked at again and again until the block ends."""
    samples: list[Sample] = []
    begin, over = time.monotonic(), threading.Event()

    def look() -> None:
        while not over.wait(every):
            samples.append((time.monotonic() - begin, resident(pid)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def resident(pid: int) -> dict[str, float]:
    """Megabytes in memory of a process and of all below it, by kind of program."""
    parents, programs = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            pages = int((folder / "statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended in between
        parents[int(folder.name)] = int(rest.split()[1])
        programs[int(folder.name)] = name, pages * PAGE / 2**20
    sizes = dict.fromkeys(KINDS.values(), 0.0)
    for number, (name, size) in programs.items():
        ancestor = number
        while ancestor in parents and ancestor != pid:
            ancestor = parents[ancestor]
        kind = next((KINDS[k] for k in KINDS if name.startswith(k)), None)
        if ancestor == pid and kind is not None:
            sizes[kind] += size
    return sizes


def growth(samples: Sequence[Sample]) -> float:
    """How much larger all is in the last fifth of a run than in the third one; 1 is flat."""
    totals = [sum(sizes.values()) for _, sizes in samples]
    fifth = max(1, len(totals) // 5)
    return float(np.median(totals[-fifth:]) / np.median(totals[2 * fifth : 3 * fifth] or totals))


def plot(runs: Mapping[str, Sequence[Sample]], target: Path) -> None:
    """One picture: a line for each pipeline and kind of process."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5))
    axes = figure.subplots()
    for name, samples in runs.items():
        for kind in KINDS.values():
            axes.plot([s for s, _ in samples], [sizes[kind] for _, sizes in samples], label=f"{name}, {kind}")
    axes.set(xlabel="seconds", ylabel="MB in memory", ylim=(0, None), title="Memory of pipelines over time")
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=120, bbox_inches="tight")
