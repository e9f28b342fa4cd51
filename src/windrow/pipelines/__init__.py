"""Pipelines: a source, windows and a sink that survive failures, as one started stream.

    kafka.py      events from Kafka, windows to Kafka             jars.py       the connectors that Spark needs for it
    upsert.py     windows into a table, each batch once           broker.py     a broker on this machine, to try things
    postgres.py   such a table in PostgreSQL                      skew.py       events dated into the future
    spec.py, document.py, schema.py   the pipeline as a file      run.py        the file as a running stream

All that runs needs PySpark; a pipeline's file can be checked without. Nothing in the rest of windrow needs this folder.
"""
