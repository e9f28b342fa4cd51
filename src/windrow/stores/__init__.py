"""Aggregate stores: queues of partials that know the combination of all that they hold."""

from windrow.errors import QueryError
from windrow.stores.base import Store
from windrow.stores.daba import DABA
from windrow.stores.daba_lite import DABA_LITE
from windrow.stores.fiba import FIBA
from windrow.stores.flat_fat import FLAT_FAT
from windrow.stores.flat_fit import FLAT_FIT
from windrow.stores.lazy import LAZY
from windrow.stores.pba import PBA
from windrow.stores.sba import SBA
from windrow.stores.slick_deque import SLICK_DEQUE
from windrow.stores.slick_deque_inverse import SLICK_DEQUE_INVERSE
from windrow.stores.subtract_on_evict import SUBTRACT_ON_EVICT
from windrow.stores.two_stacks import TWO_STACKS
from windrow.stores.two_stacks_lite import TWO_STACKS_LITE
from windrow.wording import choices

STORES = {
    store.name: store
    for store in (
        LAZY,
        SUBTRACT_ON_EVICT,
        TWO_STACKS,
        TWO_STACKS_LITE,
        DABA,
        DABA_LITE,
        FLAT_FAT,
        FLAT_FIT,
        SLICK_DEQUE,
        SLICK_DEQUE_INVERSE,
        SBA,
        PBA,
        FIBA,
    )
}

__all__ = ["STORES", "store_named"]


def store_named(name: str) -> Store:
    """The store of this name; a QueryError that lists all names if there is none.

    >>> store_named("daba_lite").name
    'daba_lite'
    """
    if name not in STORES:
        raise QueryError(f"there is no store {name!r}{choices(name, STORES)}")
    return STORES[name]
