"""Expressions over Arrow columns, a batch at a time, by `pyarrow.compute`.

Each function gives the values of its node over all rows, and which rows are bad. A bad row is one for which Spark would raise: an
overflow, a division by zero, a cast that fails. What is not looked at cannot fail: branches of `case` that are not taken, what stands
behind `false and`, and what is computed with a null that came before. Equal nodes are computed once.

Kernels that find out by themselves whether a row fails are tried first; only if one does, rows are told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from windrow.expressions.functions import FROM_EPOCH, SINCE_EPOCH
from windrow.expressions.typing import TEXT, TIMESTAMP, Typed

# For each row 0, or the number of what is wrong with it, from 1 on; None where all rows are good.
Bad: TypeAlias = "np.ndarray | None"
Values: TypeAlias = "pa.Array | pa.Scalar"
OVERFLOW, ZERO, MISFIT = 1, 2, 3
PROBLEMS = {
    OVERFLOW: "the result overflows its type; cast to a wider one",
    ZERO: "division by zero; nullif(.., 0) as divisor gives null instead",
    MISFIT: "the value cannot be cast",
}
# What a text must look like to be cast; the rest of what Spark takes for a number (1d, 0x1) or a date is refused on both sides.
PATTERNS: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pt.is_integer, r"^[+-]?\d+$"),
    (pt.is_floating, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^(?i)([+-]?(inf|infinity)|nan)$"),
    (pt.is_decimal, r"^[+-]?(\d+\.?\d*|\.\d+)$"),
    (pt.is_boolean, r"^(?i)(t|true|y|yes|1|f|false|n|no|0)$"),
    (pt.is_date, r"^\d{4}-\d{2}-\d{2}$"),
    (pt.is_timestamp, r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"),
]


def pattern_for(type_: pa.DataType) -> str:
    """What a text must look like to be cast to a type."""
    return next(pattern for holds, pattern in PATTERNS if holds(type_))


class Evaluation:
    """The values of nodes over the rows of one batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._rows = batch.num_rows
        self._known: dict[Typed, tuple[Values, Bad]] = {}

    def column(self, node: Typed) -> tuple[pa.Array, Bad]:
        """The values of a node, one per row, and which rows are bad; a bad row has a null."""
        values, bad = self._of(node)
        values = self._array(values)
        if bad is not None:
            values = without(values, bad != 0)
        return values, bad

    def _array(self, values: Values) -> pa.Array:
        return pa.repeat(values, self._rows) if isinstance(values, pa.Scalar) else values

    def _of(self, node: Typed) -> tuple[Values, Bad]:
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = self._computed(node)
        return known

    def _computed(self, node: Typed) -> tuple[Values, Bad]:
        match node.op:
            case "column":
                return self._read(node), None
            case "literal":
                return constant(node), None
            case "and" | "or":
                return self._logic(node)
            case "case":
                return self._case(node)
            case "coalesce":
                return self._coalesced(node)
        values, bad = self._arguments(node)
        if all(isinstance(value, pa.Scalar) for value in values):
            values[0] = self._array(values[0])
        if node.op in _FAILING:
            return self._checked(node, values, bad)
        return _PLAIN[node.op](node, *values), bad

    def _arguments(self, node: Typed) -> tuple[list[Values], Bad]:
        """The values of all arguments; what is behind a null is not looked at, except by `is null` and the like."""
        values: list[Values] = []
        bad: Bad = None
        shields = node.op not in ("is null", "<=>", "greatest", "least")
        absent: np.ndarray | None = None
        for argument in node.arguments:
            value, wrong = self._of(argument)
            if wrong is not None:
                wrong = wrong if absent is None else np.where(absent, 0, wrong)
                bad = wrong if bad is None else np.where(bad > 0, bad, wrong)
            if shields and value.type != pa.null() and len(node.arguments) > 1:
                here = _absent(self._array(value)) if self._may_matter(node, argument) else None
                if here is not None:
                    absent = here if absent is None else absent | here
            values.append(value)
        return values, bad

    def _may_matter(self, node: Typed, argument: Typed) -> bool:
        """Whether an argument behind this one has a bad row, so that nulls of this one count."""
        place = node.arguments.index(argument)
        return any(self._of(other)[1] is not None for other in node.arguments[place + 1 :])

    def _read(self, node: Typed) -> pa.Array:
        name, path = node.detail
        values = self._batch.column(name)
        for part in path:
            values = pc.struct_field(values, part)
        if values.type == node.type:
            return values
        if pt.is_dictionary(values.type):
            values = values.dictionary_decode()
        return values if values.type == node.type else values.cast(node.type)

    def _logic(self, node: Typed) -> tuple[Values, Bad]:
        (left, wrong), (right, also) = (self._of(each) for each in node.arguments)
        left = self._array(left)
        kernel = pc.and_kleene if node.op == "and" else pc.or_kleene
        if wrong is None and also is None:
            return kernel(left, right), None
        bad = np.zeros(self._rows, np.int8) if wrong is None else wrong
        if also is not None:
            decided = pc.equal(left, node.op == "or").fill_null(False).to_numpy(zero_copy_only=False)
            bad = np.where((bad > 0) | decided, bad, also)
        return kernel(left, right), bad

    def _case(self, node: Typed) -> tuple[Values, Bad]:
        parts = [self._of(each) for each in node.arguments]
        conditions = [(self._array(values), bad) for values, bad in parts[:-1:2]]
        results = [*parts[1:-1:2], parts[-1]]
        values = _chosen([each for each, _ in conditions], [each for each, _ in results], node.type)
        if all(bad is None for _, bad in parts):
            return values, None
        bad, left = np.zeros(self._rows, np.int8), np.ones(self._rows, bool)
        for (condition, wrong), (_, also) in zip(conditions, results, strict=False):
            if wrong is not None:
                bad = np.where(left & (bad == 0), wrong, bad)
                left &= wrong == 0
            taken = left & condition.fill_null(False).to_numpy(zero_copy_only=False)
            if also is not None:
                bad = np.where(taken & (bad == 0), also, bad)
            left &= ~taken
        otherwise = results[-1][1]
        if otherwise is not None:
            bad = np.where(left & (bad == 0), otherwise, bad)
        return values, bad

    def _coalesced(self, node: Typed) -> tuple[Values, Bad]:
        parts = [self._of(each) for each in node.arguments]
        bad: Bad = None
        left = np.ones(self._rows, bool)
        for values, wrong in parts:
            if wrong is not None:
                bad = np.zeros(self._rows, np.int8) if bad is None else bad
                bad = np.where(left & (bad == 0), wrong, bad)
            there = ~absent if (absent := _absent(self._array(values))) is not None else True
            left &= ~there if there is not True else False
        first, *others = (values for values, _ in parts)
        return pc.coalesce(self._array(first), *others), bad

    def _checked(self, node: Typed, values: list[Values], bad: Bad) -> tuple[Values, Bad]:
        """An operation that may fail; rows that are bad already are not looked at."""
        if bad is not None:
            values = [without(self._array(value), bad != 0) for value in values]
        answer, wrong = _FAILING[node.op](node, *values)
        if wrong is None:
            return answer, bad
        return answer, wrong if bad is None else np.where(bad > 0, bad, wrong)


