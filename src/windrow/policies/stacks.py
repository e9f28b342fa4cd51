"""Two stacks for each partition: windows that are ranges of places, from partials that lie beside `order`.

    places      |..gone..|a b c d|e f g|
                          low     middle   end
    cells        -        abcd bcd cd d   e f g          left of the middle: all up to the middle
    back                                  efg            right of it: one partial
    window       combine(cells[low], back)

When a window has passed the middle, the places that are left become the front. (Tangwongsan, Hirzel and Schneider,
"Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time", 2017, section 4.) The loops are compiled with the functions of an
aggregate in the place of `lift`, `combine`, `load` and `put`.
"""

from __future__ import annotations

from windrow.stores.operations import combine, lift, load, put


def put_rows(inputs, position, low, high, nowhere, cells):
    """Lift rows into their places; a row that joins a slice is combined with it."""
    for i in range(low, high):
        place = position[i]
        if place >= 0:
            put(cells, place, lift(inputs, i))
        elif place != nowhere:
            put(cells, -1 - place, combine(load(cells, -1 - place), lift(inputs, i)))


def answer(partition, low, high, table, shifts, cells, middle, end, back, identity, out):
    """The partials of windows, which are ranges of places, in the order in which they came about.

    middle, end: of the stacks of each partition, as places + table[partition, shifts]; back: the partial between them.
    """
    for k in range(partition.shape[0]):
        p = partition[k]
        shift = table[p, shifts]
        begin, upto = low[k], high[k]
        m, e = middle[p] - shift, end[p] - shift
        if begin >= e:
            m = e = begin
            total = identity
        elif begin > m:
            total = load(cells, upto - 1)
            for j in range(upto - 2, begin - 1, -1):
                total = combine(load(cells, j), total)
                put(cells, j, total)
            m = e = upto
            total = identity
        else:
            total = load(back, p)
        while e < upto:
            total = combine(total, load(cells, e))
            e += 1
        put(back, p, total)
        middle[p], end[p] = m + shift, e + shift
        if begin < m:
            total = combine(load(cells, begin), total)
        put(out, k, total)
