"""Live slices against a plain dictionary: resolve, evict, coalesce, reconcile."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from windrow.engine.aligned.slices import Slices


def check(slices, model):
    """`model` maps a start to [end, slot]."""
    assert slices.starts.tolist() == sorted(model)
    assert slices.ends.tolist() == [model[s][0] for s in sorted(model)]
    assert slices.slots.tolist() == [model[s][1] for s in sorted(model)]
    used, free = set(slices.slots.tolist()), slices._free[: slices._free_count].tolist()
    assert len(used) == len(slices)
    assert len(set(free)) == len(free)
    assert not used & set(free)
    assert used | set(free) == set(range(slices.capacity))
    assert all(slices.ends[:-1] <= slices.starts[1:])


def take(slices, model, times, step):
    """What the operator does with a batch whose edges are the multiples of `step`."""
    low, high = min(times), max(times)
    edges = np.arange(low // step, high // step + 2) * step
    edges = slices.reconcile(edges)
    assert not len(slices) or not slices.splits(edges).any()
    hit = np.unique(np.searchsorted(edges, times, side="right") - 1)
    starts, ends = edges[hit], edges[hit + 1]
    _, need = slices.find(starts)
    assert need == sum(s not in model for s in starts.tolist())
    capacity = slices.room(need, tight=False)
    if capacity != slices.capacity:
        order = {s: i for i, s in enumerate(sorted(model))}
        slices.repack(capacity)
        for s in model:
            model[s][1] = order[s]
    slots, fresh = slices.resolve(starts, ends, *slices.find(starts))
    for s, e, slot in zip(starts.tolist(), ends.tolist(), slots.tolist(), strict=True):
        if s in model:
            assert model[s] == [e, slot]
        else:
            assert slot in fresh.tolist()
            model[s] = [e, slot]
    for t in times:
        assert sum(s <= t < e for s, (e, _) in model.items()) == 1


steps = st.lists(
    st.tuples(
        st.just("take"),
        st.lists(st.integers(-100, 100), min_size=1, max_size=12),
        st.sampled_from([3, 4, 6, 12]),
    )
    | st.tuples(st.just("evict"), st.integers(-100, 100), st.none())
    | st.tuples(st.just("coalesce"), st.integers(-100, 100), st.lists(st.integers(-9, 9), max_size=4)),
    max_size=12,
)


@examples(250)
@given(steps)
def test_slices_behave_as_a_dictionary(actions):
    slices, model, step = Slices(np.dtype(np.int64)), {}, None
    for action, value, more in actions:
        if action == "take":
            if step not in (None, more) and len(slices):
                slices.mix(slices.ends[-1])
            step = more
            take(slices, model, value, step)
        elif action == "evict":
            gone = [s for s in model if s < value]
            assert len(slices.evict_before(value)) == len(gone)
            for s in gone:
                del model[s]
        else:
            boundaries = np.unique(np.array([b * 12 for b in more], np.int64))
            found = slices.joinable(boundaries, value)
            joined = None if found is None else (found.into.copy(), found.taken.copy())
            if found is not None:
                slices.join(found, value)
            groups = {}
            for s in sorted(model):
                if model[s][0] <= value:
                    groups.setdefault(int((boundaries <= s).sum()), []).append(s)
            pairs = [(model[g[0]][1], model[s][1]) for g in groups.values() for s in g[1:]]
            assert pairs == ([] if joined is None else list(zip(*(a.tolist() for a in joined), strict=True)))
            for group in groups.values():
                model[group[0]][0] = model[group[-1]][0]
                for s in group[1:]:
                    del model[s]
        check(slices, model)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10), st.integers(0, 70), st.integers(0, 70))
def test_the_last_slice_is_shortened_only_behind_what_was_seen(times, end, seen):
    slices, model = Slices(np.dtype(np.int64)), {}
    take(slices, model, times, 12)
    last = slices.ends[-1]
    slices.shorten_last(end, seen)
    assert slices.ends[-1] == (end if seen < end < last else last)


def test_no_slices():
    slices = Slices(np.dtype(np.float64))
    assert len(slices.evict_before(5.0)) == 0
    assert slices.joinable(np.empty(0), 5.0) is None
    assert slices.find(np.array([1.0, 2.0]))[0].tolist() == [-1, -1]
    edges = np.array([0.0, 1.0])
    assert slices.reconcile(edges) is edges
    assert len(slices) == 0


@given(
    st.lists(st.integers(0, 80), min_size=1, max_size=10),
    st.lists(st.integers(0, 80), min_size=1, max_size=10),
)
def test_slices_that_are_forgotten_leave_no_trace(before, more):
    slices, model = Slices(np.dtype(np.int64)), {}
    take(slices, model, before, 4)
    kept = set(model)
    take(slices, model, more, 4)
    slices.forget(np.array([slot for start, (_, slot) in model.items() if start not in kept], np.int64))
    for start in set(model) - kept:
        del model[start]
    check(slices, model)