# -- small things ----------------------------------------------------------------------------------


def constant(node: Typed) -> pa.Scalar:
    """A literal as a scalar of its type."""
    if node.detail is None:
        return pa.scalar(None, node.type)
    value = node.detail.value
    if pt.is_floating(node.type):
        return pa.scalar(float(value), pa.float64()).cast(node.type)
    return pa.scalar(Decimal(value) if pt.is_decimal(node.type) else value, node.type)


def without(values: pa.Array, mask: np.ndarray) -> pa.Array:
    """The values, null where the mask is true."""
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values) if mask.any() else values


def only(values: pa.Array, condition: pa.Array) -> pa.Array:
    """The values where a condition holds, null elsewhere, whatever their type is; the values themselves are shared, not copied."""
    holds = condition if not condition.null_count else condition.fill_null(False)
    if values.null_count:
        holds = pc.and_(holds, values.is_valid())
    if values.offset or pt.is_nested(values.type) or pt.is_null(values.type) or pt.is_union(values.type):
        picked = np.where(holds.to_numpy(zero_copy_only=False), np.arange(len(values)), -1)
        return values.take(pa.array(picked, mask=picked < 0))
    bits = holds if not holds.offset else pa.concat_arrays([holds, holds.slice(0, 0)])
    _, *buffers = values.buffers()
    if pt.is_dictionary(values.type):
        indices = pa.Array.from_buffers(
            values.type.index_type, len(values), [bits.buffers()[1], *values.indices.buffers()[1:]]
        )
        return pa.DictionaryArray.from_arrays(indices, values.dictionary, ordered=values.type.ordered)
    return pa.Array.from_buffers(values.type, len(values), [bits.buffers()[1], *buffers])


