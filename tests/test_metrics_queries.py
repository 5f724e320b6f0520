"""Metrics with query ids: the mean over the queries, however they lie in the rows."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ranking_metrics import RANKERS, REFERENCES, RTOL, WEIGHTED, every_name, tied_columns
from sklearn.metrics import average_precision_score, roc_auc_score

from jaxsolvers import metrics
from jaxsolvers.metrics.per_ranker import each_ranker


def scattered_queries(n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Queries of all sizes, in no order, some without positives, some of one class."""
    rng = np.random.default_rng(0)
    targets, scores = tied_columns(n, 3, 5)
    ids = rng.choice([7, -3, 2**40, 11, 5, 6], n, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    ids[:2] = 99, 98  # queries of one row
    targets[ids == 11, 1] = False
    targets[ids == 5, 2] = True
    weights = rng.exponential(size=n) * (rng.random(n) < 0.8) * (ids != 6)
    return targets, scores, ids, weights


def mean_of_references(name, targets, scores, ids, weights):
    """Per ranker: the mean of the defined values, and how many there are not."""
    kept = np.ones(len(ids), bool) if weights is None else weights > 0
    values = np.array(
        [
            [
                REFERENCES[name](t[rows], s[rows], None if weights is None else weights[rows])
                for t, s in zip(targets.T, scores.T, strict=True)
            ]
            for rows in (kept & (ids == one) for one in np.unique(ids[kept]))
        ]
    )
    missing = np.isnan(values).reshape(len(values), 3, -1).all(axis=2).sum()
    return np.nanmean(values, axis=0).T, missing


@every_name
@pytest.mark.parametrize("weighting", ["none", "zeros"])
def test_the_value_is_the_mean_over_the_queries_where_it_is_defined(name, weighting):
    targets, scores, ids, weights = scattered_queries()
    weights = {"none": None, "zeros": weights}[weighting]
    if weights is not None and name not in WEIGHTED:
        weights = np.where(weights > 0, 0.3, 0.0)
    expected, missing = mean_of_references(name, targets, scores, ids, weights)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = RANKERS[name](targets, scores, sample_weight=weights, groups=ids)
    np.testing.assert_allclose(found, expected, rtol=RTOL)
    if name == "precision":
        assert not caught
    else:
        queries = np.unique(ids if weights is None else ids[weights > 0]).size
        text = f"skipped {missing} of {3 * queries} queries ({queries} for each of 3 rankers)"
        assert missing and len(caught) == 1 and text in str(caught[0].message)


@every_name
def test_groups_equal_a_loop_over_queries(name):
    targets, scores = tied_columns(40, 3, 4)
    targets.reshape(4, 10, 3)[:, :2] = [[True], [False]]
    alone = [RANKERS[name](targets[at : at + 10], scores[at : at + 10]) for at in range(0, 40, 10)]
    order = np.random.default_rng(0).permutation(40)
    found = RANKERS[name](targets[order], scores[order], groups=(np.arange(40) // 10)[order])
    np.testing.assert_allclose(found, np.mean(alone, axis=0), rtol=RTOL)


@every_name
def test_row_order_and_names_of_queries_change_no_bit(name):
    targets, scores, ids, _ = scattered_queries()
    targets[:4] = [[True], [True], [False], [False]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = np.asarray(RANKERS[name](targets, scores, groups=ids))
        order = np.random.default_rng(3).permutation(len(ids))
        found = RANKERS[name](targets[order], scores[order], groups=ids[order])
        np.testing.assert_array_equal(found, value)
        names = np.array(["a", "bb", "c", "d", "e", "f", "g", "h"])  # in the order of the ids
        named = names[np.unique(ids, return_inverse=True)[1]]
        for given in (named, named.tolist(), named.astype(object)):
            np.testing.assert_array_equal(RANKERS[name](targets, scores, groups=given), value)
        np.testing.assert_allclose(RANKERS[name](targets, scores, groups=-ids), value, rtol=RTOL)


@every_name
def test_one_query_is_no_groups(name):
    targets, scores = tied_columns(40, 3, 4)
    found = RANKERS[name](targets, scores, groups=np.full(40, 3))
    np.testing.assert_allclose(found, RANKERS[name](targets, scores), rtol=RTOL)


@every_name
def test_jit_and_vmap_of_groups_equal_eager(name):
    targets, scores, ids, _ = scattered_queries()
    ids = np.where(ids > 2**31, 4, ids).astype(np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = RANKERS[name](targets, scores, groups=ids)

    def traced(targets, scores, ids):
        return RANKERS[name](targets, scores, groups=ids)

    mapped = jax.jit(jax.vmap(traced, in_axes=(1, 1, None), out_axes=-1))
    np.testing.assert_allclose(mapped(targets, scores, ids), value, rtol=1e-6)


def test_query_ids_need_not_be_contiguous_case_166():
    targets, scores, ids = [1, 0, 0, 1], [0.9, 0.1, 0.2, 0.8], [1, 2, 1, 2]
    for name, metric in RANKERS.items():
        perfect = metric(targets, scores, groups=ids)
        expected = [0.2, 1.0, 1 / 99] if name == "precision" else np.ones(np.shape(perfect))
        np.testing.assert_allclose(perfect, expected, rtol=RTOL)
    # Query 1 holds rows 0 and 2, query 2 rows 1 and 3: four queries could only give 1 or NaN.
    found = metrics.ndcg_at_k(targets, [0.9, 0.8, 0.2, 0.1], groups=ids)
    np.testing.assert_allclose(found, (1 + 1 / np.log2(3)) / 2, rtol=RTOL)


@pytest.mark.parametrize("factor", [1e-7, 1e-60, 1e60])
def test_a_large_query_does_not_blur_a_small_one(factor):
    rng = np.random.default_rng(0)
    n = 20_000
    targets, scores = rng.random(n) < 0.5, rng.integers(0, 50, n).astype(np.int32)
    small, weights = np.arange(n) >= n - 20, rng.exponential(size=n)
    weights[small] *= factor
    for name, reference in (("step", average_precision_score), ("auc", roc_auc_score)):
        expected = [
            reference(targets[rows], scores[rows], sample_weight=weights[rows])
            for rows in (small, ~small)
        ]
        found = RANKERS[name](targets, scores, sample_weight=weights, groups=small)
        np.testing.assert_allclose(found, np.mean(expected), rtol=RTOL)


def test_weights_of_any_size_count_a_query_alike_inside_jit_too():
    weights = np.ldexp(np.float32([1, 3, 1, 3]), [100, 100, -100, -100])
    targets, scores, ids = [1, 0, 0, 1], np.int32([1, 2, 2, 1]), jnp.array([4, 4, 3, 3])

    def value(ids, weights):
        return metrics.average_precision(targets, scores, sample_weight=weights, groups=ids)

    for found in (
        value(ids, weights),
        value(ids, jnp.asarray(weights)),
        jax.jit(value)(ids, weights),
        jax.jit(lambda ids: value(ids, weights.astype(float)))(ids),
        jax.jit(lambda weights: value(ids, weights))(weights),
    ):
        np.testing.assert_allclose(found, (1 / 4 + 3 / 4) / 2, rtol=RTOL)


def test_ten_thousand_queries_make_no_program_of_their_own():
    rng = np.random.default_rng(0)
    n = 20_000
    targets, scores = np.arange(n) % 2 == 0, rng.random(n).astype(np.float32)
    found = metrics.roc_auc(targets, scores, groups=np.arange(n) // 2)
    np.testing.assert_allclose(found, np.mean(scores[::2] > scores[1::2]), rtol=RTOL)
    compiled = each_ranker._cache_size()
    metrics.roc_auc(targets, scores, groups=np.minimum(np.arange(n) // 2, 3))
    assert each_ranker._cache_size() == compiled


def test_memory_grows_with_the_rows_not_with_the_widest_query():
    def temporary(n: int) -> int:
        shared = (jnp.zeros(n, jnp.int32), jnp.ones(n))
        columns = (jnp.zeros((n, 1), bool), jnp.zeros((n, 1), jnp.float32))
        metric = metrics.ranking._mean_step_ap
        program = each_ranker.lower(metric, jnp.ones(1, bool), columns, shared).compile()
        return program.memory_analysis().temp_size_in_bytes

    assert temporary(8192) < 8192 * 200


def test_a_ranker_whose_queries_are_all_undefined_is_nan_and_counted():
    targets = np.array([[1, 0], [0, 0], [0, 0]])
    with pytest.warns(UserWarning, match="skipped 3 of 4 queries") as caught:
        value = metrics.recall_at_k(targets, np.eye(3)[:, :2], 1, groups=[0, 0, 1])
    np.testing.assert_array_equal(value, [1.0, np.nan])
    message = str(caught[0].message)
    assert "(2 for each of 2 rankers), which have no positive row" in message
    assert "1 of 2 rankers have none left, their value is NaN" in message


def test_a_query_of_dropped_rows_is_dropped_with_them():
    found = metrics.precision_at_k(
        [0, 1, 1, 0], [4, 3, 2, 1], 1, groups=[0, 0, 1, 1], sample_weight=[0, 0, 2, 2]
    )
    assert found == 1.0
    found = metrics.precision_at_k([1, 0, 0, 0], [4, 3, 2, 1], 1, groups=[0, 0, 1, 1])
    assert found == 0.5  # without positives, but with rows: 0


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([1, 2], ["(3,)", "(2,)"]),
        ([[1], [2], [3]], ["(3,)", "(3, 1)"]),
        (3, ["(3,)", "()"]),
        ([1.0, np.nan, 2.0], ["NaN"]),
        ([1, None, 2], ["sorted"]),
        ([[1], [2, 3], [4]], ["array"]),
    ],
)
def test_bad_groups_are_refused_by_name(groups, words):
    for metric in RANKERS.values():
        with pytest.raises(ValueError) as error:
            metric([1, 0, 1], [3, 2, 1], groups=groups)
        assert all(word in str(error.value) for word in ["groups", *words]), str(error.value)


def test_float_groups_are_refused_inside_jit():
    with pytest.raises(ValueError, match=r"groups must be integers inside jax\.jit"):
        jax.jit(lambda ids: metrics.roc_auc([1, 0], [2, 1], groups=ids))(jnp.array([0.0, 1.0]))
