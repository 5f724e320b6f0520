"""Precision, recall and nDCG of the top k: enumeration of orders, scikit-learn, conventions."""

import numpy as np
import pytest
from ranking_metrics import RTOL, enumerated
from sklearn.metrics import ndcg_score

from jaxsolvers import metrics

KS = list(range(1, 9))


def dcg_of_ranked(ranked, k) -> float:
    return sum(gain / np.log2(2 + i) for i, gain in enumerate(ranked[:k]))


def of_ranked(name: str, targets, k: int):
    """The metric of targets that lie in ranked order without ties."""
    best = dcg_of_ranked(sorted(targets, reverse=True), k)
    return {
        "precision": lambda ranked: sum(ranked[:k]) / k,
        "recall": lambda ranked: sum(ranked[:k]) / sum(targets),
        "ndcg": lambda ranked: dcg_of_ranked(ranked, k) / best,
    }[name]


@pytest.mark.parametrize("name", ["precision", "recall", "ndcg"])
@pytest.mark.parametrize("seed", range(6))
def test_ties_are_averaged_over_all_orders(name, seed):
    rng = np.random.default_rng(seed)
    n = (6, 1)[seed % 2]
    targets, scores = rng.integers(0, 4 if name == "ndcg" else 2, n), rng.integers(0, 3, n)
    targets[rng.integers(n)] = 1
    expected = [enumerated(targets, scores, of_ranked(name, targets, k)) for k in KS]
    found = getattr(metrics, f"{name}_at_k")(targets, scores, KS)
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("levels", [2, 10, 1000])
def test_ndcg_equals_scikit_learn(levels):
    rng = np.random.default_rng(levels)
    relevance = rng.exponential(size=(200, 4)) * (rng.random((200, 4)) < 0.4)
    scores = rng.integers(0, levels, (200, 4))
    ks = [1, 7, 200, 10**12]
    expected = [
        [ndcg_score(t[None], s[None], k=k) for t, s in zip(relevance.T, scores.T, strict=True)]
        for k in ks
    ]
    np.testing.assert_allclose(metrics.ndcg_at_k(relevance, scores, ks), expected, rtol=RTOL)
    whole = metrics.ndcg_at_k(relevance, scores)
    assert whole.shape == (4,)
    np.testing.assert_allclose(whole, expected[2], rtol=RTOL)


def test_ndcg_keeps_its_digits_at_late_ranks_and_in_small_ties():
    # Differences of sums up to a rank would cancel: of discounts where the relevant rows come last,
    # of relevance where ties are many.
    rng = np.random.default_rng(0)
    n = 300_000
    relevance, late = rng.exponential(size=n), np.arange(n) > n - 100
    for gains, scores in (
        (relevance, rng.integers(0, n // 3, n)),
        (relevance * late, np.arange(n)[::-1] // 7),
    ):
        expected = ndcg_score(gains[None], scores[None])
        found = metrics.ndcg_at_k(gains, scores.astype(np.int32))
        np.testing.assert_allclose(found, expected, rtol=max(RTOL / 10, 1e-10))


def test_ndcg_is_one_for_every_order_that_relevance_allows_and_never_above():
    rng = np.random.default_rng(0)
    relevance = rng.random(5)[rng.integers(0, 5, (100, 40))]
    found = metrics.ndcg_at_k(relevance, relevance.astype(np.float32), [1, 3, 30, 100])
    np.testing.assert_allclose(found, np.ones((4, 40)), rtol=RTOL)
    assert np.asarray(found).max() <= 1.0


@pytest.mark.parametrize("factor", [3, 2.0**-100, 1e30, 1e300])
def test_a_common_factor_of_the_relevance_does_nothing(factor):
    relevance, scores = np.array([3, 0, 1, 2, 1, 0]), np.array([1, 5, 2, 4, 2, 2])
    expected = metrics.ndcg_at_k(relevance, scores, 4)
    np.testing.assert_allclose(
        metrics.ndcg_at_k(relevance * factor, scores, 4), expected, rtol=RTOL
    )


def test_a_dropped_row_is_not_part_of_the_ideal_ranking():
    found = metrics.ndcg_at_k([1, 9, 0, 2], [4, 3, 2, 1], [2, 9], sample_weight=[1, 0, 1, 1])
    np.testing.assert_array_equal(found, metrics.ndcg_at_k([1, 0, 2], [4, 2, 1], [2, 9]))


def test_labels_are_relevance_by_name():
    found = metrics.ndcg_at_k(["n", "p", "p"], [3, 2, 1], positive="p")
    np.testing.assert_array_equal(found, metrics.ndcg_at_k([0, 1, 1], [3, 2, 1]))
    with pytest.raises(ValueError, match=r"targets must be non-negative relevance.*positive="):
        metrics.ndcg_at_k(["n", "p", "p"], [3, 2, 1])


def test_the_ideal_ranking_counts_what_was_missed_case_167():
    for missed in (-np.inf, -1.0):
        found = metrics.ndcg_at_k([1, 0, 1], [0.9, 0.5, missed], 2)
        np.testing.assert_allclose(found, 0.613147, atol=1e-6)


@pytest.mark.parametrize("targets", [[[-1], [2]], [-1.0, 1.0], [-1e-30, 1.0]])
def test_negative_relevance_is_refused_case_170(targets):
    with pytest.raises(ValueError, match=r"targets must be non-negative.*got the values"):
        metrics.ndcg_at_k(targets, np.reshape([0.1, 0.9], np.shape(targets)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_relevance_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="targets must be non-negative relevance, finite"):
        metrics.ndcg_at_k([0.0, bad], [1, 2])


def test_queries_without_relevant_items_are_left_out_case_152():
    relevance = np.array([[2, 0, 1], [0, 0, 0]])
    with pytest.warns(UserWarning, match="ndcg_at_k: skipped 1 of 2 rankers, .* no relevant row"):
        values = metrics.ndcg_at_k(relevance.T, relevance.T)
    np.testing.assert_array_equal(values, [1.0, np.nan])
    ids = np.repeat([1, 2], 3)
    with pytest.warns(UserWarning, match="skipped 1 of 2 queries, which have no rel.* the mean$"):
        assert metrics.ndcg_at_k(relevance.ravel(), relevance.ravel(), groups=ids) == 1.0