def _absent(values: pa.Array) -> np.ndarray | None:
    """A mask of the nulls, or None if there are none."""
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None


def _numbers(values: Values, rows: int, type_: Any) -> np.ndarray:
    """The values as an array of NumPy, with zeros for nulls."""
    if isinstance(values, pa.Scalar):
        return np.full(rows, values.as_py() or 0, type_)
    return values.fill_null(0).to_numpy(zero_copy_only=False).astype(type_, copy=False)


def _rows_of(*values: Values) -> int:
    return next(len(value) for value in values if isinstance(value, pa.Array))


def _valid(*values: Values) -> np.ndarray:
    """Where all values are there."""
    found = np.ones(_rows_of(*values), bool)
    for value in values:
        if isinstance(value, pa.Scalar):
            found &= value.is_valid
        elif value.null_count:
            found &= value.is_valid().to_numpy(zero_copy_only=False)
    return found


def _as_arrays(*values: Values) -> list[pa.Array]:
    rows = _rows_of(*values)
    return [pa.repeat(v, rows) if isinstance(v, pa.Scalar) else v for v in values]


def _marked(mask: np.ndarray, problem: int) -> Bad:
    return np.where(mask, np.int8(problem), np.int8(0)) if mask.any() else None


def _chosen(conditions: list[pa.Array], results: list[Values], type_: pa.DataType) -> Values:
    if pt.is_null(type_):
        return pa.nulls(len(conditions[0]))
    answer: Values = results[-1]
    for condition, result in zip(conditions[::-1], results[-2::-1], strict=True):
        answer = pc.if_else(condition.fill_null(False), result, answer)
    return answer


# -- arithmetic ------------------------------------------------------------------------------------

_KERNELS = {
    "+": (pc.add, pc.add_checked),
    "-": (pc.subtract, pc.subtract_checked),
    "*": (pc.multiply, pc.multiply_checked),
}


def _arithmetic(node: Typed, a: Values, b: Values) -> tuple[Values, Bad]:
    plain, checked = _KERNELS[node.op]
    if pt.is_floating(node.type):
        return plain(a, b), None
    if pt.is_decimal(node.type):
        return _fitted(plain(_wide(a), _wide(b)), node.type)
    try:
        return checked(a, b), None
    except pa.ArrowInvalid:
        mask = _overflows(node, a, b) & _valid(a, b)
    a, b = (without(each, mask) for each in _as_arrays(a, b))
    return checked(a, b), _marked(mask, OVERFLOW)


def _overflows(node: Typed, a: Values, b: Values) -> np.ndarray:
    rows, width = _rows_of(a, b), node.type.bit_width
    x, y = _numbers(a, rows, np.int64), _numbers(b, rows, np.int64)
    with np.errstate(all="ignore"):
        answer = {"+": np.add, "-": np.subtract, "*": np.multiply}[node.op](x, y)
        if width < 64:
            return (answer < -(2 ** (width - 1))) | (answer >= 2 ** (width - 1))
        if node.op == "+":
            return ((x ^ answer) & (y ^ answer)) < 0
        if node.op == "-":
            return ((x ^ y) & (x ^ answer)) < 0
        least = np.iinfo(np.int64).min
        divisor = np.where(x == 0, 1, x)
        exact = (answer // divisor == y) & (answer % divisor == 0)
        return ((x == -1) & (y == least)) | ((y == -1) & (x == least)) | ((x != 0) & (x != -1) & ~exact)


def _wide(values: Values) -> Values:
    """A decimal with room for what becomes of it."""
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))


def _fitted(values: pa.Array, type_: pa.DataType) -> tuple[pa.Array, Bad]:
    """Decimals rounded half up to the scale of a type; those that do not fit are bad."""
    if values.type.scale > type_.scale:
        values = pc.round(values, ndigits=type_.scale, round_mode="half_towards_infinity")
    digits = min(76, values.type.precision - min(0, values.type.scale - type_.scale))
    values = values.cast(pa.decimal256(digits, type_.scale), safe=False)
    if digits <= type_.precision:
        return values.cast(type_), None
    bound = _power(type_.precision - type_.scale, type_.scale)
    too_large = pc.greater_equal(pc.abs(values), bound)
    mask = too_large.fill_null(False).to_numpy(zero_copy_only=False)
    return without(values, mask).cast(type_), _marked(mask, OVERFLOW)


