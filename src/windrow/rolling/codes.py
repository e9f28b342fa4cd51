"""The columns of a batch as codes, and the first row that is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import Coder, shown
from windrow.errors import DataError


def refuse_first(wrong: np.ndarray | None, column: str, array: pa.Array | None, problem: str) -> None:
    """A DataError for the first row that is wrong, if one is; with its value, if there is an array of them."""
    if wrong is not None and wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(column, row, None if array is None else shown(array[row]), problem)


def require_codes(coder: Coder, batch: pa.RecordBatch) -> None:
    """A DataError if a value does not fit in 64 bits."""
    array = batch.column(coder.column)
    refuse_first(coder.oversized(array), coder.column, array, "does not fit in 64 bits")


def recoded(codes: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Old codes as new ones; what is no code, because nothing was put there, stays."""
    is_code = (codes >= 0) & (codes < len(moved))
    return np.where(is_code, moved[np.where(is_code, codes, 0).astype(np.int64)], codes)
