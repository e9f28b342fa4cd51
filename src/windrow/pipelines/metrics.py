"""Numbers of running streams for Prometheus, and whether they are well for Kubernetes, over HTTP.

    /metrics    what Prometheus reads
    /alive      200 as long as the stream has not failed          a liveness probe
    /ready      200 once a micro-batch has finished, with the lag  a readiness probe; 503 before

It listens on this machine alone unless another host is named: whoever reaches it can read how much data there is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.pipelines.listener import Progress

HERE = "127.0.0.1"
# Numbers of a `Progress`, and what they are; those that only grow, and those that come and go.
COUNTERS = {
    "rows": "rows read",
    "late_rows": "rows that came when all of their windows were final",
    "bad_rows": "rows that could not be processed and were set aside",
    "duplicate_rows": "rows that were dropped because their id had been there",
}
GAUGES = {
    "batch": "the last micro-batch that has finished",
    "rows_per_second": "rows of the last micro-batch per second",
    "rows_waiting": "rows that the source has and the stream has not",
    "state_bytes": "memory of the state stores",
    "state_rows": "rows in the state stores",
    "watermark_seconds": "the watermark, in seconds since 1970",
    "lag_seconds": "from the newest event to the end of the micro-batch that took it",
}


class Metrics(Collector):
    """The last progress of each stream, as Prometheus reads it.

    Examples
    --------
    >>> def watched(spark):
    ...     metrics = Metrics()
    ...     spark.streams.addListener(ProgressListener(show=metrics.show))
    ...     with served(metrics, ":9464"):
    ...         spark.streams.awaitAnyTermination()
    """

    def __init__(self) -> None:
        self._last: dict[str, Progress] = {}
        self._lock = threading.Lock()

    def show(self, progress: Progress) -> None:
        """Know how far a stream is; for `ProgressListener`."""
        with self._lock:
            self._last[progress.name] = progress

    @property
    def last(self) -> dict[str, Progress]:
        """The last progress of each stream, by its name."""
        with self._lock:
            return dict(self._last)

    def collect(self) -> Iterable[Metric]:
        last = self.last
        kinds: list[tuple[type[CounterMetricFamily | GaugeMetricFamily], dict[str, str]]]
        kinds = [(CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)]
        for kind, told in kinds:
            for name, what in told.items():
                family = kind(f"windrow_{name}", what, labels=["pipeline"])
                for stream, progress in last.items():
                    if name in (numbers := progress.numbers()):
                        family.add_metric([stream], numbers[name])
                yield family


@contextmanager
def served(metrics: Metrics, address: str, *, is_alive: Callable[[], bool] = lambda: True) -> Iterator[str]:
    """Serve metrics at `[HOST]:PORT` as long as this is entered; gives where. Port 0 takes one that is free."""
    host, port = parse_address(address)
    registry = CollectorRegistry()
    registry.register(metrics)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
            elif path == "/alive":
                self._say(200 if is_alive() else 503, {"alive": is_alive()})
            elif path == "/ready":
                last = metrics.last
                self._say(
                    200 if last else 503, {"ready": bool(last), "streams": [p.told() for p in last.values()]}
                )
            else:
                self._say(404, {"paths": ["/metrics", "/alive", "/ready"]})

        def _say(self, status: int, what: dict[str, Any]) -> None:
            self._answer(status, "application/json", json.dumps(what).encode())

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Who asks every few seconds is not worth a line."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as problem:
        raise QueryError(f"metrics cannot be served at {host}:{port}: {problem.strerror}") from None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def parse_address(text: str) -> tuple[str, int]:
    """Host and port; this machine alone unless a host is named.

    >>> parse_address(":9464"), parse_address("0.0.0.0:80")
    (('127.0.0.1', 9464), ('0.0.0.0', 80))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise QueryError(f"metrics are served at [HOST]:PORT, such as :9464, not {text!r}")
    return host or HERE, int(port)
