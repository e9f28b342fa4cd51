"""Pipelines: a source, windows and a sink that survive failures, as one started stream.

    kafka.py      events from Kafka, windows to Kafka             jars.py       the connectors that Spark needs for it
    upsert.py     windows into a table, each batch once           skew.py       events dated into the future
    postgres.py   such a table in PostgreSQL                      run.py        the file as a running stream
    delta.py, iceberg.py   tables of a lakehouse                  lakehouse.py  what these share
    spec.py, document.py, schema.py   the pipeline as a file      fitting.py    whether it fits the columns it declares

All that runs needs PySpark; a pipeline's file can be checked without. Nothing in the rest of windrow needs this folder.
"""
