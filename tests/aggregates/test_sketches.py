"""The sketches, compiled as the engine compiles them, against exact answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from types import FunctionType
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.aggregates import kll, tdigest
from windrow.aggregates.base import Aggregate, Bound, Sketch
from windrow.aggregates.bloom_filter import might_contain
from windrow.aggregates.hyperloglog import ApproxDistinct
from windrow.errors import QueryError

DTYPES = {"f": np.float64, "i": np.int64, "u1": np.uint8}
FLOAT, INTEGER = pa.float64(), pa.int64()
QS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
MANY = 200_000


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function and all that it calls, in nopython mode."""
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if isinstance(names.get(name), FunctionType):
            names[name] = compiled(names[name])
    code = FunctionType(function.__code__, names, function.__name__, None, function.__closure__)
    return numba.njit(error_model="numpy")(code)


@cache
def feeder(insert: Callable[..., Any]) -> Callable[..., Any]:
    inner = compiled(insert)

    @numba.njit(error_model="numpy")
    def feed(fields, xs):  # type: ignore[no-untyped-def]
        for x in xs:
            inner(*fields, x)

    return feed


class Cell:
    """One cell of the engine's state: rows of 2-D arrays, and `n` beside them."""

    def __init__(self, aggregate: Aggregate, xs: Any = (), type_: pa.DataType = FLOAT) -> None:
        self.type = type_
        self.bound = aggregate.bind((type_,))
        assert isinstance(self.bound.partial, Sketch)
        self.sketch = self.bound.partial
        made = (np.full((1, f.width or 1), f.identity, DTYPES[f.dtype]) for f in self.sketch.fields)
        self.fields = tuple(array[0] for array in made)
        self.n = 0
        self.insert(xs)

    def insert(self, xs: Any) -> Cell:
        codes = np.asarray(xs, np.int64 if self.bound.kinds[0] == "i" else np.float64)
        feeder(self.sketch.insert)(self.fields, codes)
        self.n += len(codes)
        return self

    def absorb(self, other: Cell) -> Cell:
        compiled(self.sketch.absorb)(*self.fields, *other.fields)
        self.n += other.n
        return self

    def result(self, aggregate: Aggregate | None = None) -> Any:
        bound: Bound = self.bound if aggregate is None else aggregate.bind((self.type,))
        assert bound.partial == self.sketch
        assert bound.build is not None
        if bound.lower is None:
            array = bound.build([field[None] for field in self.fields], np.array([self.n]), None)
        else:
            *values, defined = compiled(bound.lower)(*self.fields, self.n)
            array = bound.build([np.array([value]) for value in values], np.array([defined]), None)
        assert array.type == bound.type
        return array[0].as_py()

    def copy_of_state(self) -> list[np.ndarray]:
        return [field.copy() for field in self.fields]


SKETCHES: dict[str, Aggregate] = {
    "approx_distinct": wr.approx_distinct("x"),
    "kll_quantile": wr.kll_quantile("x", 0.5),
    "tdigest_quantile": wr.tdigest_quantile("x", 0.5),
    "moments": wr.moments("x"),
    "moments with logarithms": wr.moments("x", logs=True),
    "bloom_filter": wr.bloom_filter("x"),
    "histogram": wr.histogram("x", low=0, high=1, bins=10),
}


@pytest.fixture(params=SKETCHES)
def aggregate(request: pytest.FixtureRequest) -> Aggregate:
    return SKETCHES[request.param]


def data(name: str, n: int = MANY) -> np.ndarray:
    rng = np.random.default_rng(len(name))
    return {
        "uniform": lambda: rng.random(n),
        "normal": lambda: rng.normal(size=n),
        "heavy-tailed": lambda: rng.pareto(0.5, n),
        "lognormal": lambda: rng.lognormal(0.0, 3.0, n),
        "all equal": lambda: np.full(n, 3.3),
        "sorted": lambda: np.arange(n, dtype=np.float64),
        "reversed": lambda: np.arange(n, dtype=np.float64)[::-1],
        "zigzag": lambda: np.arange(n) * np.where(np.arange(n) % 2, 1.0, -1.0),
    }[name]()


DATA = ("uniform", "normal", "heavy-tailed", "lognormal", "all equal", "sorted", "reversed", "zigzag")