def _power(digits: int, scale: int) -> pa.Scalar:
    """10**digits as a decimal."""
    return pa.scalar(Decimal(10) ** digits, pa.decimal256(digits + 1 + scale, scale))


def _divided(node: Typed, a: Values, b: Values) -> tuple[Values, Bad]:
    a, b, bad = _without_zeros(a, b)
    if pt.is_floating(node.type):
        return pc.divide(a, b), bad
    p, s = a.type.precision, a.type.scale
    q, t = b.type.precision, b.type.scale
    more = max(0, max(6, s + q + 1) - q + t - s)
    answer = pc.divide(_wide(a).cast(pa.decimal256(p + more, s + more)), _wide(b))
    fitted, wrong = _fitted(answer, node.type)
    return fitted, _both(bad, wrong)


def _both(bad: Bad, wrong: Bad) -> Bad:
    if bad is None or wrong is None:
        return wrong if bad is None else bad
    return np.where(bad > 0, bad, wrong)


def _without_zeros(a: Values, b: Values) -> tuple[Values, Values, Bad]:
    """The same without rows whose divisor is zero, which are bad."""
    zero = pa.scalar(Decimal(0), b.type) if pt.is_decimal(b.type) else pa.scalar(0, b.type)
    found = pc.equal(b, zero)
    if isinstance(found, pa.Scalar):
        if found.as_py() is not True:
            return a, b, None
        a, b = _as_arrays(a, b)
        found = pc.equal(b, zero)
    if not pc.any(found).as_py():
        return a, b, None
    mask = found.fill_null(False).to_numpy(zero_copy_only=False) & _valid(a, b)
    a, b = _as_arrays(a, b)
    zeros = found.fill_null(False).to_numpy(zero_copy_only=False)
    return a, without(b, zeros), _marked(mask, ZERO)


def _whole_division(node: Typed, a: Values, b: Values) -> tuple[Values, Bad]:
    a, b, bad = _without_zeros(a, b)
    try:
        return pc.divide_checked(a, b), bad
    except pa.ArrowInvalid:
        a, b = _as_arrays(a, b)
        least = pa.scalar(-(2**63), pa.int64())
        both = pc.and_(pc.equal(a, least), pc.equal(b, pa.scalar(-1, pa.int64())))
        mask = both.fill_null(False).to_numpy(zero_copy_only=False)
        return pc.divide_checked(without(a, mask), b), _both(bad, _marked(mask, OVERFLOW))


def _remainder(node: Typed, a: Values, b: Values) -> tuple[Values, Bad]:
    a, b, bad = _without_zeros(a, b)
    rows, kind = _rows_of(a, b), node.type.to_pandas_dtype()
    x, y = _numbers(a, rows, kind), _numbers(b, rows, kind)
    if pt.is_integer(node.type):
        y = np.where((y == 0) | (y == -1), 1, y)
    with np.errstate(all="ignore"):
        answer = np.fmod(x, y)
    return pa.array(answer.astype(kind), node.type, mask=~_valid(a, b)), bad


def _negated(node: Typed, a: pa.Array) -> tuple[Values, Bad]:
    plain, checked = (pc.negate, pc.negate_checked) if node.op == "negative" else (pc.abs, pc.abs_checked)
    if not pt.is_integer(node.type):
        return plain(a), None
    try:
        return checked(a), None
    except pa.ArrowInvalid:
        least = pa.scalar(-(2 ** (node.type.bit_width - 1)), node.type)
        mask = pc.equal(a, least).fill_null(False).to_numpy(zero_copy_only=False)
        return checked(without(a, mask)), _marked(mask, OVERFLOW)


def _saturated(x: np.ndarray) -> np.ndarray:
    """Floats as int64: NaN is 0, and what is too large is the largest."""
    with np.errstate(all="ignore"):
        whole = np.where(np.isnan(x), 0.0, np.clip(x, -(2.0**63), 2.0**63 - 1024)).astype(np.int64)
    return np.where(x >= 2.0**63, np.iinfo(np.int64).max, whole)


def _to_whole(node: Typed, a: pa.Array) -> tuple[Values, Bad]:
    if pt.is_integer(a.type):
        return a.cast(pa.int64()), None
    x, there = _numbers(a, len(a), np.float64), _valid(a)
    fits = (x >= -(2.0**63)) & (x < 2.0**63)
    answer = _saturated(np.floor(x) if node.op == "floor" else np.ceil(x))
    return pa.array(answer, pa.int64(), mask=~(there & fits)), _marked(there & ~fits, OVERFLOW)


