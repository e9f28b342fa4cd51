"""SlickDeque for aggregates with an inverse: each answer is the last one, plus what came, less what left.

The paper keeps one answer for each range that is queried, over one ring of partials:

    ring            |a b c d e f|
    range of 6       -----------      answer - (what was before a) + f
    range of 2               ---      answer - d + f

A queue has one range. For that it is subtract-on-evict, and the code is the same.

    order       first in, first out
    needs       an exact inverse, and a combine for which the order does not matter
    time        1 combine per insert, 1 inverse per evict, none per answer; at worst as well
    space       n + 1 partials
    paper       Shein, Chrysanthis and Labrinidis, SlickDeque: High Throughput and Low Latency Incremental
                Sliding-Window Aggregation, EDBT 2018
"""

from __future__ import annotations

from dataclasses import replace

from windrow.stores.subtract_on_evict import SUBTRACT_ON_EVICT

SLICK_DEQUE_INVERSE = replace(SUBTRACT_ON_EVICT, name="slick_deque_inverse")
