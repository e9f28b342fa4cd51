"""Events at a steady rate, dated now, as JSON: `python -m benchmarks.pipelines.producer SERVERS TOPIC RATE KEYS SECONDS`.

Twenty times a second, all events that are due are sent; it prints how many there were in the end.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime

from confluent_kafka import Producer

PER_SECOND = 20


def main(servers: str, topic: str, rate: int, keys: int, seconds: float) -> None:
    luck = random.Random(1)
    # Rendering a number costs more than sending it: the tails of messages are made once.
    tails = [f'","k":{luck.randrange(keys)},"x":{luck.randrange(1000)}}}' for _ in range(200_000)]
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    )
    sent, begin = 0, time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        due = min(int(passed * rate), sent + rate)
        head = f'{{"ts":"{datetime.now(UTC).isoformat(timespec="microseconds")}'
        for number in range(sent, due):
            producer.produce(topic, head + tails[number % len(tails)])
        sent = due
        producer.poll(0)
        time.sleep(1 / PER_SECOND)  # pace
    producer.flush()
    print(sent)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
