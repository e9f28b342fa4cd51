"""Sessions and snapshot windows: linked runs of slices, one run for each key and window.

    table.py    the slices and their links; inserting, removing, and taking back what a call has done
    timers.py   when a slice is to be looked at again: a heap
    lanes.py    which windows have which lanes of a key
    engine.py   events in; memory
    endings.py  sessions out
    changing.py windows that come and go

A slice is a session so far: from its first event to as far as its last ones reach. A *lane* is a key and a window; its
slices are linked in the order of time and never touch:

    lane 7    oldest                              newest
              [2 .. 9]  <->  [14 .. 21]  <->  [30 .. 38]        first event .. reach
                  o o            o    o             o  o         an event at t reaches t + gap

Nothing looks at slices that are merely there. An event goes to the newest slice of its lane, and a late one some steps
back; a session that ends comes out of the heap. So a call costs what it brings and what it emits.
"""