def _rounded(node: Typed, a: pa.Array) -> Values:
    kind = node.type.to_pandas_dtype()
    x = _numbers(a, len(a), kind)
    with np.errstate(all="ignore"):
        whole = np.trunc(x)
        answer = np.where(np.isfinite(x), whole + np.sign(x) * (np.abs(x - whole) >= 0.5), x)
    # Java makes no negative zero of a number that is rounded to nothing.
    answer = np.where(answer == 0, np.abs(answer), answer)
    return pa.array(answer.astype(kind), node.type, mask=~_valid(a))


def _logarithm(kernel: Any) -> Any:
    def function(node: Typed, a: pa.Array) -> Values:
        x = _numbers(a, len(a), np.float64)
        with np.errstate(all="ignore"):
            return pa.array(kernel(x), node.type, mask=~_valid(a) | (x <= 0))

    return function


def _signed(node: Typed, a: pa.Array) -> Values:
    x = _numbers(a, len(a), np.float64)
    return pa.array(np.where(x == 0, x, np.sign(x)), node.type, mask=~_valid(a))


def _power_of(node: Typed, a: Values, b: Values) -> Values:
    rows = _rows_of(a, b)
    x, y = _numbers(a, rows, np.float64), _numbers(b, rows, np.float64)
    with np.errstate(all="ignore"):
        answer = np.power(x, y)
    # Where C says 1, Java says NaN.
    odd = (np.isnan(y) & (x == 1)) | ((np.abs(x) == 1) & np.isinf(y))
    return pa.array(np.where(odd, math.nan, answer), node.type, mask=~_valid(a, b))


# -- comparisons -----------------------------------------------------------------------------------


def _has_nan(*values: Values) -> bool:
    for value in values:
        if pt.is_floating(value.type):
            found = pc.is_nan(value)
            if found.as_py() if isinstance(found, pa.Scalar) else pc.any(found).as_py():
                return True
    return False


def _compared(node: Typed, a: Values, b: Values) -> Values:
    """As Spark: NaN equals itself and is larger than all else."""
    if pt.is_null(a.type):
        return pa.nulls(_rows_of(a, b), pa.bool_())
    kernel = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal}[node.op]
    answer = kernel(a, b)
    if not _has_nan(a, b):
        return answer
    nan_a, nan_b = pc.is_nan(a), pc.is_nan(b)
    if node.op == "=":
        return pc.or_(answer, pc.and_(nan_a, nan_b))
    if node.op == "<=":
        return pc.or_(answer, nan_b)
    return pc.or_(answer, pc.and_(pc.invert(nan_a), nan_b))


def _null_safe(node: Typed, a: Values, b: Values) -> Values:
    a, b = _as_arrays(a, b)
    same = _compared(Typed("=", (), pa.bool_()), a, b).fill_null(False)
    return pc.or_(same, pc.and_(a.is_null(), b.is_null()))


def _extreme(node: Typed, *values: Values) -> Values:
    """The greatest or least value that is not null."""
    best, *others = _as_arrays(*values)
    less = Typed("<", (), pa.bool_())
    for other in others:
        better = _compared(less, best, other) if node.op == "greatest" else _compared(less, other, best)
        better = pc.or_(better.fill_null(False), best.is_null())
        best = pc.if_else(better, other, best)
    return best


def _is_in(node: Typed, value: pa.Array, *others: Values) -> Values:
    constants = [each[0] if isinstance(each, pa.Array) and len(each) else each for each in others]
    there = [each for each in constants if isinstance(each, pa.Scalar) and each.is_valid]
    found = pc.is_in(value, value_set=pa.array([each.as_py() for each in there], value.type))
    if pt.is_floating(value.type) and any(each.as_py() == 0 for each in there):
        found = pc.or_(found, pc.equal(value, pa.scalar(0.0, value.type)).fill_null(False))
    unknown = value.is_null()
    if len(there) < len(constants):
        unknown = pc.or_(unknown, pc.invert(found))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


# -- texts -----------------------------------------------------------------------------------------


def _of_ascii(kernel: Any, method: Callable[[str], str]) -> Any:
    """A kernel where all letters are ASCII, else Python's method, which knows letters that become two."""

    def function(node: Typed, a: pa.Array) -> Values:
        if pc.all(pc.string_is_ascii(a)).as_py() is not False:
            return kernel(a)
        found = a.dictionary_encode()
        words = pa.array([method(word) for word in found.dictionary.to_pylist()], TEXT)
        return words.take(found.indices)

    return function


