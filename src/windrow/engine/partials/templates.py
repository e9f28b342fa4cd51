"""The source of the loops over partials, written for a number of columns and fields.

A partial with fields f0, f1, .. is one array per field; a *cell* is a position in them. `n` counts
the values in each cell. For two columns and two fields, `fold_cells` reads

    def fold_cells(cell, x0, x1, f0, f1, n):
        for i in range(cell.shape[0]):
            c = cell[i]
            a0, a1 = combine((f0[c], f1[c]), lift(x0[i], x1[i]))
            f0[c] = a0
            f1[c] = a1
            n[c] += 1

`slot` maps a slice to its place in the arena; the cells of a slice are the `keys` first ones of the
`stride` that begin at `slot * stride`. Windows are ranges `first[w] .. last[w]` of slices, in time
order, and `combine` always gets the earlier partial first.
"""

from __future__ import annotations

from functools import cache


def listed(letter: str, count: int, index: str = "") -> str:
    return "".join(f"{letter}{i}{index}, " for i in range(count))


def tupled(letter: str, count: int, index: str = "", bare: bool = False) -> str:
    return f"{letter}0{index}" if bare else f"({listed(letter, count, index)})"


def targets(letter: str, count: int, bare: bool) -> str:
    return f"{letter}0" if bare else listed(letter, count)


def copied(target: str, index: str, source: str, source_index: str, fields: int, indent: int) -> str:
    return "".join(f"{' ' * indent}{target}{i}{index} = {source}{i}{source_index}\n" for i in range(fields))


def stored(letter: str, count: int, index: str, indent: int) -> str:
    return copied(letter, index, "a", "", count, indent)


