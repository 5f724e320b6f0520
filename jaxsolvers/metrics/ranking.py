"""Metrics of a whole ranking: how well the scores of a ranker put its positive rows first."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from jaxsolvers.metrics.evaluate import ranking_metric
from jaxsolvers.metrics.per_ranker import ratio
from jaxsolvers.metrics.queries import Mean, Queries, queries_of
from jaxsolvers.metrics.ranks import rank

__all__ = ["average_precision", "roc_auc"]


def average_precision(
    targets: ArrayLike,
    scores: ArrayLike,
    ties: Literal["step", "expected"] = "step",
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> jax.Array:
    """Average precision: the mean, over the positives, of the precision at their ranks.

    ``AP = (1/P) sum_{i positive} (positives at or above i) / (rows at or above i)``, P positives,
    scores descending. Weights turn the counts into sums of weights and the mean into a weighted
    one. ``ties="step"`` counts a tied group whole, like scikit-learn's
    ``average_precision_score``. ``ties="expected"`` is the mean over uniformly random orders of
    equal scores: a group of N rows, p of them positive, below a rows with P0 positives adds
    ``(p/N) sum_{j=1..N} (P0 + 1 + (j-1) rho) / (a + j)`` to the sum, ``rho = (p-1)/(N-1)``
    (McSherry and Najork, ECIR 2008).

    Args:
      targets: (n,) or (n, K): bool, 0/1 or -1/+1; labels of any kind if ``positive`` is given. A
        scipy sparse (n, K) is made dense a few columns at a time.
      scores: same shape, real, higher first. Infinities are ranked.
      ties: ``"step"`` or ``"expected"``.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row; the others
        must be equal for ``ties="expected"``.
      groups: (n,) query ids of any kind in any order, or None for one query. Rows are ranked
        within their query, and the value is the plain mean over the queries: each counts alike,
        whatever its rows and weights.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype. A ranker without positives has
      none: it gets NaN, and one warning per call counts such rankers. With ``groups``, queries
      without positives are left out of the mean and the warning counts them; a ranker is NaN when
      none is left. A query whose rows all have weight 0 is dropped with them.

    Raises:
      ValueError: shapes differ or are empty; a score is NaN; targets are not binary; an unknown
        ``ties``; weights are negative, not finite, all zero, or unequal where they must be equal;
        ``groups`` not (n,), NaN, or of ids that cannot be sorted.

    Example:
      >>> print(average_precision([1, 0], [0.5, 0.5]))
      0.5
      >>> print(average_precision([1, 0], [0.5, 0.5], ties="expected"))
      0.75
      >>> print(average_precision([1, 0, 0, 1], [4, 3, 2, 1], groups=["a", "b", "a", "b"]))
      0.75
    """
    if ties not in ("step", "expected"):
        raise ValueError(f'ties must be "step" or "expected"; got {ties!r}')
    inputs, name = (targets, scores, positive, sample_weight, groups), "average_precision"
    if ties == "step":
        return ranking_metric(name, _mean_step_ap, inputs)
    return ranking_metric(name, _mean_expected_ap, inputs, equal_for='ties="expected"')


def roc_auc(
    targets: ArrayLike,
    scores: ArrayLike,
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> jax.Array:
    """Area under the ROC curve: the share of (positive, negative) pairs ranked right.

    ``AUC = sum_{i positive, j negative} w_i w_j (1[s_i > s_j] + 1[s_i = s_j] / 2) / (P N)``, P and
    N the weights of the two classes (Hanley and McNeil, Radiology 143, 1982). It is
    scikit-learn's ``roc_auc_score``, of each column.

    Args:
      targets: (n,) or (n, K), as in ``average_precision``.
      scores: same shape, real, higher first. Infinities are ranked.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row.
      groups: (n,) query ids, as in ``average_precision``: the mean area per query, of pairs within
        a query only.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype. A ranker with one class only has
      none: it gets NaN, and one warning per call counts such rankers. With ``groups``, queries of
      one class are left out of the mean and the warning counts them; a ranker is NaN when none is
      left.

    Raises:
      ValueError: as in ``average_precision``.

    Example:
      >>> print(roc_auc([1, 0, 1, 0], [0.9, 0.5, 0.5, 0.1]))
      0.875
    """
    inputs = (targets, scores, positive, sample_weight, groups)
    return ranking_metric("roc_auc", _mean_auc, inputs, missing="rows of one class only")


# One ranker: pure functions of (n,) columns

Column = jax.Array
Shared = jax.Array | None


def step_ap(queries: Queries, positive: Column, scores: Column, weights: Shared) -> jax.Array:
    """Average precision per query, tied groups counted whole; NaN without positives."""
    r = rank(queries, positive, scores, weights)
    precision = ratio(r.gains_above + r.gains_tied, r.above + r.tied, 0.0)
    return ratio(queries.total(r.gains.astype(precision.dtype) * precision), r.all_gains)


def _mean_step_ap(positive: Column, scores: Column, codes: Shared, weights: Shared) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    return queries.mean(step_ap(queries, positive, scores, weights))


def _mean_expected_ap(positive: Column, scores: Column, codes: Shared, weights: Shared) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    r = rank(queries, positive, scores)
    # The positives above the j-th row of a group, given that this row is one. Summed row by row
    # every term is >= 0; the closed form with harmonic numbers cancels for groups at late ranks.
    rho = ratio(r.gains_tied - 1, r.tied - 1, 0.0)
    within = (r.rows - r.above - 1).astype(rho.dtype) * rho
    precision = ratio(r.gains_above.astype(rho.dtype) + 1 + within, r.rows)
    chance = ratio(r.gains_tied, r.tied)
    return queries.mean(ratio(queries.total(chance * precision), r.all_gains))


def _mean_auc(positive: Column, scores: Column, codes: Shared, weights: Shared) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    r = rank(queries, positive, scores, weights)
    # Of each negative row: the share of the positives above it. Nothing is subtracted, so that a
    # small area keeps its digits.
    dtype = jnp.result_type(float)
    better = r.gains_above.astype(dtype) + r.gains_tied.astype(dtype) / 2
    negatives = (r.weights - r.gains).astype(dtype)
    share = jnp.minimum(ratio(better, r.all_gains, 0.0), 1)  # 1 but for rounding
    right = queries.total(negatives * share)
    return queries.mean(ratio(right, jnp.where(r.all_gains > 0, queries.total(negatives), 0)))
