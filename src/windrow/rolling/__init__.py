"""Windows over a stream of rows, answered by a store, row by row.

`Rolling`      a number of rows or a stretch of time, over rows in order
`Several`      several numbers of rows in one pass
`OutOfOrder`   a stretch of time over events in any order
"""

from windrow.rolling.multi_window import Several
from windrow.rolling.out_of_order import OutOfOrder
from windrow.rolling.rolling import Rolling

__all__ = ["OutOfOrder", "Rolling", "Several"]
