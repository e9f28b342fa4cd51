"""Tables I and II of the paper as data: in which order a row is inserted, others leave, and the window is processed.

    tumbling    count: insert -> flush      delta: flush -> insert      time, punct: insert | flush

    sliding, eviction \\ trigger    count                       delta                       time
    count                          evict -> insert -> trigger  trigger -> evict -> insert  evict -> insert | trigger
    delta                          evict -> insert -> trigger  trigger -> evict -> insert  evict -> insert | trigger
    time                           insert -> trigger | evict   trigger -> insert | evict   insert | evict | trigger

What stands after a bar happens by itself, when the clock says so or a punctuation comes.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.policies.spec import Count, Delta, Spec, Time, Tumbling


@dataclass(frozen=True)
class Order:
    """A row of Table I or II: the steps when a row arrives, and those that happen by themselves."""

    on_arrival: tuple[str, ...]
    independent: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join([" -> ".join(self.on_arrival), *self.independent])


def order_of(spec: Spec) -> Order:
    """The order in which a row is inserted, others are evicted and the window is processed.

    >>> from windrow.policies import count, delta, punct, sliding, tumbling
    >>> print(order_of(sliding(count(2), delta("id", 0))))
    trigger -> evict -> insert
    >>> print(order_of(tumbling(punct())))
    insert | flush
    """
    if isinstance(spec, Tumbling):
        if isinstance(spec.eviction, Count):
            return Order(("insert", "flush"))
        if isinstance(spec.eviction, Delta):
            return Order(("flush", "insert"))
        return Order(("insert",), ("flush",))
    steps, apart = ["insert"], []
    if isinstance(spec.eviction, Time):
        apart.append("evict")
    else:
        steps.insert(0, "evict")
    if isinstance(spec.trigger, Time):
        apart.append("trigger")
    elif isinstance(spec.trigger, Delta):
        steps.insert(0, "trigger")
    else:
        steps.append("trigger")
    return Order(tuple(steps), tuple(apart))
