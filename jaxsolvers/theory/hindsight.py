"""The best fixed metric, had all gradients been known."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsolvers.members import Array
from jaxsolvers.regularizers.separable import divide
from jaxsolvers.solvers.guarantees import alike, identity_like, lengths, root

__all__ = ["BestMetric", "best_diagonal_metric", "best_full_metric"]


class BestMetric(NamedTuple):
    """The best fixed metric in hindsight, and what it would have cost.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> js.theory.best_diagonal_metric(jnp.array([9.0, 1.0])).metric.tolist()
      [1.5, 0.5]
    """

    value: Array  # ()
    metric: Array  # (d,) or (d, d)


def best_diagonal_metric(accumulator: Any) -> BestMetric:
    """The diagonal metric that would have been best, had all gradients been known.

    ``min over s >= 0, <1, s> <= d of sum_t <g_t, diag(s)^{-1} g_t>  =  gamma_T^2 / d`` at
    ``s_i = d ||g_{1:T,i}||_2 / gamma_T`` (Duchi, Hazan, Singer, JMLR 12 (2011), section 3): up to
    constants AdaGrad's regret is that of this metric.

    Args:
      accumulator: G = sum_t g_t^2, (d,), without an initial accumulator.

    Returns:
      A BestMetric; a coordinate without history gets 0 (and costs 0), without any history all
      get 1.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> best = js.theory.best_diagonal_metric(jnp.array([9.0, 1.0]))
      >>> float(best.value), best.metric.tolist()
      (8.0, [1.5, 0.5])
    """
    (accumulator,) = alike(accumulator)
    length, d = lengths(accumulator), accumulator.size
    total = jnp.sum(length)
    metric = jnp.where(total > 0, d * divide(length, total), 1)
    return BestMetric(total * total / d, metric)


def best_full_metric(accumulator: Any) -> BestMetric:
    """The full metric that would have been best, had all gradients been known.

    ``min over S >= 0, tr(S) <= d of sum_t <g_t, S^+ g_t>  =  tr(G_T^{1/2})^2 / d`` at
    ``S = d G_T^{1/2} / tr(G_T^{1/2})`` (Duchi, Hazan, Singer, JMLR 12 (2011), section 4).

    Args:
      accumulator: G = sum_t g_t g_t', (d, d) or blocks (..., b, b), without an initial one.

    Returns:
      A BestMetric; null directions get 0 (and cost 0), without any history it is the identity.

    Example:
      >>> import jax.numpy as jnp, jaxsolvers as js
      >>> best = js.theory.best_full_metric(jnp.array([[9.0, 0.0], [0.0, 1.0]]))
      >>> round(float(best.value), 4), best.metric.round(4).tolist()
      (8.0, [[1.5, 0.0], [0.0, 0.5]])
    """
    (accumulator,) = alike(accumulator)
    roots, d = root(accumulator), math.prod(accumulator.shape[:-1])
    total = jnp.sum(jnp.trace(roots, axis1=-2, axis2=-1))
    metric = jnp.where(total > 0, d * divide(roots, total), identity_like(roots))
    return BestMetric(total * total / d, metric)