def rank_error(values: np.ndarray, answer: float, q: float) -> float:
    """How far the ranks that `answer` covers in sorted `values` are from the one asked for."""
    position = q * (len(values) - 1)
    low = np.searchsorted(values, answer, "left")
    high = np.searchsorted(values, answer, "right") - 1
    return float(max(0.0, low - position, position - high) / len(values))


class TestEverySketch:
    def test_an_empty_window_is_null_and_counts_none(self, aggregate: Aggregate) -> None:
        nothing = 0 if isinstance(aggregate, ApproxDistinct) else None
        assert Cell(aggregate).result() == nothing
        assert Cell(aggregate).absorb(Cell(aggregate)).result() == nothing

    @pytest.mark.parametrize("n", [1, 50, 5000])
    def test_an_empty_sketch_is_neutral_on_both_sides(self, aggregate: Aggregate, n: int) -> None:
        xs = data("normal", n)
        expected = Cell(aggregate, xs).result()
        assert Cell(aggregate, xs).absorb(Cell(aggregate)).result() == expected
        assert Cell(aggregate).absorb(Cell(aggregate, xs)).result() == expected

    @pytest.mark.parametrize("n", [0, 10, 5000])
    def test_absorb_and_lower_leave_what_they_read_as_it_was(self, aggregate: Aggregate, n: int) -> None:
        other = Cell(aggregate, data("normal", n))
        before = other.copy_of_state()
        Cell(aggregate, data("uniform", 3000)).absorb(other)
        Cell(aggregate).absorb(other)
        other.result()
        for old, new in zip(before, other.fields, strict=True):
            np.testing.assert_array_equal(old, new)

    def test_a_sketch_still_takes_values_after_a_merge(self, aggregate: Aggregate) -> None:
        cell = Cell(aggregate, data("normal", 1000)).absorb(Cell(aggregate, data("normal", 1000)))
        assert cell.insert(data("uniform", 1000)).n == 3000
        assert cell.result() is not None

    def test_the_same_order_gives_the_same_answer(self, aggregate: Aggregate) -> None:
        xs = data("heavy-tailed", 5000)
        assert Cell(aggregate, xs).result() == Cell(aggregate, xs).result()

    def test_nan_and_infinities_do_no_harm(self, aggregate: Aggregate) -> None:
        odd = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0]
        cell = Cell(aggregate, np.repeat(odd, 300))
        cell.absorb(Cell(aggregate, odd)).absorb(Cell(aggregate, data("normal", 3000)))
        assert cell.result() is not None

    def test_plain_python_and_compiled_code_agree(self, aggregate: Aggregate) -> None:
        xs = [*data("normal", 700).tolist(), math.nan, math.inf, 3.0, -0.0]
        one, two = Cell(aggregate, xs), Cell(aggregate)
        with np.errstate(all="ignore"):
            for x in xs:
                two.sketch.insert(*two.fields, x)
        for a, b in zip(one.fields, two.fields, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)

    def test_specs_and_partials_are_shared_values(self, aggregate: Aggregate) -> None:
        assert aggregate.bind((FLOAT,)).partial == aggregate.bind((FLOAT,)).partial
        assert hash(aggregate.bind((FLOAT,)).partial) == hash(aggregate.bind((FLOAT,)).partial)

    def test_text_is_refused(self, aggregate: Aggregate) -> None:
        for type_ in (pa.string(), pa.dictionary(pa.int32(), pa.string())):
            with pytest.raises(QueryError, match="column"):
                aggregate.bind((type_,))


def test_different_parameters_have_different_names() -> None:
    pairs: list[tuple[Aggregate, Aggregate]] = [
        (wr.approx_distinct("x"), wr.approx_distinct("x", precision=10)),
        (wr.kll_quantile("x", 0.5), wr.kll_quantile("x", 0.5, k=100)),
        (wr.tdigest_quantile("x", 0.5), wr.tdigest_quantile("x", 0.5, compression=50)),
        (wr.moments("x"), wr.moments("x", k=3)),
        (wr.moments("x"), wr.moments("x", logs=True)),
        (wr.bloom_filter("x"), wr.bloom_filter("x", error=0.1)),
        (wr.histogram("x", low=0, high=1, bins=2), wr.histogram("x", low=0, high=2, bins=2)),
    ]
    for a, b in pairs:
        assert a.bind((FLOAT,)).partial.name != b.bind((FLOAT,)).partial.name
        assert a.bind((FLOAT,)).partial != b.bind((FLOAT,)).partial


