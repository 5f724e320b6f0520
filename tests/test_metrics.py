"""Tests of jaxsolvers.metrics against scikit-learn, enumeration of all orders, and closed forms."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ranking_metrics import (
    GRADED,
    RANKERS,
    REFERENCES,
    RTOL,
    WEIGHTED,
    WEIGHTINGS,
    enumerated,
    every_name,
    every_ranker,
    row_weights,
    tied_columns,
)
from sklearn.metrics import average_precision_score, zero_one_loss

from jaxsolvers import metrics
from jaxsolvers.metrics.per_ranker import each_ranker


def ap_of_ranked(ranked) -> float:
    hits = np.cumsum(ranked)
    return float(np.mean([hits[i] / (i + 1) for i, hit in enumerate(ranked) if hit]))


# Values ------------------------------------------------------------------------------------------


@every_name
@pytest.mark.parametrize("levels", [1, 4, 1000])
def test_every_ranking_metric_equals_its_definition(name, levels):
    targets, scores = tied_columns(30, 3, levels)
    weights = np.random.default_rng(1).exponential(size=30) if name in WEIGHTED else None
    expected = [REFERENCES[name](t, s, weights) for t, s in zip(targets.T, scores.T, strict=True)]
    found = RANKERS[name](targets, scores, sample_weight=weights)
    np.testing.assert_allclose(found, np.transpose(expected), rtol=RTOL, atol=RTOL)


@every_name
def test_infinite_scores_rank_as_the_highest_and_the_lowest(name):
    targets, scores = tied_columns(30, 3, 4)
    assert (abs(scores) == 2).any(axis=0).all()
    infinite = scores.astype(np.float32)
    infinite[scores == 2], infinite[scores == -2] = np.inf, -np.inf
    np.testing.assert_array_equal(RANKERS[name](targets, infinite), RANKERS[name](targets, scores))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("levels", [1, 4, 1000])
def test_step_average_precision_equals_scikit_learn(levels, weighting):
    targets, scores = tied_columns(400, 5, levels)
    weights = row_weights(weighting)
    expected = [
        average_precision_score(t, s, sample_weight=weights)
        for t, s in zip(targets.T, scores.T, strict=True)
    ]
    found = metrics.average_precision(targets, scores, sample_weight=weights)
    np.testing.assert_allclose(found, expected, rtol=RTOL)


@pytest.mark.parametrize("seed", range(8))
def test_expected_average_precision_is_the_mean_over_all_orders(seed):
    rng = np.random.default_rng(seed)
    n = (6, 1)[seed % 2]
    targets, scores = rng.random(n) < 0.5, rng.integers(0, 3, n)
    targets[rng.integers(n)] = True
    found = metrics.average_precision(targets, scores, ties="expected")
    np.testing.assert_allclose(found, enumerated(targets, scores, ap_of_ranked), rtol=RTOL)


@pytest.mark.parametrize("seed", range(6))
def test_precision_at_k_is_the_mean_over_all_orders_and_divides_by_k(seed):
    rng = np.random.default_rng(seed)
    n = (6, 1)[seed % 2]
    targets, scores = rng.random(n) < 0.5, rng.integers(0, 3, n)
    targets[rng.integers(n)] = True
    ks = list(range(1, n + 3))
    expected = [enumerated(targets, scores, lambda r, k=k: sum(r[:k]) / k) for k in ks]
    found = metrics.precision_at_k(targets, scores, ks)
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("size", [2, 50, 10_000])
def test_expected_average_precision_does_not_cancel_at_late_ranks(size):
    # The closed form with harmonic numbers, in float64: positives come late, in tied groups.
    n = 20_000
    rng = np.random.default_rng(size)
    scores = np.arange(n, 0, -1, dtype=np.int32) // size
    targets = (np.arange(n) > n - 500) & (rng.random(n) < 0.7)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n + 1))])
    total = 0.0
    for score in np.unique(scores[targets]):
        rows = scores == score
        a, rows_in, p = (scores > score).sum(), rows.sum(), targets[rows].sum()
        above = targets[scores > score].sum()
        rho = (p - 1) / (rows_in - 1) if rows_in > 1 else 0.0
        part = (above + 1 - rho * (a + 1)) * (harmonic[a + rows_in] - harmonic[a]) + rho * rows_in
        total += p / rows_in * part
    found = metrics.average_precision(targets, scores, ties="expected")
    np.testing.assert_allclose(found, total / targets.sum(), rtol=max(RTOL, 1e-10))


def test_a_million_rows_with_three_scores_sum_without_drift():
    rng = np.random.default_rng(0)
    targets, scores = rng.random(10**6) < 0.01, rng.integers(0, 3, 10**6).astype(np.int32)
    found = metrics.average_precision(targets, scores)
    expected = average_precision_score(targets, scores)
    np.testing.assert_allclose(found, expected, rtol=min(RTOL * 0.1, 1e-6))


def test_without_ties_step_and_expected_agree_and_a_perfect_ranking_is_exactly_one():
    rng = np.random.default_rng(0)
    targets, scores = tied_columns(30, 3, 4)
    scores = rng.permuted(np.repeat(np.arange(30, dtype=np.int32)[:, None], 3, 1), axis=0)
    step = metrics.average_precision(targets, scores)
    expected = metrics.average_precision(targets, scores, ties="expected")
    np.testing.assert_allclose(expected, step, rtol=RTOL)
    weights = rng.exponential(size=30)
    for kw in ({}, {"ties": "expected"}, {"sample_weight": weights}):
        perfect = metrics.average_precision(targets, scores + 30 * targets, **kw)
        np.testing.assert_array_equal(perfect, [1.0, 1.0, 1.0])
    for perfect in (
        metrics.roc_auc(targets, scores + 30 * targets),
        metrics.roc_auc(targets, scores + 30 * targets, sample_weight=weights),
        metrics.ndcg_at_k(targets, scores + 30 * targets),
        metrics.recall_at_k(targets, scores + 30 * targets, 30),
    ):
        np.testing.assert_array_equal(perfect, [1.0, 1.0, 1.0])


@every_ranker
def test_weight_zero_drops_the_row_and_a_common_factor_does_nothing(metric):
    targets, scores = tied_columns(30, 3, 4)
    kept = np.isin(np.arange(30) % 5, [0, 2, 3])
    targets[0] = True
    dropped = metric(targets[kept], scores[kept])
    found = metric(targets, scores, sample_weight=3.7 * kept)
    np.testing.assert_allclose(found, dropped, rtol=RTOL)


@every_ranker
def test_permuting_rows_changes_no_bit_and_permuting_columns_permutes(metric):
    targets, scores = tied_columns(30, 3, 4)
    value = np.asarray(metric(targets, scores))
    rows, columns = np.random.default_rng(3).permutation(30), np.array([2, 0, 1])
    np.testing.assert_array_equal(metric(targets[rows], scores[rows]), value)
    permuted = metric(targets[:, columns], scores[:, columns])
    np.testing.assert_array_equal(permuted, value[..., columns])


def test_a_row_of_weight_two_is_a_repeated_row_and_weights_follow_their_rows():
    targets, scores = tied_columns(30, 3, 4)
    rng = np.random.default_rng(4)
    weights, rows = rng.integers(1, 4, 30), rng.permutation(30)
    weighted = metrics.average_precision(targets, scores, sample_weight=weights)
    repeated = np.repeat(np.arange(30), weights)
    found = metrics.average_precision(targets[repeated], scores[repeated])
    np.testing.assert_allclose(weighted, found, rtol=RTOL)
    found = metrics.average_precision(targets[rows], scores[rows], sample_weight=weights[rows])
    np.testing.assert_array_equal(found, weighted)


@every_ranker
def test_one_column_alone_equals_the_same_column_among_others(metric):
    targets, scores = tied_columns(30, 3, 4)
    together = np.asarray(metric(targets, scores))
    for column in range(3):
        alone = metric(targets[:, column], scores[:, column])
        assert alone.shape == together.shape[:-1]
        np.testing.assert_allclose(alone, together[..., column], rtol=RTOL)


@every_name
def test_codings_dtypes_and_the_default_float(name):
    metric = RANKERS[name]
    targets, scores = tied_columns(30, 3, 4)
    value = metric(targets, scores)
    assert isinstance(value, jax.Array) and value.dtype == jnp.result_type(float)
    codings = [
        targets.astype(int),
        targets.astype(np.uint8),
        jnp.asarray(targets, jnp.bfloat16),
        targets.tolist(),
        targets.astype(object),
    ]
    mixed = np.stack([targets[:, 0], 2 * targets[:, 1] - 1.0, targets[:, 2]], axis=1)
    signed = [np.where(targets, 1.0, -1.0), jnp.where(targets, 1, -1), mixed]
    for coded in codings if name in GRADED else codings + signed:
        np.testing.assert_array_equal(metric(coded, scores), value)


def test_scores_of_any_real_dtype_rank_alike():
    targets, scores = tied_columns(30, 3, 4)
    value = metrics.average_precision(targets, scores)
    for dtype in (np.float64, jnp.bfloat16, np.dtype(">f4"), np.longdouble):
        found = metrics.average_precision(targets, scores.astype(dtype))
        np.testing.assert_array_equal(found, value)
    value = metrics.average_precision(targets, np.int32(scores > 0))
    np.testing.assert_array_equal(metrics.average_precision(targets, scores > 0), value)


@pytest.mark.parametrize(
    "low_to_high",
    [
        np.array([1.0, 1.0 + 1e-12]),  # equal in float32
        np.array([2**53, 2**53 + 1]),  # equal in float64, beyond int32
        np.array([np.iinfo(np.int32).min, np.iinfo(np.int32).max], np.int32),
        np.array([0, 2**32 - 1], np.uint32),
        np.array([1e-45, 3e-45], np.float32),  # denormals, which XLA flushes to zero
        np.array([-3e-45, -1e-45], np.float32),
        np.array([-1e30, -1e-30], np.float32),
        np.array([-np.inf, np.finfo(np.float32).min], np.float32),
    ],
)
def test_scores_that_differ_are_never_tied(low_to_high):
    assert metrics.average_precision([False, True], low_to_high) == 1.0
    assert metrics.average_precision([True, False], low_to_high) == 0.5


def test_zero_and_minus_zero_are_tied():
    scores = np.array([0.0, -0.0], np.float32)
    assert metrics.average_precision([1, 0], scores) == 0.5
    assert metrics.average_precision([1, 0], scores, ties="expected") == 0.75


# Transformations ---------------------------------------------------------------------------------


@every_ranker
def test_jit_and_vmap_equal_eager(metric):
    targets, scores = tied_columns(30, 3, 4)
    weights = np.where(np.arange(30) < 20, 2.0, 0.0).astype(np.float32)
    targets[0] = True
    value = np.asarray(metric(targets, scores, sample_weight=weights))

    def traced(targets, scores, weights):
        return metric(targets, scores, sample_weight=weights)

    known_targets = jax.jit(lambda scores, weights: traced(targets, scores, weights))
    np.testing.assert_allclose(known_targets(scores, weights), value, rtol=1e-6)
    one_by_one = jax.vmap(traced, in_axes=(1, 1, None), out_axes=-1)(targets, scores, weights)
    np.testing.assert_allclose(one_by_one, value, rtol=1e-6)


@every_name
def test_what_is_refused_or_undefined_is_nan_for_that_ranker_inside_jit(name):
    metric = RANKERS[name]
    targets = np.array([[1, 0, 1, 1], [0, 0, -2, 0]])
    scores = np.array([[1.0, 2.0, 3.0, np.nan], [0.0, 1.0, 2.0, 3.0]], np.float32)

    @jax.jit
    def undefined(weights):
        value = metric(jnp.asarray(targets), jnp.asarray(scores), sample_weight=weights)
        return jnp.isnan(value).reshape(-1, 4)[0]

    def expected(*columns):
        return np.array(columns, bool)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = undefined(np.float32([1.0, 1.0]))
    no_positives = name != "precision"  # precision at k is 0 there
    np.testing.assert_array_equal(first, expected(0, no_positives, 1, 1))
    for weights in ([1.0, -1.0], [0.0, 0.0], [1.0, np.nan], [1.0, np.inf]):
        np.testing.assert_array_equal(undefined(np.float32(weights)), expected(1, 1, 1, 1))
    unequal_refused = name not in WEIGHTED
    found = undefined(np.float32([1.0, 2.0]))
    second = no_positives or unequal_refused
    np.testing.assert_array_equal(found, expected(unequal_refused, second, 1, 1))


def test_new_values_and_new_cutoffs_do_not_compile_again():
    targets, scores = tied_columns(30, 3, 4)
    metrics.precision_at_k(targets, scores, 3)
    metrics.average_precision(targets, scores)
    compiled = each_ranker._cache_size()
    metrics.precision_at_k(targets.astype(int), scores + 1, 7)
    metrics.average_precision(np.where(targets, 1.0, -1.0), -scores)
    assert each_ranker._cache_size() == compiled


# Error rate --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [int, float, str, object])
def test_error_rate_equals_scikit_learn(kind, weighted):
    rng = np.random.default_rng(5)
    targets, guesses = rng.integers(0, 3, (2, 200, 4)).astype(str).astype(kind)
    weights = rng.exponential(size=200) * (rng.random(200) < 0.7) if weighted else None
    expected = [
        zero_one_loss(t.astype(str), g.astype(str), sample_weight=weights)
        for t, g in zip(targets.T, guesses.T, strict=True)
    ]
    found = metrics.error_rate(targets, guesses, sample_weight=weights)
    assert found.dtype == jnp.result_type(float) and found.shape == (4,)
    np.testing.assert_allclose(found, expected, rtol=RTOL)
    alone = metrics.error_rate(targets[:, 0], guesses[:, 0], sample_weight=weights)
    assert alone.shape == ()
    np.testing.assert_allclose(alone, expected[0], rtol=RTOL)


def test_error_rate_compares_across_dtypes_and_inside_jit():
    targets, guesses = np.array([1, 0, 1, 1]), np.array([1.0, 1.0, 0.0, 1.0], np.float32)
    assert metrics.error_rate(targets, guesses) == 0.5
    assert metrics.error_rate(jnp.array(targets), guesses > 0) == 0.5
    assert metrics.error_rate(jnp.array(targets), jnp.array(guesses)) == 0.5
    assert jax.jit(metrics.error_rate)(targets, guesses) == 0.5
    assert jax.vmap(metrics.error_rate)(targets[None], guesses[None]).shape == (1,)
    assert metrics.error_rate([2**40, 1], [2**40 + 2**32, 1]) == 0.5
    assert metrics.error_rate(jnp.array([0, 1]), np.array([2**32, 1])) == 0.5
    assert metrics.error_rate([1.0, np.nan], [1.0, np.nan]) == 0.5
    assert np.isnan(jax.jit(metrics.error_rate)(jnp.array([1, -1]), jnp.array([True, False])))


@pytest.mark.parametrize(
    ("targets", "guesses", "weights", "words"),
    [
        ([1, 2], [1, 2, 3], None, ["targets (2,)", "predictions (3,)"]),
        ([[1], [2]], [1, 2], None, ["targets (2, 1)", "predictions (2,)"]),
        ([], [], None, ["targets (0,)"]),
        (["1", "2"], [1, 2], None, ["targets", "predictions", "int64"]),
        ([-1, 1], [False, True], None, ["targets", "predictions", "bool", "-1"]),
        ([1, 2], [1, 2], [-1, 1], ["sample_weight", "-1"]),
        ([1, 2], [1, 2], [0, 0], ["sample_weight", "zero"]),
        ([1, 2], [1, 2], [1, 1, 1], ["sample_weight", "(2,)", "(3,)"]),
    ],
)
def test_error_rate_refuses(targets, guesses, weights, words):
    with pytest.raises(ValueError) as error:
        metrics.error_rate(targets, guesses, sample_weight=weights)
    assert all(word in str(error.value) for word in words), str(error.value)
