"""From Kafka to Kafka, end to end: events per second that are held, latency, memory over time.

    producer (a process) -> topic -> pipeline (a process: driver, executors, Python workers) -> topic -> latencies

The broker, the producer and the pipeline share one machine. `python -m benchmarks.pipelines --minutes 5` prints the table and
draws the memory of each pipeline over time.
"""