def _text(value: Values) -> str:
    return str(value.as_py())


def _needled(kernel: Any) -> Any:
    def function(node: Typed, a: pa.Array, b: pa.Scalar) -> Values:
        return pa.nulls(len(a), pa.bool_()) if not b.is_valid else kernel(a, pattern=_text(b))

    return function


def _replaced(node: Typed, a: pa.Array, b: pa.Scalar, c: pa.Scalar) -> Values:
    if not (b.is_valid and c.is_valid):
        return pa.nulls(len(a), TEXT)
    return pc.replace_substring(a, pattern=_text(b), replacement=_text(c)) if _text(b) else a


def _part_of(node: Typed, a: pa.Array, *positions: pa.Scalar) -> Values:
    """As Spark's substring: positions count from 1, or from the end; what lies before the text counts, too."""
    if not all(each.is_valid for each in positions):
        return pa.nulls(len(a), TEXT)
    begin = positions[0].as_py()
    length = positions[1].as_py() if len(positions) > 1 else 2**31 - 1
    if node.op == "left":
        begin, length = 1, begin
    if node.op == "right":
        begin, length = -begin, max(begin, 0)
    if length <= 0:
        return pc.if_else(a.is_null(), pa.scalar(None, TEXT), pa.scalar("", TEXT))
    if begin >= 0:
        first = max(begin - 1, 0)
        return pc.utf8_slice_codeunits(a, start=first, stop=first + length)
    if node.op == "right" or begin + length >= 0:
        return pc.utf8_slice_codeunits(a, start=begin)
    # What begins before a short text loses what lies there.
    whole = pc.utf8_slice_codeunits(a, start=begin, stop=begin + length)
    short = pc.less(pc.utf8_length(a), -begin)
    if not pc.any(short).as_py():
        return whole
    cut = [
        None if text is None else text[max(0, len(text) + begin) : max(0, len(text) + begin + length)]
        for text in a.to_pylist()
    ]
    return pc.if_else(short, pa.array(cut, TEXT), whole)


def _joined(node: Typed, *texts: Values) -> Values:
    return pc.binary_join_element_wise(*texts, pa.scalar("", TEXT))


# -- dates and times -------------------------------------------------------------------------------


def _on_clock(values: pa.Array) -> pa.Array:
    """Times as clocks in their zone show them."""
    return pc.local_timestamp(values) if pt.is_timestamp(values.type) and values.type.tz else values


def _part(kernel: Any) -> Any:
    return lambda node, a: kernel(_on_clock(a)).cast(pa.int32())


def _truncated(node: Typed, a: pa.Array) -> Values:
    floored = pc.floor_temporal(_on_clock(a), unit=node.detail, week_starts_monday=True)
    floored = floored.cast(pa.timestamp(a.type.unit))
    instants = _in_zone(floored, node.type)
    if node.type.tz is None or node.detail not in ("day", "hour", "minute", "second"):
        return instants
    # As Spark does: what clocks show twice is the second time where the value is not before it.
    again = _in_zone(floored, node.type, ambiguous="latest")
    return pc.if_else(pc.less_equal(again, a), again, instants)


def _in_zone(values: pa.Array, type_: pa.DataType, *, ambiguous: str = "earliest") -> pa.Array:
    """Times of a clock as instants: one that comes twice is the first by default, one that is skipped comes when the clock goes on."""
    if type_.tz is None:
        return values.cast(type_)
    values = values.cast(pa.timestamp(type_.unit))
    return pc.assume_timezone(values, type_.tz, ambiguous=ambiguous, nonexistent="latest")


def _moved(node: Typed, a: Values, b: Values) -> Values:
    a, b = _as_arrays(a, b)
    days, more = a.cast(pa.int32()).cast(pa.int64()), b.cast(pa.int64())
    moved = pc.add(days, more) if node.op == "date_add" else pc.subtract(days, more)
    wrapped = moved.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    return pa.array(wrapped, pa.int32(), mask=~_valid(a, b)).cast(pa.date32())


def _days_between(node: Typed, a: Values, b: Values) -> Values:
    days = [each.cast(pa.int32()).cast(pa.int64()) for each in (a, b)]
    return pc.subtract(*days).cast(pa.int32(), safe=False)