@pytest.mark.parametrize("make", [wr.kll_quantile, wr.tdigest_quantile])
def test_all_quantiles_of_a_column_share_one_sketch(make: Callable[..., Aggregate]) -> None:
    assert make("x", 0.5).bind((FLOAT,)).partial is make("x", 0.9).bind((FLOAT,)).partial


@pytest.mark.parametrize(
    "make",
    [
        lambda: wr.approx_distinct("x", precision=3),
        lambda: wr.approx_distinct("x", precision=19),
        lambda: wr.kll_quantile("x", 1.1),
        lambda: wr.kll_quantile("x", math.nan),
        lambda: wr.kll_quantile("x", 0.5, k=7),
        lambda: wr.tdigest_quantile("x", -0.1),
        lambda: wr.tdigest_quantile("x", 0.5, compression=True),
        lambda: wr.moments("x", k=0),
        lambda: wr.moments("x", k=17),
        lambda: wr.moments("x", logs=1),
        lambda: wr.bloom_filter("x", capacity=0),
        lambda: wr.bloom_filter("x", error=1.0),
        lambda: wr.histogram("x", low=1, high=1, bins=3),
        lambda: wr.histogram("x", low=0, high=math.inf, bins=3),
        lambda: wr.histogram("x", low=0, high=1, bins=0),
        lambda: wr.histogram("x", low=1, high=1 + 1e-15, bins=100),
    ],
)
def test_parameters_that_mean_nothing_are_refused(make: Callable[[], Aggregate]) -> None:
    with pytest.raises(QueryError):
        make()


class TestApproxDistinct:
    @pytest.mark.parametrize("n", [1, 10, 100, 1000, 3000, 5000, 10_000, 20_000, 100_000, 1_000_000])
    def test_the_standard_error_holds_at_every_size(self, n: int) -> None:
        rng = np.random.default_rng(n)
        errors = []
        for i in range(30):
            xs = np.arange(n) + i * 10**7 if i % 2 else rng.integers(-(2**63), 2**63 - 1, n)
            errors.append(Cell(wr.approx_distinct("x"), xs, INTEGER).result() / n - 1)
        standard = 1.04 / math.sqrt(4096)
        assert math.sqrt(np.mean(np.square(errors))) < 1.25 * standard
        assert np.max(np.abs(errors)) < max(4 * standard, 1.5 / n)
        assert abs(np.mean(errors)) < 4 * standard / math.sqrt(30)

    @pytest.mark.parametrize("precision", [4, 8, 14, 18])
    def test_every_precision_keeps_its_error(self, precision: int) -> None:
        aggregate = wr.approx_distinct("x", precision=precision)
        errors = [Cell(aggregate, data("normal") + i).result() / MANY - 1 for i in range(20)]
        assert math.sqrt(np.mean(np.square(errors))) < 1.5 * 1.04 / 2 ** (precision / 2)

    def test_repeats_do_not_count(self) -> None:
        assert Cell(wr.approx_distinct("x"), np.arange(100_000) % 7, INTEGER).result() == 7
        assert Cell(wr.approx_distinct("x"), data("all equal")).result() == 1

    def test_merging_many_equals_one(self) -> None:
        xs = data("normal")
        merged = Cell(wr.approx_distinct("x"))
        for part in np.array_split(xs, 300):
            merged.absorb(Cell(wr.approx_distinct("x"), part))
        np.testing.assert_array_equal(merged.fields[0], Cell(wr.approx_distinct("x"), xs).fields[0])

    def test_equal_numbers_are_one_value(self) -> None:
        other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
        xs = [math.nan, other_nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, 0.5]
        assert Cell(wr.approx_distinct("x"), xs).result() == 5

    def test_dates_booleans_and_decimals_are_counted_by_their_codes(self) -> None:
        for type_ in (pa.date32(), pa.bool_(), pa.decimal128(10, 2), pa.timestamp("us")):
            assert Cell(wr.approx_distinct("x"), [0, 1, 1, 0], type_).result() == 2

    def test_text_is_pointed_to_distinct(self) -> None:
        with pytest.raises(QueryError, match="use distinct"):
            wr.approx_distinct("x").bind((pa.string(),))


