"""Metrics of predicted labels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxsolvers.metrics.checks import (
    as_array,
    check_shapes,
    checked_weights,
    columns,
    comparable,
    is_known,
)
from jaxsolvers.metrics.per_ranker import each_ranker, ratio, total

__all__ = ["error_rate"]


def error_rate(
    targets: ArrayLike, predictions: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> jax.Array:
    """Weighted share of rows whose prediction differs from the target.

    ``sum_i s_i 1[y_i != p_i] / sum_i s_i``: the mean 0-1 loss.

    Args:
      targets: labels of any kind (numbers, bools, strings), (n,) or (n, K). NaN equals nothing.
      predictions: labels of the same kind and shape.
      sample_weight: (n,) non-negative, or None for equal weights. Weight 0 drops a row.

    Returns:
      () for (n,) input, else (K,), in JAX's default float dtype.

    Raises:
      ValueError: shapes differ or are empty; the labels can never be equal (strings against
        numbers, bools against -1/+1); weights are negative, not finite or all zero.

    Example:
      >>> print(error_rate(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]))
      0.25
    """
    truth, guess = as_array("targets", targets), as_array("predictions", predictions)
    check_shapes(truth, "predictions", guess)
    weights, valid = checked_weights(sample_weight, len(truth))
    valid = valid & comparable("targets", truth, "predictions", guess)
    if is_known(truth) and is_known(guess):
        truth, guess = np.asarray(truth), np.asarray(guess)  # JAX would wrap or round 64 bits
    with jax.numpy_dtype_promotion("standard"):  # labels are values, their dtypes are nothing
        wrong = truth != guess
    valid = jnp.broadcast_to(valid, columns(wrong).shape[1:])
    values = each_ranker(_weighted_mean, valid, (columns(wrong),), (weights,))
    return values if truth.ndim == 2 else values[0]


def _weighted_mean(wrong: jax.Array, weights: jax.Array | None) -> jax.Array:
    weights = jnp.ones(wrong.shape, jnp.int32) if weights is None else weights
    return ratio(total(jnp.where(wrong, weights, 0)), total(weights))
