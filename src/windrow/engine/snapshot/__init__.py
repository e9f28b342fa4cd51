"""The state of an operator as bytes, and back.

    8 bytes   magic             "windrow" and a zero byte
    4 bytes   version           of this format
    32 bytes  plan              SHA-256 of the query; what the query was is described in the body
    8 bytes   length            of the body
    4 bytes   CRC-32            of the body
    body      Arrow IPC stream  one table: name, dtype, data

Reading trusts nothing: header, length and checksum first, then the Arrow table is validated in full,
then every array is checked against what the query says it must be, and every offset, slot and code
against its bounds. Only then does compiled code see it. There is no pickle, so a snapshot cannot run
code. Parts that are tables themselves (keys, late rows) are Arrow IPC streams inside `data`.
"""

from windrow.engine.snapshot.format import in_other_mode, restore, save

__all__ = ["in_other_mode", "restore", "save"]