@cache
def loops(
    columns: int, fields: int, timed: bool, folded: bool, bare: bool, lifted: bool, sketch: bool = False
) -> str:
    """fold_runs, fold_cells, the four merges, absorb_slots and absorb_rows for scalars.

    The cells of a sketch are small arrays, updated in place: of these loops it has those that fold, merge_lazy, whose
    results begin empty, and absorb_slots.
    """
    inputs = listed("x", columns) + ("t, s, " if timed else "")
    event = listed("x", columns, "[i]") + ("t[i], s[i], " if timed else "")
    f, o, p, g = (listed(letter, fields) for letter in "fopg")
    acc = targets("a", fields, bare)

    def combine(left: str, left_index: str, right: str, right_index: str) -> str:
        if sketch:
            both = listed(left, fields, left_index) + listed(right, fields, right_index)
            return f"if n{right_index} > 0: absorb({both})\n"
        one = tupled(left, fields, left_index, bare)
        two = tupled(right, fields, right_index, bare)
        return f"{acc} = combine({one}, {two})\n" if fields else "pass\n"

    def kept(letter: str, index: str, indent: int) -> str:
        return "" if sketch else stored(letter, fields, index, indent)

    if sketch:
        event_body = f"            insert({listed('f', fields, '[c]')}{event})\n"
        run_body = f"            for i in range(lo, hi):\n    {event_body}"
    elif not fields or not lifted:
        run_body = event_body = "            pass\n"
    else:
        event_body = (
            f"            {acc} = combine({tupled('f', fields, '[c]', bare)}, lift({event}))\n"
            + kept("f", "[c]", 12)
        )
        if folded:
            run_body = (
                f"            {acc} = combine({tupled('f', fields, '[c]', bare)}, fold({inputs}lo, hi))\n"
                + kept("f", "[c]", 12)
            )
        else:
            # Views that begin at 0: LLVM vectorizes loops over them, not loops over an inner range.
            names = [name for name in inputs.split(", ") if name]
            views = "".join(f"            {name}v = {name}[lo:hi]\n" for name in names)
            viewed = "".join(f"{name}v[i], " for name in names)
            run_body = (
                copied("a", "", "f", "[c]", fields, 12)
                + views
                + "            for i in range(hi - lo):\n"
                + f"                {acc} = combine({tupled('a', fields, '', bare)}, lift({viewed}))\n"
                + kept("f", "[c]", 12)
            )
    begun = copied("o", "[d]", "f", "[c]", fields, 12)
    if sketch:
        begun = f"            {combine('o', '[d]', 'f', '[c]')}"
    return f"""
def fold_runs(low, high, cell, {inputs}{f}n):
    for r in range(low.shape[0]):
        lo, hi, c = low[r], high[r], cell[r]
        if lo < hi:
{run_body}            n[c] += hi - lo


def fold_cells(cell, {inputs}{f}n):
    for i in range(cell.shape[0]):
        c = cell[i]
        if c >= 0:
{event_body}            n[c] += 1


def merge_lazy(first, last, slot, stride, keys, {f}n, {o}on):
    for w in range(first.shape[0]):
        base = slot[first[w]] * stride
        for k in range(keys):
            c = base + k
            d = w * keys + k
{begun}            on[d] = n[c]
        for r in range(first[w] + 1, last[w]):
            base = slot[r] * stride
            for k in range(keys):
                c = base + k
                d = w * keys + k
                {combine("o", "[d]", "f", "[c]")}{kept("o", "[d]", 16)}                on[d] += n[c]


def merge_prefix(first, last, low, high, slot, stride, keys, {f}n, {p}pn, {o}on):
    # The caller has put the identity into the first `keys` cells of p, and zeros into pn.
    for r in range(low, high):
        base = slot[r] * stride
        d = (r - low) * keys
        for k in range(keys):
            c = base + k
            {combine("p", "[d + k]", "f", "[c]")}{kept("p", "[d + keys + k]", 12)}            pn[d + keys + k] = pn[d + k] + n[c]
    for w in range(first.shape[0]):
        a = (first[w] - low) * keys
        b = (last[w] - low) * keys
        for k in range(keys):
            d = w * keys + k
            {combine("p", "[b + k]", "p", "[a + k]").replace("combine", "invert")}{kept("o", "[d]", 12)}            on[d] = pn[b + k] - pn[a + k]


def merge_tree(first, last, low, high, slot, stride, keys, {f}n, {p}pn, {o}on):
    # Level 0 is the slices; node i of level l joins nodes 2i and 2i+1 of the level below.
    offset = np.zeros(65, np.int64)
    size = high - low
    level = 0
    offset[1] = size
    for r in range(size):
        base = slot[low + r] * stride
        for k in range(keys):
            c = base + k
            d = r * keys + k
{copied("p", "[d]", "f", "[c]", fields, 12)}            pn[d] = n[c]
    while size > 1:
        for i in range(size // 2):
            left = (offset[level] + 2 * i) * keys
            d = (offset[level + 1] + i) * keys
            for k in range(keys):
                {combine("p", "[left + k]", "p", "[left + keys + k]")}{kept("p", "[d + k]", 16)}                pn[d + k] = pn[left + k] + pn[left + keys + k]
        size //= 2
        level += 1
        offset[level + 1] = offset[level] + size
    nodes = np.empty(128, np.int64)
    for w in range(first.shape[0]):
        a = first[w] - low
        b = last[w] - low
        count = 0
        right = 128
        level = 0
        while a < b:
            if a & 1:
                nodes[count] = offset[level] + a
                count += 1
                a += 1
            if b & 1:
                b -= 1
                right -= 1
                nodes[right] = offset[level] + b
            a >>= 1
            b >>= 1
            level += 1
        for j in range(right, 128):
            nodes[count] = nodes[j]
            count += 1
        base = nodes[0] * keys
        for k in range(keys):
            d = w * keys + k
{copied("o", "[d]", "p", "[base + k]", fields, 12)}            on[d] = pn[base + k]
        for j in range(1, count):
            base = nodes[j] * keys
            for k in range(keys):
                d = w * keys + k
                {combine("o", "[d]", "p", "[base + k]")}{kept("o", "[d]", 16)}                on[d] += pn[base + k]


def merge_stacks(first, last, low, high, slot, stride, keys, {f}n, {p}pn, {o}on):
    # A queue of slices begin .. end. Those before `turn` have in p what they make up to there; the others
    # are one total, in the last cells of p.
    begin = turn = end = low
    total = (high - low) * keys
    for w in range(first.shape[0]):
        if first[w] < begin or last[w] < end or first[w] >= end:
            turn = end = first[w]
        begin = first[w]
        if turn == end < last[w]:
            base = slot[end] * stride
            for k in range(keys):
                c = base + k
                d = total + k
{copied("p", "[d]", "f", "[c]", fields, 16)}                pn[d] = n[c]
            end += 1
        for r in range(end, last[w]):
            base = slot[r] * stride
            for k in range(keys):
                c = base + k
                d = total + k
                {combine("p", "[d]", "f", "[c]")}{kept("p", "[d]", 16)}                pn[d] += n[c]
        end = max(end, last[w])
        if begin > turn:
            base = slot[end - 1] * stride
            d = (end - 1 - low) * keys
            for k in range(keys):
                c = base + k
{copied("p", "[d + k]", "f", "[c]", fields, 16)}                pn[d + k] = n[c]
            for r in range(end - 2, begin - 1, -1):
                base = slot[r] * stride
                d = (r - low) * keys
                for k in range(keys):
                    c = base + k
                    {combine("f", "[c]", "p", "[d + keys + k]")}{kept("p", "[d + k]", 20)}                    pn[d + k] = n[c] + pn[d + keys + k]
            turn = end
        a = (begin - low) * keys
        if begin == turn:
            a = total
        for k in range(keys):
            c = a + k
            d = w * keys + k
{copied("o", "[d]", "p", "[c]", fields, 12)}            on[d] = pn[c]
        if begin < turn < end:
            for k in range(keys):
                c = total + k
                d = w * keys + k
                {combine("o", "[d]", "p", "[c]")}{kept("o", "[d]", 16)}                on[d] += pn[c]


def absorb_slots(into, taken, stride, keys, {f}n):
    for r in range(into.shape[0]):
        for k in range(keys):
            d = into[r] * stride + k
            c = taken[r] * stride + k
            {combine("f", "[d]", "f", "[c]")}{kept("f", "[d]", 12)}            n[d] += n[c]


def absorb_rows(cell, {g}gn, {f}n):
    for i in range(cell.shape[0]):
        c = cell[i]
        # What a partial of no value holds is nobody's business.
        if c >= 0 and gn[i] > 0:
            {combine("f", "[c]", "g", "[i]")}{kept("f", "[c]", 12)}            n[c] += gn[i]
"""


@cache
def lowering(fields: int, outputs: int, *, user: bool, bare: bool, sketch: bool) -> str:
    """lower_all: partials to answers, `ok` false where the answer is null."""
    o, v = listed("o", fields), listed("v", outputs)
    if user:
        body = f"        ok[i] = n[i] > 0\n        if n[i] > 0:\n            v0[i] = lower({tupled('o', fields, '[i]', bare)})\n"
    else:
        partial = listed("o", fields, "[i]") if sketch else f"({listed('o', fields, '[i]')}), "
        body = f"        {listed('a', outputs)}defined = lower({partial}n[i])\n"
        body += stored("v", outputs, "[i]", 8) + "        ok[i] = defined\n"
    return f"""
def lower_all({o}n, {v}ok):
    for i in range(n.shape[0]):
{body}"""
