"""Plain Python functions as machine code, where that is worth it.

    compiler.py     functions of an aggregate or a window -> loops over columns; rewiring.py puts them in
    tiers.py        a loop runs as plain Python, or compiled: what decides
    native.py       loops compiled by Numba; notice.py: a line for who waits for it
    ahead.py        a child process compiles; child.py is its side, jobs.py what it is sent
    folder.py       where compiled code is kept; fingerprint.py: what a function does, as text
    integers.py     integers of user functions: 64 bits, and an error where these are not enough; checking.py: compiled

Nothing here knows windows or aggregates.
"""
