"""The loops that drive a store over the rows of a batch.

    slide_by_one    a window of a number of rows ends with each row
    slide           a window of `size` rows every `every` rows: rows are folded into slices first
    slide_in_time   a window of `period` ticks every `every` ticks, likewise

Slices begin where windows begin. A window that ends inside a slice is its whole slices and what the
last one holds so far (Cutty, section 5):

    rows        1 2 3 4 5 6 7 8
    slices      |----|----|----          every = 3
    windows     |-------|                 size = 5: a slice, and two rows of the next one
"""

from __future__ import annotations

from windrow.stores.operations import combine, evict, insert, lift, put, query


def slide_by_one(inputs, rows, size, held, state, cells, notes, out):
    """Take in `rows` rows; the state, how many rows the window holds, and how many answers are in `out`."""
    made = 0
    for i in range(rows):
        if held == size:
            state = evict(state, cells, notes)
        else:
            held += 1
        state = insert(state, cells, notes, lift(inputs, i))
        if held == size:
            put(out, made, query(state, cells, notes))
            made += 1
    return state, held, made


def slide(inputs, rows, size, every, place, slices, current, identity, state, cells, notes, out):
    """As `slide_by_one`.

    place:   rows of the slice that is being filled, which are in `current`
    slices:  slices in the store
    """
    whole = size // every
    rest = size - whole * every
    made = 0
    for i in range(rows):
        current = combine(current, lift(inputs, i))
        place += 1
        if place == rest and slices == whole:
            put(out, made, combine(query(state, cells, notes), current) if whole else current)
            made += 1
            if whole:
                state = evict(state, cells, notes)
                slices -= 1
        if place == every:
            if whole:
                state = insert(state, cells, notes, current)
                slices += 1
                if rest == 0 and slices == whole:
                    put(out, made, query(state, cells, notes))
                    made += 1
                    state = evict(state, cells, notes)
                    slices -= 1
            place = 0
            current = identity
    return state, place, slices, current, made


def slide_in_time(
    inputs,
    times,
    present,
    every,
    period,
    marks,
    slices,
    current,
    identity,
    state,
    cells,
    notes,
    starts,
    n,
    out,
):
    """As `slide`, for rows with these times; `present` says which of them have a value.

    marks:   number of the next window to end; number, events and values of the slice that is being filled; begin and
             end of the slices in the store, and their values
    slices:  a ring of the numbers of the slices in the store, and behind it one of how many values each has
    starts:  of the windows that ended and hold an event; `n` is how many values each of them has
    """
    following, number, events, values, front, end, stored = marks
    room = slices.shape[0] // 2
    mask = room - 1
    made = 0
    for row in range(times.shape[0]):
        time = times[row]
        while following * every + period <= time:
            while front < end and slices[front & mask] < following:
                stored -= slices[room + (front & mask)]
                state = evict(state, cells, notes)
                front += 1
            is_open = events > 0 and number >= following
            if front == end and not is_open:
                # Nothing is left for windows that end before this row, so they need not be counted out.
                following = (time - period) // every + 1
            else:
                total = query(state, cells, notes)
                put(out, made, combine(total, current) if is_open else total)
                starts[made] = following * every
                n[made] = stored + (values if is_open else 0)
                made += 1
                following += 1
        if events == 0 or time // every > number:
            if events > 0 and number >= following:
                state = insert(state, cells, notes, current)
                slices[end & mask] = number
                slices[room + (end & mask)] = values
                stored += values
                end += 1
            number = time // every
            events = values = 0
            current = identity
        current = combine(current, lift(inputs, row))
        events += 1
        values += present[row]
    return state, current, (following, number, events, values, front, end, stored), made
