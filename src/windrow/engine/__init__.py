"""The compiled, columnar engine: cut events into slices, fold them into partials, answer windows.

    operator.py   the running operator; bounded.py is the same over bounded data, threads.py on all cores
    intake/       Arrow in: bad rows, times as ticks, values as codes, keys as dense numbers
    binding.py    a query fitted to the types of a table: which partials are kept
    engine.py     what the engines of all kinds of windows share; engines.py names them
    aligned/      windows of time
    ordered/      windows that depend on the order of events; sequence/: where they begin and end
    sessions/     sessions and snapshot windows
    spanning/     span events, beside the slices of windows of time
    partials/     what a slice keeps: scalars, sketches, multisets, sequences
    functions/    the functions of aggregates in loops
    windows.py    windows that have closed, and the slices of each
    emission.py   closed windows -> a result table; results.py is its schema
    exchange.py   events to slices before they meet their operator
    snapshot/     the operator as bytes, and back
    rehearsal.py, warming.py    which loops a query needs, compiled ahead

Data meets them in about this order. What compiles loops is `windrow.compiling`.
"""
