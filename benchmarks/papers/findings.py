"""Whether a claim holds, said in two sentences that the measured numbers choose.

A claim has one or more points that can be measured. Each becomes a `Finding`: whether it held, and the numbers
in words. The first sentence of a verdict says how many of them held; the second one gives the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One point of a claim: whether it held here, and by how much."""

    held: bool
    words: str


def at_least(what: str, found: float, bound: float, unit: str = "x") -> Finding:
    """`what` should be `bound` or more."""
    words = f"{what} {amount(found, unit)} (bound: ≥ {amount(bound, unit)})"
    return Finding(found >= bound, words)


def at_most(what: str, found: float, bound: float, unit: str = "x") -> Finding:
    """`what` should be `bound` or less."""
    words = f"{what} {amount(found, unit)} (bound: ≤ {amount(bound, unit)})"
    return Finding(found <= bound, words)


def amount(value: float, unit: str = "x") -> str:
    """A number with its unit, in about two digits: "1.7x", "85 %", "1,200 ns"."""
    if unit == "%":
        return f"{100 * value:.0f} %"
    digits = 0 if value == 0 else max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}{'' if unit == 'x' else ' '}{unit}"


def verdict(findings: Sequence[Finding]) -> str:
    """Two sentences: whether the claim holds, and the numbers that say so."""
    held = sum(finding.held for finding in findings)
    if held == len(findings):
        opening = "The claim holds here."
    elif held == 0:
        opening = "The claim does not hold here."
    else:
        failed = "; ".join(finding.words for finding in findings if not finding.held)
        kept = "; ".join(finding.words for finding in findings if finding.held)
        return f"The claim holds here in part, in {held} of {len(findings)} points: {kept}. Not so: {failed}."
    return f"{opening} Measured: {'; '.join(finding.words for finding in findings)}."
