"""Metrics of the top k rows, ties averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxsolvers.metrics.checks import Data, checked_cutoffs, checked_positives, checked_relevance
from jaxsolvers.metrics.evaluate import ranking_metric
from jaxsolvers.metrics.per_ranker import ratio
from jaxsolvers.metrics.queries import Mean, Queries, queries_of, running_in_runs
from jaxsolvers.metrics.ranks import rank, sort_rows

__all__ = ["ndcg_at_k", "precision_at_k", "recall_at_k"]

Cutoffs = int | Sequence[int] | np.ndarray


def precision_at_k(
    targets: ArrayLike,
    scores: ArrayLike,
    k: Cutoffs,
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> jax.Array:
    """Precision at k: the share of positives among the k highest scores, ties averaged.

    ``P@k = (1/k) [positives above + (min(k, n) - rows above) p/N]``: the group of equal scores
    that holds rank min(k, n) has N rows, p of them positive; "above" means a higher score. This is
    the mean over uniformly random orders of equal scores (McSherry and Najork, ECIR 2008). The
    divisor stays k when n < k.

    Args:
      targets: (n,) or (n, K), as in ``average_precision``.
      scores: same shape, real, higher first. Infinities are ranked.
      k: an int >= 1, or a sequence of them in any order; other values do not compile again.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) or None for equal weights. Weight 0 drops a row, the others must be equal.
      groups: (n,) query ids, as in ``average_precision``: the mean over the queries, n being the
        rows of a query. A query without positives counts as 0.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype; a sequence of cut-offs adds a
      leading axis (len(k),) in the order asked. A ranker without positives gets 0.

    Raises:
      ValueError: as in ``average_precision``; ``k`` not a positive integer; unequal weights.

    Example:
      >>> print(precision_at_k([0, 1, 0], [0.9, 0.8, 0.7], [1, 2]))
      [0.  0.5]
    """
    inputs = (targets, scores, positive, sample_weight, groups)
    return _at_cutoffs("precision_at_k", _mean_precision, inputs, k)


def recall_at_k(
    targets: ArrayLike,
    scores: ArrayLike,
    k: Cutoffs,
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> jax.Array:
    """Recall at k: the share of the positives that the k highest scores hold, ties averaged.

    ``R@k = (1/P) [positives above + (min(k, n) - rows above) p/N]``, P positives in all, the rest
    as in ``precision_at_k``. It can be below 1 for a perfect ranking when k < P.

    Args:
      targets: (n,) or (n, K), as in ``average_precision``.
      scores: same shape, real, higher first. Infinities are ranked.
      k: an int >= 1, or a sequence of them in any order; other values do not compile again.
      positive: the label that counts as positive, all others being negative.
      sample_weight: (n,) or None for equal weights. Weight 0 drops a row, the others must be equal.
      groups: (n,) query ids, as in ``average_precision``: the mean over the queries that have a
        positive.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype; a sequence of cut-offs adds a
      leading axis (len(k),) in the order asked. A ranker without positives gets NaN, and queries
      without are left out, with the one warning of ``average_precision``.

    Raises:
      ValueError: as in ``precision_at_k``.

    Example:
      >>> print(recall_at_k([0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6], [1, 2, 9]))
      [0.  0.5 1. ]
    """
    inputs = (targets, scores, positive, sample_weight, groups)
    return _at_cutoffs("recall_at_k", _mean_recall, inputs, k)


def ndcg_at_k(
    targets: ArrayLike,
    scores: ArrayLike,
    k: Cutoffs | None = None,
    *,
    positive: object = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> jax.Array:
    """Normalized discounted cumulative gain of the k highest scores, ties averaged.

    ``nDCG@k = DCG@k / IDCG@k``, ``DCG@k = sum_{r=1..min(k, n)} g_r / log2(1 + r)``: the gain
    ``g_r`` is the relevance of the row at rank r, for rows of equal score the mean relevance of
    these rows (McSherry and Najork, ECIR 2008). IDCG@k is the DCG@k of the best order of ALL rows:
    relevant rows that were missed cost. It is scikit-learn's ``ndcg_score``, of each column, where
    anything is relevant. For exponential gains give ``2.0**targets - 1``.

    Args:
      targets: (n,) or (n, K) relevance, real, finite and >= 0; labels of any kind if ``positive``
        is given. A scipy sparse (n, K) is made dense a few columns at a time.
      scores: same shape, real, higher first. Infinities are ranked.
      k: an int >= 1, a sequence of them in any order, or None for all rows; other values do not
        compile again.
      positive: the label whose relevance is 1, all others having 0.
      sample_weight: (n,) or None for equal weights. Weight 0 drops a row, the others must be equal.
      groups: (n,) query ids, as in ``average_precision``: the mean over the queries that have a
        relevant row.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype; a sequence of cut-offs adds a
      leading axis (len(k),) in the order asked. A ranker without relevant rows gets NaN, and
      queries without are left out, with the one warning of ``average_precision``.

    Raises:
      ValueError: as in ``precision_at_k``; a relevance is negative, infinite or NaN.

    Example:
      >>> print(ndcg_at_k([0, 0, 3], [0.9, 0.8, 0.7], [1, 3]))
      [0.  0.5]
    """
    ranks = np.iinfo(np.int32).max if k is None else k
    inputs = (targets, scores, positive, sample_weight, groups)
    return _at_cutoffs("ndcg_at_k", _mean_ndcg, inputs, ranks, checked_relevance, "no relevant row")


def _at_cutoffs(
    name: str,
    metric: Callable[..., Mean],
    inputs: tuple[Any, ...],
    k: Any,
    gains: Callable[[Data, object], tuple[Data, Data]] = checked_positives,
    missing: str = "no positive row",
) -> jax.Array:
    """The metric at each cut-off asked for."""
    cutoffs, is_sequence = checked_cutoffs(k)
    # k is data, not a static argument: new cut-offs reuse the program.
    ranks = np.asarray([min(one, np.iinfo(np.int32).max) for one in cutoffs], np.int32)
    shared = (ranks, np.asarray(cutoffs, jnp.result_type(float)))
    options: dict[str, Any] = {"gains": gains, "missing": missing, "stacklevel": 4}
    values = ranking_metric(name, metric, inputs, shared, equal_for=name, **options)
    return jnp.moveaxis(values, -1, 0) if is_sequence else values[..., 0]


# One ranker: pure functions of (n,) columns and (c,) cut-offs

Column = jax.Array
Shared = jax.Array | None


def _mean_precision(
    positive: Column, scores: Column, codes: Shared, weights: Shared, *cutoffs: jax.Array
) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    hits, _ = _hits(queries, positive, scores)
    return lax.map(lambda k: queries.mean(hits(k[0]) / k[1]), cutoffs)


def _mean_recall(
    positive: Column, scores: Column, codes: Shared, weights: Shared, *cutoffs: jax.Array
) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    hits, positives = _hits(queries, positive, scores)
    return lax.map(lambda k: queries.mean(ratio(hits(k[0]), positives)), cutoffs)


def _hits(
    queries: Queries, positive: Column, scores: Column
) -> tuple[Callable[[jax.Array], jax.Array], jax.Array]:
    """The positives expected among the k first rows, as a function of k, and all positives."""
    r = rank(queries, positive, scores)
    share = ratio(r.gains_tied, r.tied)

    def hits(k: jax.Array) -> jax.Array:
        row = _row_at(queries, k)
        part = (r.rows[row] - r.above[row]).astype(share.dtype) * share[row]
        return r.gains_above[row].astype(share.dtype) + part

    return hits, r.all_gains


def _mean_ndcg(
    relevance: Column, scores: Column, codes: Shared, weights: Shared, *cutoffs: jax.Array
) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    place = lax.iota(jnp.int32, scores.size)
    discount = 1 / jnp.log2((place - queries.first + 2).astype(relevance.dtype))
    ties = sort_rows(queries, scores, relevance)
    # Row by row every term is >= 0: differences of summed gains or discounts would cancel.
    tied_gain = running_in_runs(ties.sorted[0], ties.first)[ties.last]
    mean_gain = tied_gain / (ties.last - ties.first + 1).astype(relevance.dtype)
    found = queries.running(mean_gain * discount)
    keys = (-relevance,) if queries.codes is None else (queries.codes, -relevance)
    *_, best = lax.sort(keys, num_keys=len(keys))
    ideal = queries.running(-best * discount)

    def at(k: jax.Array) -> Mean:
        row = _row_at(queries, k)
        return queries.mean(jnp.minimum(ratio(found[row], ideal[row]), 1))  # 1 but for rounding

    return lax.map(lambda k: at(k[0]), cutoffs)


def _row_at(queries: Queries, k: jax.Array) -> jax.Array:
    """Position of the row at rank k, or of the last row where there are fewer, per query."""
    return jnp.minimum(queries.last - queries.first, k - 1) + queries.first
