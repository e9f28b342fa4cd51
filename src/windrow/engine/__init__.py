"""The compiled, columnar engine: cut events into slices, fold them into partials, answer windows.

    operator.py   the running operator; bounded.py is the same over bounded data
    exchange.py   events to slices before they meet their operator; input_batches.py says what travels
    intake.py     bad rows, told from good ones
    columns.py    Arrow in: times as ticks, values as codes; numbers.py for what windows read
    keys.py       key columns -> dense key numbers
    binding.py    a query fitted to the types of a table: which partials are kept
    engine.py     what the engines of all kinds of windows share
    aligned.py    windows of time: slices.py, edges.py, cutting.py, windows.py, completeness.py
    ordered/      windows that depend on the order of events
    runs/         sessions and snapshot windows
    sequence/     windows that depend on the order of events: where they begin and end
    predicates.py conditions on events
    partials/     what a slice keeps: scalars, sketches, multisets, sequences
    templates.py  the loops over partials, as source; compiler.py makes them fast, cache.py keeps them
    integers.py   integers of user functions, which do not wrap around
    emission.py   windows due -> a result table
    threads.py    bounded data on all cores; pool.py has the threads
    metrics.py    what an operator has counted
    snapshot/     the operator as bytes, and back
    arrays.py, lookup.py    small tools

Data meets them in about this order.
"""
