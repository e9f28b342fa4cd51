"""The experiments of the papers, run again: one module per figure or table.

    python -m benchmarks.papers list
    python -m benchmarks.papers scotty-13 --scale small
    python -m benchmarks.papers all --scale small --out docs

    scotty/     throughput, memory and latency of slicing beside buckets, buffers and trees
    cutty/      calls of `combine` and partials kept, beside pairs, panes and trees over events
    pba/        stores: throughput over sizes of windows, and the latency of each window
    spanning/   span events: slices in two parts and in levels, beside buckets and sweeping
    windowing_library/   operators over policy windows, beside ones whose windows are woven into them

    experiment.py   what an experiment is            contenders.py   the techniques by name
    streams.py      data in the papers' shape        timing.py       events per second, slow ones capped
    files.py        the papers' own files            findings.py     verdicts from numbers
    plots.py        SVG                              page.py         Markdown and CSV

Every experiment first makes sure that what it compares gives the same answers.
"""
