"""The compiled, columnar engine: cut events into slices, fold them into partials, answer windows.

    columns.py    Arrow in: times as ticks, values as codes
    keys.py       key columns -> dense key numbers
    binding.py    a query fitted to the types of a table: which partials are kept
    edges.py      window edges in a range of time
    lookup.py     finding a place in sorted numbers without a search
    cutting.py    events -> segments (runs, or one cell per event)
    slices.py     which slices are live, and where their partials lie
    templates.py  the loops over partials, as source
    compiler.py   functions of an aggregate -> loops over columns, cached on disk
    partials/     what a slice keeps: scalars, sketches, multisets, sequences
    windows.py    which windows are due, and which slices they cover
    emission.py   windows due -> a result table
    settings.py   how an operator runs, and what it has counted
    operator.py   the running operator
    completeness.py  from when on an added window is complete
    bounded.py    the same over bounded data
    snapshot.py   the operator as bytes, and back

Data meets them in about this order.
"""
