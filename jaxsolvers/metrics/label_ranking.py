"""Metrics that rank the labels of each row, not the rows of each ranker."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxsolvers.metrics.checks import (
    Data,
    as_array,
    as_targets,
    check_shapes,
    checked_positives,
    checked_weights,
)
from jaxsolvers.metrics.evaluate import each_column
from jaxsolvers.metrics.per_ranker import ratio, total
from jaxsolvers.metrics.queries import Mean, queries_of
from jaxsolvers.metrics.ranking import step_ap

__all__ = ["label_ranking_average_precision"]


def label_ranking_average_precision(
    targets: ArrayLike, scores: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> jax.Array:
    """Label ranking average precision: how well each row ranks its true labels first.

    ``LRAP = sum_i w_i v_i / sum_i w_i``; with ``T_i`` the true labels of row i,
    ``v_i = (1/|T_i|) sum_{k in T_i} |{j in T_i: s_ij >= s_ik}| / |{j: s_ij >= s_ik}|``, and 1 where
    none or all of the labels are true. It is scikit-learn's
    ``label_ranking_average_precision_score`` (Tsoumakas, Katakis and Vlahavas, Mining Multi-label
    Data, 2010).

    Args:
      targets: (n, K), the rows and their labels: bool, 0/1 or -1/+1. A scipy sparse one is made
        dense a few rows at a time.
      scores: (n, K), real, higher first. Infinities are ranked. Equal scores count against a true
        label.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row. Rows with
        no or all labels have their weight too.

    Returns:
      (), in JAX's default float dtype.

    Raises:
      ValueError: targets not (n, K); shapes differ or are empty; a score is NaN; targets are not
        binary; weights are negative, not finite or all zero.

    Example:
      >>> print(label_ranking_average_precision([[1, 0], [0, 1]], [[0.9, 0.2], [0.8, 0.3]]))
      0.75
    """
    truth, given = as_targets(targets), as_array("scores", scores)
    check_shapes(truth, "scores", given)
    if truth.ndim != 2:
        raise ValueError(f"targets must be (n, K), one column per label; got shape {truth.shape}")
    weights, valid = checked_weights(sample_weight, truth.shape[0])
    rows = each_column(_row_value, _positives, truth.T, given.T, np.True_, (None, None)).value
    if weights is None:
        weights = jnp.ones_like(rows)
    mean = ratio(total(weights * rows), total(jnp.asarray(weights)))
    return jnp.where(valid, mean, jnp.nan)


def _positives(targets: Data) -> tuple[Data, Data]:
    return checked_positives(targets, None)


def _row_value(positive: jax.Array, scores: jax.Array, codes: None, weights: None) -> Mean:
    queries = queries_of(codes, weights, scores.size)
    value = step_ap(queries, positive, scores, weights)
    return Mean(jnp.where(jnp.isnan(value), 1, value), jnp.int32(0))
