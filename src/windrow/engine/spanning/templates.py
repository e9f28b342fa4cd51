"""The source of the loops over partials of events that last, written for a number of columns and fields.

    fold_ranges     fold events, run by run, into the cells of all slices whose starts they cross
    cover_ranges    the same into the nodes of a tree over slices, in which a node stands for 2, 4, 8, .. of them
    push_down       nodes of a tree onto the slices that they stand for
    fold_both       fold each event where it first goes on, and where it ends
    go_on           what goes on at each start of a slice: all that have entered less all that have left

A tree of height h has its nodes in one column: level l begins at `offset[l]`, and each node has a cell per key. An
event that crosses many starts touches at most two nodes of each level below the top.
"""

from __future__ import annotations

from functools import cache

from windrow.engine.templates import copied, listed, stored, targets, tupled


@cache
def ranges(columns: int, fields: int, timed: bool, bare: bool) -> str:
    """fold_ranges, cover_ranges and push_down for scalars."""
    inputs = listed("x", columns) + ("t, s, " if timed else "")
    event = listed("x", columns, "[i]") + ("t[i], s[i], " if timed else "")
    f = listed("f", fields)
    acc, one = targets("a", fields, bare), tupled("v", fields, "", bare)

    def take(indent: int) -> str:
        pad = " " * indent
        return (
            f"{pad}{acc} = combine({tupled('f', fields, '[c]', bare)}, {one})\n"
            + stored("f", fields, "[c]", indent)
            + f"{pad}n[c] += run\n"
        )

    begin = f"""
    i = 0
    for r in range(upto.shape[0]):
        a, b, k = low[r], high[r], key[r]
        if a > b or i == upto[r]:
            i = upto[r]
            continue
        {targets("v", fields, bare)} = lift({event})
        run = upto[r] - i
        i += 1
        while i < upto[r]:
            {targets("v", fields, bare)} = combine({one}, lift({event}))
            i += 1"""
    return f"""
def fold_ranges(upto, low, high, key, base, {inputs}{f}n):{begin}
        for j in range(a, b + 1):
            c = base[j] + k
{take(12)}

def cover_ranges(upto, low, high, key, keys, offset, {inputs}{f}n):
    top = offset.shape[0] - 1{begin}
        b += 1
        level = 0
        while level < top and a < b:
            if a & 1:
                c = (offset[level] + a) * keys + k
{take(16)}                a += 1
            if b & 1:
                b -= 1
                c = (offset[level] + b) * keys + k
{take(16)}            a >>= 1
            b >>= 1
            level += 1
        for j in range(a, b):
            c = (offset[level] + j) * keys + k
{take(12)}

def push_down(offset, size, keys, {f}n):
    for level in range(offset.shape[0] - 1, 0, -1):
        below = (size + (1 << (level - 1)) - 1) >> (level - 1)
        for r in range((below + 1) // 2):
            for k in range(keys):
                d = (offset[level] + r) * keys + k
                if n[d] > 0:
                    for child in range(2 * r, min(2 * r + 2, below)):
                        c = (offset[level - 1] + child) * keys + k
                        {acc} = combine({tupled("f", fields, "[c]", bare)}, {tupled("f", fields, "[d]", bare)})
{stored("f", fields, "[c]", 24)}                        n[c] += n[d]
"""


@cache
def both(columns: int, fields: int, bare: bool) -> str:
    """fold_both for scalars that can be taken out again."""
    inputs, event = listed("x", columns), listed("x", columns, "[i]")
    e, d = listed("e", fields), listed("d", fields)
    acc, one = targets("a", fields, bare), tupled("v", fields, "", bare)

    def take(letter: str) -> str:
        if not fields:
            return f"            {letter}n[c] += 1\n"
        return (
            f"            {acc} = combine({tupled(letter, fields, '[c]', bare)}, {one})\n"
            + stored(letter, fields, "[c]", 12)
            + f"            {letter}n[c] += 1\n"
        )

    lifted = f"{targets('v', fields, bare)} = lift({event})" if fields else "pass"
    return f"""
def fold_both(enter, leave, {inputs}{e}en, {d}dn):
    for i in range(enter.shape[0]):
        c = enter[i]
        if c >= 0:
            {lifted}
{take("e")}            c = leave[i]
{take("d")}"""


@cache
def balance(fields: int, bare: bool) -> str:
    """go_on for scalars that can be taken out again."""
    e, d, c, p, m = (listed(letter, fields) for letter in "edcpm")
    acc = targets("a", fields, bare)

    def join(function: str, left: str, right: str) -> str:
        if not fields:
            return ""
        return f"            {acc} = {function}({left}, {right})\n"

    total = tupled("c", fields, "[k]", bare)
    return f"""
def go_on(slot, stride, keys, every, {e}en, {d}dn, {c}cn, {p}pn, {m}mn):
    for r in range(slot.shape[0]):
        base = slot[r] * stride
        if r > 0 and r % every == 0:
            for k in range(keys):
                q = (r // every - 1) * stride + k
{copied("m", "[q]", "c", "[k]", fields, 16)}                mn[q] = cn[k]
        for k in range(keys):
            i = base + k
            j = r * keys + k
{join("combine", total, tupled("e", fields, "[i]", bare))}{stored("c", fields, "[k]", 12)}            cn[k] += en[i]
{copied("p", "[j]", "c", "[k]", fields, 12)}            pn[j] = cn[k]
{join("invert", total, tupled("d", fields, "[i]", bare))}{stored("c", fields, "[k]", 12)}            cn[k] -= dn[i]
"""
