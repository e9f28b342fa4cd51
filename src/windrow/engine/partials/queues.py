"""Windows merged by any store, key by key: their slices enter its queue and leave it again.

The queue goes on from one window to the next as long as windows follow one another; where one does not, all
that it holds leaves first.
"""

from __future__ import annotations

from windrow.stores.operations import evict, insert, load, put, query


def merge_queue(first, last, slot, stride, keys, fields, state, cells, notes, out):  # type: ignore[no-untyped-def]
    """Window w is slices first[w] .. last[w]-1, and its partials are cells w * keys .. of `out`.

    fields: the cells of all slices; `state`, `cells` and `notes` are those of an empty store.
    """
    begin = end = 0
    for k in range(keys):
        for w in range(first.shape[0]):
            keeps = w > 0 and first[w] >= begin and last[w] >= end and first[w] < end
            for _ in range(begin, first[w] if keeps else end):
                state = evict(state, cells, notes)
            if not keeps:
                end = first[w]
            begin = first[w]
            for r in range(end, last[w]):
                state = insert(state, cells, notes, load(fields, slot[r] * stride + k))
            end = last[w]
            put(out, w * keys + k, query(state, cells, notes))