def _since_epoch(node: Typed, a: pa.Array) -> Values:
    """Floored, as Spark does."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[a.type.unit]
    factor = SINCE_EPOCH[node.op]
    ticks = _numbers(a.cast(pa.int64()), len(a), np.int64)
    answer = ticks // (per_second // factor) if per_second >= factor else ticks * (factor // per_second)
    return pa.array(answer, pa.int64(), mask=~_valid(a))


def _from_epoch(node: Typed, a: pa.Array) -> tuple[Values, Bad]:
    factor = 1_000_000 // FROM_EPOCH[node.op]
    micros, bad = _arithmetic(Typed("*", (), pa.int64()), a, pa.scalar(factor, pa.int64()))
    return micros.cast(TIMESTAMP), bad


# -- casts -----------------------------------------------------------------------------------------


def _cast(node: Typed, a: pa.Array) -> tuple[Values, Bad]:
    one, other = a.type, node.type
    if pt.is_string(one):
        return _read_texts(a, other)
    if pt.is_decimal(other):
        source = a if pt.is_decimal(one) else a.cast(pa.int64()).cast(pa.decimal128(19, 0))
        return _fitted(_wide(source), other)
    if pt.is_decimal(one):
        return _from_decimal(a, other)
    if pt.is_floating(one) and pt.is_integer(other):
        return _float_to_integer(a, other)
    if pt.is_integer(one) and pt.is_integer(other):
        return _integer_to_integer(a, other)
    if pt.is_boolean(other):
        return pc.not_equal(a, pa.scalar(0, pa.int64()).cast(one)), None
    if pt.is_timestamp(one) and pt.is_timestamp(other):
        return _other_zone(a, other), None
    if pt.is_timestamp(one):
        return pc.floor_temporal(_on_clock(a), unit="day").cast(other), None
    if pt.is_timestamp(other):
        return _in_zone(a.cast(pa.timestamp(other.unit)), other), None
    return a.cast(other, safe=False), None


def _other_zone(a: pa.Array, other: pa.DataType) -> pa.Array:
    if (a.type.tz is None) == (other.tz is None):
        return a.cast(other, safe=False)
    if other.tz is None:
        return pc.local_timestamp(a).cast(other, safe=False)
    return _in_zone(a, other)


def _integer_to_integer(a: pa.Array, other: pa.DataType) -> tuple[Values, Bad]:
    try:
        return a.cast(other), None
    except pa.ArrowInvalid:
        x, edge = _numbers(a, len(a), np.int64), 2 ** (other.bit_width - 1)
        mask = (x < -edge) | (x >= edge)
        return without(a, mask).cast(other), _marked(mask, OVERFLOW)


def _float_to_integer(a: pa.Array, other: pa.DataType) -> tuple[Values, Bad]:
    x, there, width = _numbers(a, len(a), np.float64), _valid(a), other.bit_width
    edge = 2.0 ** (width - 1)
    highest = edge if width == 64 else edge - 1
    good = (np.floor(x) <= highest) & (np.ceil(x) >= -edge)
    answer = _saturated(np.trunc(np.where(good, x, 0.0)))
    return pa.array(answer, pa.int64(), mask=~(there & good)).cast(other), _marked(there & ~good, OVERFLOW)


def _from_decimal(a: pa.Array, other: pa.DataType) -> tuple[Values, Bad]:
    if pt.is_floating(other):
        return a.cast(TEXT).cast(pa.float64()).cast(other, safe=False), None
    whole = pc.trunc(a)
    edge = pa.scalar(2 ** (other.bit_width - 1), pa.decimal128(20, 0)).cast(
        pa.decimal256(20 + a.type.scale, a.type.scale)
    )
    wide = whole.cast(pa.decimal256(a.type.precision, a.type.scale))
    outside = pc.or_(pc.greater_equal(wide, edge), pc.less(wide, pc.negate(edge)))
    mask = outside.fill_null(False).to_numpy(zero_copy_only=False)
    whole = without(whole, mask).cast(pa.decimal128(38, 0), safe=False)
    return whole.cast(TEXT).cast(other), _marked(mask, OVERFLOW)


def _read_texts(a: pa.Array, other: pa.DataType) -> tuple[Values, Bad]:
    trimmed = pc.ascii_trim_whitespace(a)
    good = pc.match_substring_regex(trimmed, pattern=pattern_for(other)).fill_null(True)
    mask = ~good.to_numpy(zero_copy_only=False)
    found = without(trimmed, mask)
    if pt.is_boolean(other):
        lowered = pc.utf8_lower(found)
        yes = pc.is_in(lowered, value_set=pa.array(["t", "true", "y", "yes", "1"]))
        return pc.if_else(found.is_null(), pa.scalar(None, pa.bool_()), yes), _marked(mask, MISFIT)
    if not pt.is_temporal(other):
        found = pc.replace_substring_regex(found, pattern=r"^\+", replacement="")
    try:
        return _words_as(found, other), _marked(mask, MISFIT)
    except pa.ArrowInvalid:
        # Some of them look right and are not: too large, or on the 30th of February.
        words = found.dictionary_encode()
    known: list[Any] = []
    for word in words.dictionary:
        try:
            known.append(_words_as(pa.array([word.as_py()]), other)[0])
        except pa.ArrowInvalid:
            known.append(None)
    values = pa.array([None if each is None else each.as_py() for each in known], other)
    answer = values.take(words.indices)
    mask |= pc.and_(answer.is_null(), found.is_valid()).to_numpy(zero_copy_only=False)
    return answer, _marked(mask, MISFIT)


def _words_as(found: pa.Array, other: pa.DataType) -> pa.Array:
    if pt.is_decimal(other):
        wide = found.cast(pa.decimal256(76, 38)) if len(found) else pa.array([], pa.decimal256(76, 38))
        answer, wrong = _fitted(wide, other)
        if wrong is not None:
            raise pa.ArrowInvalid("too many digits")
        return answer
    if pt.is_timestamp(other) and other.tz is not None:
        return _in_zone(found.cast(pa.timestamp(other.unit)), other)
    return found.cast(other)


_FAILING: dict[str, Callable[..., tuple[Values, Bad]]] = {
    **dict.fromkeys(("floor", "ceil"), _to_whole),
    **dict.fromkeys(("+", "-", "*"), _arithmetic),
    **dict.fromkeys(("negative", "abs"), _negated),
    **dict.fromkeys(FROM_EPOCH, _from_epoch),
    "/": _divided,
    "div": _whole_division,
    "%": _remainder,
    "cast": _cast,
}
_PLAIN: dict[str, Callable[..., Values]] = {
    **dict.fromkeys(("=", "<", "<="), _compared),
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("substring", "left", "right"), _part_of),
    **dict.fromkeys(("date_add", "date_sub"), _moved),
    **dict.fromkeys(SINCE_EPOCH, _since_epoch),
    **{
        name: _part(getattr(pc, name))
        for name in ("year", "quarter", "month", "day", "hour", "minute", "second")
    },
    "dayofyear": _part(pc.day_of_year),
    "weekofyear": _part(pc.iso_week),
    "dayofweek": _part(lambda a: pc.day_of_week(a, count_from_zero=False, week_start=7)),
    "weekday": _part(lambda a: pc.day_of_week(a, count_from_zero=True, week_start=1)),
    "not": lambda node, a: pc.invert(a),
    "is null": lambda node, a: a.is_null(),
    "isnan": lambda node, a: pc.is_nan(a).fill_null(False),
    "<=>": _null_safe,
    "in": _is_in,
    "&": lambda node, a, b: pc.bit_wise_and(a, b),
    "|": lambda node, a, b: pc.bit_wise_or(a, b),
    "^": lambda node, a, b: pc.bit_wise_xor(a, b),
    "sqrt": lambda node, a: pc.sqrt(a),
    "exp": lambda node, a: pc.exp(a),
    "ln": _logarithm(np.log),
    "log10": _logarithm(np.log10),
    "log2": _logarithm(np.log2),
    "power": _power_of,
    "sign": _signed,
    "round": _rounded,
    "upper": _of_ascii(pc.ascii_upper, str.upper),
    "lower": _of_ascii(pc.ascii_lower, str.lower),
    "length": lambda node, a: pc.utf8_length(a),
    "trim": lambda node, a: pc.utf8_trim(a, characters=" "),
    "ltrim": lambda node, a: pc.utf8_ltrim(a, characters=" "),
    "rtrim": lambda node, a: pc.utf8_rtrim(a, characters=" "),
    "reverse": lambda node, a: pc.utf8_reverse(a),
    "concat": _joined,
    "replace": _replaced,
    "like": _needled(pc.match_like),
    "startswith": _needled(pc.starts_with),
    "endswith": _needled(pc.ends_with),
    "contains": _needled(pc.match_substring),
    "date_trunc": _truncated,
    "datediff": _days_between,
}