def quantiles(make: Callable[..., Aggregate], cell: Cell) -> list[float]:
    """The answers at all `QS`, by the function below `lower`, which need not be compiled for each."""
    select = compiled((kll if "KLL" in cell.sketch.name else tdigest).select)
    return [select(*cell.fields, cell.n, q) for q in QS]


def worst_error(make: Callable[..., Aggregate], cell: Cell, xs: np.ndarray) -> float:
    values = np.sort(xs)
    return max(rank_error(values, a, q) for a, q in zip(quantiles(make, cell), QS, strict=True))


BOUNDS = [
    pytest.param(wr.kll_quantile, 0.0165, id="kll"),
    pytest.param(wr.tdigest_quantile, 0.01, id="tdigest"),
]


@pytest.mark.parametrize(("make", "bound"), BOUNDS)
class TestQuantileSketches:
    @pytest.mark.parametrize("name", DATA)
    def test_the_error_in_rank_is_bounded(
        self, make: Callable[..., Aggregate], bound: float, name: str
    ) -> None:
        xs = data(name)
        assert worst_error(make, Cell(make("x", 0.5), xs), xs) < bound

    @pytest.mark.parametrize("name", DATA)
    @pytest.mark.parametrize("parts", [2, 40, 950, 3000])
    def test_merging_many_keeps_the_bound(
        self, make: Callable[..., Aggregate], bound: float, name: str, parts: int
    ) -> None:
        xs = data(name)
        merged = Cell(make("x", 0.5))
        for part in np.array_split(xs, parts):
            merged.absorb(Cell(make("x", 0.5), part))
        assert worst_error(make, merged, xs) < bound

    @pytest.mark.parametrize("size", [250, 1000, 10_000])
    def test_merging_in_a_tree_keeps_the_bound(
        self, make: Callable[..., Aggregate], bound: float, size: int
    ) -> None:
        xs = data("lognormal")
        cells = [Cell(make("x", 0.5), xs[i : i + size]) for i in range(0, MANY, size)]
        while len(cells) > 1:
            joined = [a.absorb(b) for a, b in zip(cells[::2], cells[1::2], strict=False)]
            cells = joined + cells[2 * len(joined) :]
        assert worst_error(make, cells[0], xs) < bound

    def test_the_same_sketch_merged_a_thousand_times_does_not_drift(
        self, make: Callable[..., Aggregate], bound: float
    ) -> None:
        xs = data("uniform", 10_000)
        one, merged = Cell(make("x", 0.5), xs), Cell(make("x", 0.5))
        for _ in range(1000):
            merged.absorb(one)
        assert worst_error(make, merged, xs) < bound

    def test_few_values_are_answered_exactly(self, make: Callable[..., Aggregate], bound: float) -> None:
        how: Any = "lower" if make is wr.kll_quantile else "linear"
        for n in (1, 2, 3, 10, 200):
            xs = data("normal", n)
            expected = [np.quantile(xs, q, method=how) for q in QS]
            split = Cell(make("x", 0.5), xs[: n // 2]).absorb(Cell(make("x", 0.5), xs[n // 2 :]))
            np.testing.assert_allclose(quantiles(make, Cell(make("x", 0.5), xs)), expected, rtol=1e-12)
            np.testing.assert_allclose(quantiles(make, split), expected, rtol=1e-12)

    def test_answers_rise_with_q_and_stay_within_the_values(
        self, make: Callable[..., Aggregate], bound: float
    ) -> None:
        xs = data("heavy-tailed", 5000)
        answers = quantiles(make, Cell(make("x", 0.5), xs))
        assert answers == sorted(answers)
        assert (answers[0], answers[-1]) == (xs.min(), xs.max())

    def test_nan_is_the_greatest_and_infinities_are_at_the_ends(
        self, make: Callable[..., Aggregate], bound: float
    ) -> None:
        xs = np.concatenate([np.full(2000, v) for v in (math.nan, math.inf, -math.inf)] + [np.arange(4000.0)])
        np.random.default_rng(1).shuffle(xs)
        merged = Cell(make("x", 0.5))
        for part in np.array_split(xs, 20):
            merged.absorb(Cell(make("x", 0.5), part))
        for cell in (Cell(make("x", 0.5), xs), merged):
            assert cell.result(make("x", 0.0)) == cell.result(make("x", 0.17)) == -math.inf
            assert abs(cell.result(make("x", 0.4)) - 2000) < 10_000 * bound
            assert cell.result(make("x", 0.7)) == math.inf
            assert math.isnan(cell.result(make("x", 0.83)))
            assert math.isnan(cell.result(make("x", 1.0)))

    def test_only_nan_is_nan(self, make: Callable[..., Aggregate], bound: float) -> None:
        assert math.isnan(Cell(make("x", 0.0), [math.nan] * 1000).result())

    def test_values_near_the_largest_float_do_not_overflow(
        self, make: Callable[..., Aggregate], bound: float
    ) -> None:
        xs = np.random.default_rng(2).choice([-1.7e308, 1.7e308], 3000)
        assert all(math.isfinite(a) for a in quantiles(make, Cell(make("x", 0.5), xs)))

    def test_integers_and_decimals_are_divided_by_their_scale(
        self, make: Callable[..., Aggregate], bound: float
    ) -> None:
        assert Cell(make("x", 0.5), [100, 250, 300], INTEGER).result() == 250.0
        assert Cell(make("x", 0.5), [100, 250, 300], pa.decimal128(9, 2)).result() == 2.5

    def test_dates_are_refused(self, make: Callable[..., Aggregate], bound: float) -> None:
        with pytest.raises(QueryError, match="numeric"):
            make("x", 0.5).bind((pa.date32(),))


@pytest.mark.parametrize("k", [8, 9, 33, 1000])
def test_kll_weights_always_add_up_to_the_number_of_values(k: int) -> None:
    aggregate = wr.kll_quantile("x", 0.5, k=k)
    cell = Cell(aggregate)
    rng = np.random.default_rng(k)
    for n in rng.integers(0, 5000, 40):
        cell.insert(rng.random(n // 2))
        cell.absorb(Cell(aggregate, rng.random(n)))
        items, sizes, state = cell.fields[:3]
        assert int(sizes @ (1 << np.arange(len(sizes)))) == cell.n
        assert sizes.sum() == state[0] <= state[2] <= len(items)


def test_kll_with_a_larger_k_is_closer() -> None:
    xs = data("normal")
    make = {k: (lambda c, q, k=k: wr.kll_quantile(c, q, k=k)) for k in (50, 2000)}
    errors = {k: worst_error(make[k], Cell(make[k]("x", 0.5), xs), xs) for k in make}
    assert errors[2000] < 0.0025 < errors[50] < 0.06


@pytest.mark.parametrize("name", ["uniform", "normal", "heavy-tailed", "lognormal"])
def test_tdigest_is_closest_at_the_ends(name: str) -> None:
    xs = data(name)
    values = np.sort(xs)
    cell = Cell(wr.tdigest_quantile("x", 0.5), xs)
    for q in (0.0001, 0.001, 0.999, 0.9999):
        assert rank_error(values, cell.result(wr.tdigest_quantile("x", q)), q) < 0.0015


@pytest.mark.parametrize("compression", [20, 100, 500])
def test_tdigest_weights_add_up_and_means_are_sorted(compression: int) -> None:
    aggregate = wr.tdigest_quantile("x", 0.5, compression=compression)
    cell = Cell(aggregate)
    rng = np.random.default_rng(compression)
    for n in rng.integers(0, 5000, 40):
        cell.insert(rng.normal(size=n // 2))
        cell.absorb(Cell(aggregate, rng.normal(size=n)))
        means, weights, _, state = cell.fields[:4]
        assert weights[: state[0]].sum() + state[1] == cell.n
        assert state[0] <= compression + 1
        assert (np.diff(means[: state[0]]) >= 0).all()


class TestMoments:
    @pytest.mark.parametrize("name", ["uniform", "normal", "sorted", "all equal"])
    def test_power_sums_are_those_of_fsum(self, name: str) -> None:
        xs = data(name, 5000)
        merged = Cell(wr.moments("x", k=6))
        for part in np.array_split(xs, 33):
            merged.absorb(Cell(wr.moments("x", k=6), part))
        sums = [math.fsum((xs**i).tolist()) for i in range(1, 7)]
        expected = [5000.0, xs.min(), xs.max(), *sums]
        for cell in (Cell(wr.moments("x", k=6), xs), merged):
            np.testing.assert_allclose(cell.result(), expected, rtol=1e-13, atol=1e-13)

    def test_sums_of_logarithms_follow_the_powers(self) -> None:
        xs = data("lognormal", 5000)
        aggregate = wr.moments("x", k=10, logs=True)
        merged = Cell(aggregate)
        for part in np.array_split(xs, 33):
            merged.absorb(Cell(aggregate, part))
        expected = [math.fsum((np.log(xs) ** i).tolist()) for i in range(1, 11)]
        for cell in (Cell(aggregate, xs), merged):
            result = cell.result()
            assert result[:13] == Cell(wr.moments("x"), xs).result() or cell is merged
            assert result[13] == 5000.0
            np.testing.assert_allclose(result[14:], expected, rtol=1e-12)

    def test_values_without_a_logarithm_are_counted_apart(self) -> None:
        xs = [math.e, 0.0, -0.0, -1.0, -math.inf, math.nan, 1.0]
        assert Cell(wr.moments("x", k=2, logs=True), xs).result()[5:] == [2.0, 1.0, 1.0]
        assert Cell(wr.moments("x", k=2, logs=True), [-1.0, 0.0]).result()[5:] == [0.0, 0.0, 0.0]
        assert Cell(wr.moments("x", k=2, logs=True), [math.inf, 2.0]).result()[5:] == [
            2.0,
            math.inf,
            math.inf,
        ]

    def test_decimals_are_divided_by_their_scale(self) -> None:
        codes = [150, -250, 300]
        assert Cell(wr.moments("x", k=2), codes, pa.decimal128(9, 2)).result() == [3.0, -2.5, 3.0, 2.0, 17.5]
        logs = Cell(wr.moments("x", k=1, logs=True), codes, pa.decimal128(9, 2)).result()[4:]
        assert logs == [2.0, pytest.approx(math.log(1.5) + math.log(3.0), rel=1e-15)]

    def test_nan_is_the_greatest_and_shows_in_the_sums(self) -> None:
        count, least, greatest, *sums = Cell(wr.moments("x", k=2), [1.0, math.nan, 2.0]).result()
        assert (count, least) == (3.0, 1.0)
        assert all(math.isnan(x) for x in (greatest, *sums))

    def test_an_infinity_is_an_infinite_sum(self) -> None:
        cell = Cell(wr.moments("x", k=2), [1.0, math.inf]).absorb(Cell(wr.moments("x", k=2), [2.0]))
        assert cell.result() == [3.0, 1.0, math.inf, math.inf, math.inf]

    def test_null_windows_stand_between_others(self) -> None:
        bound = wr.moments("x", k=1).bind((FLOAT,))
        assert bound.build is not None
        fields = [np.array([[v], [0.0], [w]]) for v, w in ((1, 2), (1, 2), (1, 2), (0, 0))]
        array = bound.build(fields, np.array([1, 0, 1]), None)
        assert array.to_pylist() == [[1.0, 1.0, 1.0, 1.0], None, [1.0, 2.0, 2.0, 2.0]]


class TestBloomFilter:
    @pytest.mark.parametrize("error", [0.2, 0.01, 0.0001])
    @pytest.mark.parametrize("capacity", [10, 1000])
    def test_no_false_no_and_few_false_yes(self, capacity: int, error: float) -> None:
        aggregate = wr.bloom_filter("x", capacity=capacity, error=error)
        asked, wrong = 0, 0
        for i in range(4000 // capacity if capacity < 1000 else 4):
            base = i * 10**6
            inside = range(base, base + capacity)
            bits = Cell(aggregate, inside, INTEGER).result()
            assert all(might_contain(bits, x) for x in inside)
            outside = range(base + capacity, base + capacity + (100 if capacity < 1000 else 5000))
            asked += len(outside)
            wrong += sum(might_contain(bits, x) for x in outside)
        assert wrong / asked < 1.3 * error + 3 * math.sqrt(error / asked)

    def test_merging_many_equals_one(self) -> None:
        xs = data("normal", 900)
        merged = Cell(wr.bloom_filter("x"))
        for part in np.array_split(xs, 30):
            merged.absorb(Cell(wr.bloom_filter("x"), part))
        assert merged.result() == Cell(wr.bloom_filter("x"), xs).result()

    def test_equal_numbers_are_one_value(self) -> None:
        bits = Cell(wr.bloom_filter("x"), [3.0, -0.0, math.nan, math.inf, 2.0**63, 0.1, -7.5]).result()
        for value in (3, 3.0, 0, 0.0, -0.0, math.nan, -math.nan, math.inf, 2**63, 2.0**63, 0.1, -7.5):
            assert might_contain(bits, value)
        for value in (4, -math.inf, 0.2, 10**400, -(10**400)):
            assert not might_contain(bits, value)

    def test_the_ends_of_int64_are_values_like_others(self) -> None:
        bits = Cell(wr.bloom_filter("x"), [2**63 - 1, -(2**63)], INTEGER).result()
        assert might_contain(bits, 2**63 - 1)
        assert might_contain(bits, -(2**63))
        assert not might_contain(bits, 2**63 - 2)

    def test_a_tenth_of_a_percent_more_bits_than_the_formula_is_all_it_takes(self) -> None:
        assert len(Cell(wr.bloom_filter("x"), [1.0]).result()) == 1 + math.ceil(9585.06 / 8)

    def test_decimals_and_dates_are_refused(self) -> None:
        for type_ in (pa.decimal128(9, 2), pa.date32(), pa.bool_()):
            with pytest.raises(QueryError, match="integers or floats"):
                wr.bloom_filter("x").bind((type_,))


class TestHistogram:
    @pytest.mark.parametrize(("low", "high", "bins"), [(0, 1, 10), (-0.3, 0.3, 6), (0, 0.7, 7), (-2, 5, 1)])
    def test_counts_are_those_of_the_edges(self, low: float, high: float, bins: int) -> None:
        edges = np.array([low + (high - low) * (i / bins) for i in range(bins)] + [high])
        near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
        xs = np.concatenate([near, data("normal", 5000), [math.inf, -math.inf]])
        expected = np.bincount(np.searchsorted(edges, xs, "right"), minlength=bins + 2)
        aggregate = wr.histogram("x", low=low, high=high, bins=bins)
        merged = Cell(aggregate, xs[:1234]).absorb(Cell(aggregate, xs[1234:]))
        assert Cell(aggregate, xs).result() == merged.result() == expected.tolist()

    def test_a_value_on_an_edge_begins_the_next_bin(self) -> None:
        aggregate = wr.histogram("x", low=0, high=3, bins=3)
        assert Cell(aggregate, [-1.0, 0.0, 1.0, 2.0, 2.5, 3.0]).result() == [1, 1, 1, 2, 1]

    def test_nan_is_in_the_last_count(self) -> None:
        aggregate = wr.histogram("x", low=0, high=1, bins=2)
        assert Cell(aggregate, [math.nan, 0.5, math.inf]).result() == [0, 0, 1, 2]

    def test_decimals_fall_where_their_numbers_do(self) -> None:
        type_ = pa.decimal128(9, 2)
        values = [Decimal("-0.01"), Decimal("0.00"), Decimal("0.10"), Decimal("0.29"), Decimal("0.30")]
        codes = [int(value * 100) for value in values]
        assert Cell(wr.histogram("x", low=0, high=0.3, bins=3), codes, type_).result() == [1, 1, 1, 1, 1]

    def test_integers_are_counted(self) -> None:
        aggregate = wr.histogram("x", low=0, high=100, bins=10)
        assert Cell(aggregate, range(-5, 105), INTEGER).result() == [5, *[10] * 10, 5]

    def test_null_windows_stand_between_others(self) -> None:
        bound = wr.histogram("x", low=0, high=1, bins=1).bind((FLOAT,))
        assert bound.build is not None
        array = bound.build([np.array([[1, 2, 3], [0, 0, 0], [4, 5, 6]])], np.array([6, 0, 15]), None)
        assert array.to_pylist() == [[1, 2, 3], None, [4, 5, 6]]
