"""A Kafka broker on this machine: one node, without ZooKeeper, on loopback, with its data in one folder.

For tests and benchmarks; what it writes is not replicated.

    python -m tools.broker        fetches its jars, as `make kafka` does

    with Broker(folder) as broker:
        ...                       # broker.servers is what clients want: "127.0.0.1:40123"
        broker.kill()             # kill -9
        broker.start()            # the same port, the same topics
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

from windrow.errors import WindrowError
from windrow.pipelines.jars import HOME, SCALA, fetch, java

VERSION = "4.3.1"
JARS = HOME / f"broker-{VERSION}"
DEPENDENCIES = f"""\
    <dependency org="org.apache.kafka" name="kafka_{SCALA}" rev="{VERSION}" conf="jars->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="jars->default"/>"""

# A cluster has a name, 16 bytes in base 64; any will do.
CLUSTER = "d2luZHJvd3dpbmRyb3dzcw"
READY = "Kafka Server started"
JAVA = (
    "-Xmx320m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
SAYS_WHEN_READY = "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=2
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=6000
"""


class Broker:
    """A broker that can be stopped, killed and started again; topics are made when they are first named."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._drain = threading.Thread()
        if not JARS.exists():
            raise WindrowError(
                f"the jars of the Kafka broker are not in {JARS}: fetch them with 'make kafka'"
            )
        port, controller = _free_ports(2)
        self.servers = f"127.0.0.1:{port}"
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = folder / "server.properties"
        self._settings.write_text(SETTINGS.format(port=port, controller=controller, data=folder / "data"))
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(self._settings))

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start, and wait until clients are served."""
        self._process = subprocess.Popen(
            self._command("kafka.Kafka", str(self._settings)),
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        said = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said.append(line)
            if READY in line:
                self._drain = threading.Thread(target=self._process.stdout.read, daemon=True)
                self._drain.start()
                return
        raise WindrowError("the Kafka broker did not start:\n" + "".join(said[-20:]))

    def kill(self) -> None:
        """End it at once, as a machine does that loses its power."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._drain.join()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def _run(self, *command: str) -> None:
        done = subprocess.run(self._command(*command), capture_output=True, text=True, check=False)
        if done.returncode:
            raise WindrowError(f"Kafka's {command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _command(self, *command: str) -> list[str]:
        return [java(), *JAVA, SAYS_WHEN_READY, "-cp", f"{JARS}/*", *command]


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has now; a broker must know its own before it starts, and keeps them."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


if __name__ == "__main__":
    for jar in sorted(fetch(JARS, DEPENDENCIES).iterdir()):
        print(jar)
