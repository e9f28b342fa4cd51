"""Aggregate specs: one idea per file, each a frozen value that declares its algebra."""

from windrow.aggregates.argextremes import argmax, argmin
from windrow.aggregates.base import Aggregate, Algebra
from windrow.aggregates.bits import bit_and, bit_or, bit_xor
from windrow.aggregates.bloom_filter import bloom_filter
from windrow.aggregates.count import count
from windrow.aggregates.distinct import distinct
from windrow.aggregates.distinct_values import collect_distinct, sum_distinct
from windrow.aggregates.extremes import max_ as max
from windrow.aggregates.extremes import max_count, min_count
from windrow.aggregates.extremes import min_ as min
from windrow.aggregates.first_last import first, last
from windrow.aggregates.geometric_mean import geometric_mean
from windrow.aggregates.histogram import histogram
from windrow.aggregates.hyperloglog import approx_distinct
from windrow.aggregates.increase import increase
from windrow.aggregates.kll import kll_quantile
from windrow.aggregates.m4 import m4
from windrow.aggregates.mean import mean
from windrow.aggregates.mode import mode
from windrow.aggregates.moment_sketch import moments
from windrow.aggregates.pairs import correlation, covariance, slope
from windrow.aggregates.quantile import ith_smallest, median, quantile
from windrow.aggregates.regression import regression
from windrow.aggregates.sequences import collect, concat, ith_youngest
from windrow.aggregates.shape import kurtosis, skewness
from windrow.aggregates.sum import sum
from windrow.aggregates.tdigest import tdigest_quantile
from windrow.aggregates.top_k import top_k
from windrow.aggregates.truth import all_ as all
from windrow.aggregates.truth import any_ as any
from windrow.aggregates.user import aggregate
from windrow.aggregates.value_range import range_ as range
from windrow.aggregates.variance import stddev, variance
from windrow.aggregates.weighted_mean import weighted_mean

__all__ = [
    "Aggregate",
    "Algebra",
    "aggregate",
    "all",
    "any",
    "approx_distinct",
    "argmax",
    "argmin",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bloom_filter",
    "collect",
    "collect_distinct",
    "concat",
    "correlation",
    "count",
    "covariance",
    "distinct",
    "first",
    "geometric_mean",
    "histogram",
    "increase",
    "ith_smallest",
    "ith_youngest",
    "kll_quantile",
    "kurtosis",
    "last",
    "m4",
    "max",
    "max_count",
    "mean",
    "median",
    "min",
    "min_count",
    "mode",
    "moments",
    "quantile",
    "range",
    "regression",
    "skewness",
    "slope",
    "stddev",
    "sum",
    "sum_distinct",
    "tdigest_quantile",
    "top_k",
    "variance",
    "weighted_mean",
]
